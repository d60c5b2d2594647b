"""VGAE's loss is the paper's, decreases, and has an unbiased estimate on large networks."""

import numpy as np
import pytest
import torch

from vhe.baselines.vgae import VGAE, reconstruction_loss
from vhe.errors import VHEError


@pytest.mark.parametrize("features", ["identity", "tfidf"])
def test_the_loss_decreases(planted, features):
    losses = VGAE(features=features).fit(planted).losses_
    assert len(losses) == 200
    assert np.mean(losses[-10:]) < 0.9 * np.mean(losses[:10])


def test_unknown_features_are_refused(planted):
    with pytest.raises(VHEError, match="'tf-idf'; use 'identity' or 'tfidf'"):
        VGAE(features="tf-idf").fit(planted)


def pairs_and_vectors(planted):
    random = torch.Generator().manual_seed(0)
    n = len(planted)
    z = torch.randn(n, 4, generator=random)
    adjacency = torch.eye(n)
    adjacency[tuple(planted.links.T.tolist())] = 1
    adjacency = torch.maximum(adjacency, adjacency.T)
    return z, adjacency, random


def test_the_loss_is_the_weighted_cross_entropy_of_the_paper(planted):
    z, adjacency, random = pairs_and_vectors(planted)
    n, ones = len(z), adjacency.sum()
    expected = torch.nn.functional.binary_cross_entropy_with_logits(
        z @ z.T, adjacency, pos_weight=(n**2 - ones) / ones
    )
    expected *= n**2 / (2 * (n**2 - ones))
    i, j = adjacency.nonzero().T
    assert reconstruction_loss(z, i, j, random).item() == pytest.approx(expected.item(), rel=1e-5)


def test_random_blocks_are_unbiased(planted, monkeypatch):
    z, adjacency, random = pairs_and_vectors(planted)
    i, j = adjacency.nonzero().T
    exact = reconstruction_loss(z, i, j, random).item()
    monkeypatch.setattr("vhe.baselines.vgae.BLOCK", 20)
    drawn = [reconstruction_loss(z, i, j, random).item() for _ in range(1000)]
    assert np.std(drawn) > 0
    assert np.mean(drawn) == pytest.approx(exact, abs=4 * np.std(drawn) / 1000**0.5)
