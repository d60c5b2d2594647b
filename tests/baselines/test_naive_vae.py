"""The text half is a VAE whose loss decreases; halves without data are zero."""

import numpy as np
import pytest

from vhe.baselines.naive_vae import NaiveVAE, auto_encode
from vhe.baselines.node2vec import Node2Vec


def test_the_vae_preserves_clusters():
    rng = np.random.default_rng(0)
    group = np.arange(90) % 3
    rows = (3 * np.eye(3)[group]) @ rng.standard_normal((3, 10))
    rows = (rows + 0.3 * rng.standard_normal(rows.shape)).astype(np.float32)
    means, losses = auto_encode(rows, 4, epochs=100, learning_rate=5e-3, seed=0)
    assert means.shape == (90, 4)
    assert losses[-1] < losses[0] - 1
    centres = np.stack([means[group == g].mean(axis=0) for g in range(3)])
    nearest = ((means[:, None] - centres) ** 2).sum(axis=-1).argmin(axis=1)
    assert (nearest == group).mean() > 0.95


def test_the_halves_are_text_and_structure(planted):
    pytest.importorskip("gensim")
    structure = Node2Vec(dimensions=6, walks=2, length=10, p=1, q=1)
    rows = NaiveVAE(dimensions=6, epochs=2, structure=structure).fit(planted).embedding_
    assert rows.shape == (len(planted), 12)
    assert (rows[-1] == 0).all()  # neither a word nor a link
    assert np.linalg.norm(rows[:-1, :6], axis=1) == pytest.approx(1, abs=1e-5)
    assert np.linalg.norm(rows[:-1, 6:], axis=1) == pytest.approx(1, abs=1e-5)
