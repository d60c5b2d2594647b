"""The blockmodel recovers planted blocks and their link rates."""

import numpy as np
import pytest

from vhe.baselines.mmb import BLOCKS, MMB, infer, spectral_blocks


def test_planted_blocks_and_rates_are_recovered(planted):
    model = MMB(blocks=3).fit(planted)
    label = np.array(planted.labels[:-1])
    found = model.embedding_[:-1].argmax(axis=1)
    table = np.zeros((3, 3))
    np.add.at(table, (label, found), 1)
    assert table.max(axis=1).sum() >= 0.95 * len(label)
    assert len(set(table.argmax(axis=1))) == 3
    assert np.diag(model.rates_) == pytest.approx(0.3, abs=0.12)
    assert model.rates_[0, 1] < 0.05
    assert model.embedding_.sum(axis=1) == pytest.approx(1, abs=1e-5)


def test_scores_are_link_probabilities(planted):
    model = MMB(blocks=3).fit(planted)
    i, j = np.triu_indices(len(planted) - 1, 1)
    expected = model.score_indices(i, j).sum()
    assert expected == pytest.approx(len(planted.links), rel=0.15)


def test_the_number_of_blocks_is_chosen_from_the_grid(planted):
    assert MMB(steps=2).fit(planted).embedding_.shape[1] in BLOCKS


def test_a_vertex_without_links_has_no_initial_block(planted):
    member = spectral_blocks(planted.links, len(planted), 3, seed=0)
    assert member[:-1].sum(axis=1) == pytest.approx(1)
    assert (member[-1] == 0).all()


def test_training_in_batches(planted, monkeypatch):
    monkeypatch.setattr("vhe.baselines.mmb.BATCH", 50)
    memberships, _ = infer(planted.links, len(planted), 3, 150, seed=0)
    label, found = np.array(planted.labels[:-1]), memberships[:-1].argmax(axis=1)
    i, j = np.triu_indices(len(label), 1)
    assert ((label[i] == label[j]) == (found[i] == found[j])).mean() > 0.9
