"""Walks follow the links, and biased walks have node2vec's transition probabilities."""

import numpy as np
import pytest

from vhe.baselines.walks import Walker

# a triangle 0-1-2 with the path 1-3-4; 5 is isolated
LINKS = np.array([[0, 1], [0, 2], [1, 2], [1, 3], [3, 4]])


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize(("p", "q"), [(1, 1), (0.25, 4), (4, 0.25)])
def test_every_step_is_a_link_and_isolated_vertices_stay(rng, p, q):
    walks = Walker(LINKS, 6).walks(np.arange(6).repeat(50), 12, rng, p, q)
    assert walks.shape == (300, 12)
    assert np.array_equal(walks[:, 0], np.arange(6).repeat(50))
    assert (walks[250:] == 5).all()
    steps = np.stack([walks[:250, :-1], walks[:250, 1:]], axis=-1).reshape(-1, 2)
    taken = np.unique(np.sort(steps, axis=1), axis=0)
    assert np.array_equal(taken, LINKS)


def test_uniform_steps_choose_all_neighbours_equally_often(rng):
    walks = Walker(LINKS, 6).walks(np.ones(30_000, dtype=np.int64), 2, rng)
    share = np.bincount(walks[:, 1], minlength=6) / len(walks)
    assert share == pytest.approx([1 / 3, 0, 1 / 3, 1 / 3, 0, 0], abs=0.015)


@pytest.mark.parametrize(("p", "q"), [(0.25, 4.0), (4.0, 0.5), (1.0, 0.25), (2.0, 1.0)])
def test_biased_steps_have_the_probabilities_of_node2vec(rng, p, q):
    walks = Walker(LINKS, 6).walks(np.zeros(80_000, dtype=np.int64), 3, rng, p, q)
    third = walks[walks[:, 1] == 1, 2]  # after a step from 0 to 1
    weight = np.array([1 / p, 0, 1, 1 / q, 0, 0])  # return to 0, to its neighbour 2, away to 3
    share = np.bincount(third, minlength=6) / len(third)
    assert share == pytest.approx(weight / weight.sum(), abs=0.015)


def test_a_dead_end_leads_back_for_any_p(rng):
    walks = Walker(np.array([[0, 1]]), 2).walks(np.zeros(20, dtype=np.int64), 9, rng, 1e9, 1e-9)
    assert (walks == np.arange(9) % 2).all()


def test_a_corpus_has_a_walk_from_each_linked_vertex_per_repetition(rng):
    corpus = Walker(LINKS, 6).corpus(3, 4, rng)
    assert corpus.shape == (15, 4)
    assert np.array_equal(np.sort(corpus[:, 0].reshape(3, 5)), np.arange(5)[None].repeat(3, 0))
    empty = Walker(np.empty((0, 2), dtype=np.int64), 6).corpus(3, 4, rng)
    assert empty.shape == (0, 4)
