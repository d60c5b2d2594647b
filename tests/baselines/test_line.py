"""Training of LINE increases its objective, and its halves have unit length."""

import numpy as np
import pytest

from vhe.baselines.line import LINE, NEGATIVES, train_order


def log_sigmoid(x):
    return -np.logaddexp(0, -x)


def objective(links, vectors, contexts):
    """Mean over links in both directions; the ends of a link are never its negatives."""
    chance = np.bincount(links.ravel(), minlength=len(vectors)) ** 0.75
    both = np.concatenate([links, links[:, ::-1]])
    rows = np.arange(len(both))
    scores = (vectors @ contexts.T)[both[:, 0]]  # (2k, n)
    far = log_sigmoid(-scores) * chance / chance.sum()
    far[rows, both[:, 0]] = far[rows, both[:, 1]] = 0
    return (log_sigmoid(scores[rows, both[:, 1]]) + NEGATIVES * far.sum(axis=1)).mean()


@pytest.mark.parametrize("order", [1, 2])
def test_training_increases_the_objective(planted, order):
    found = [
        objective(
            planted.links,
            *train_order(planted.links, len(planted), 8, order, passes, np.random.default_rng(0)),
        )
        for passes in (1, 60, 200)
    ]
    assert found[0] + 0.1 < found[1]
    assert found[1] + 0.05 < found[2]


def test_first_order_shares_vectors_and_contexts(planted):
    vectors, contexts = train_order(planted.links, len(planted), 8, 1, 3, np.random.default_rng(0))
    assert np.array_equal(vectors, contexts)


def test_halves_have_unit_length_before_centring(planted, monkeypatch):
    rows = LINE(dimensions=8, passes=3).fit(planted).embedding_
    assert rows.shape == (len(planted), 16)
    linked = planted.degrees > 0
    assert rows.mean(axis=0) == pytest.approx(0, abs=1e-6)
    assert (rows[~linked] == 0).all()
    monkeypatch.setattr("vhe.baselines.line.centred", lambda rows: rows)
    rows = LINE(dimensions=8, passes=3).fit(planted).embedding_
    for half in (rows[:, :8], rows[:, 8:]):
        assert np.linalg.norm(half[linked], axis=1) == pytest.approx(1, abs=1e-5)
