"""Likely links are the best of all pairs that are not linked, and repeats are left out."""

import numpy as np
import pytest

from vhe.data.network import TextNetwork
from vhe.predict import suggest
from vhe.predict.scoring import CosineMethod
from vhe.predict.candidates import at_density, known_pairs, likely_links, without_repeats


class Rows(CosineMethod):
    """A model that is its embedding."""

    def __init__(self, rows: np.ndarray) -> None:
        self.embedding_ = rows
        self.degree_bias_ = np.zeros(len(rows), dtype=np.float32)

    def probability_indices(self, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
        return (1 + self.score_indices(sources, targets)) / 2


class Pairwise:
    """Text similarities that are given."""

    def __init__(self, similar: dict[tuple[int, int], float]) -> None:
        self.similar = similar

    def score_indices(self, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
        pairs = zip(sources.tolist(), targets.tolist(), strict=True)
        return np.array([self.similar.get(pair, 0.0) for pair in pairs])


def network(n: int, links: np.ndarray) -> TextNetwork:
    return TextNetwork([f"v{i}" for i in range(n)], ["text"] * n, links)


@pytest.mark.parametrize("at_once", [7, 100, 10**6])
@pytest.mark.parametrize("k", [1, 3])
def test_the_best_of_all_pairs_without_a_link(
    k: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours, "SCORES_AT_ONCE", at_once)
    rng = np.random.default_rng(0)
    n = 23
    whole = network(n, rng.integers(n, size=(60, 2)))
    model = Rows(rng.normal(size=(n, 4)))
    pairs, probability = likely_links(model, whole, k)

    linked = {tuple(link) for link in whole.links.tolist()}
    wanted = set()
    for i in range(n):
        others = [j for j in range(n) if j != i and (min(i, j), max(i, j)) not in linked]
        scores = model.score_matrix(np.array([i]), np.array(others))[0]
        best = [others[place] for place in np.argsort(-scores)[:k]]
        wanted |= {(min(i, j), max(i, j)) for j in best}
    assert {tuple(pair) for pair in pairs.tolist()} == wanted
    assert len(pairs) == len(wanted)
    assert (np.diff(probability) <= 0).all()
    np.testing.assert_allclose(probability, model.probability_indices(*pairs.T))


@pytest.mark.parametrize("n", [1, 2, 4])
def test_where_everything_is_linked_nothing_is_likely(n: int) -> None:
    whole = network(n, np.array([[i, j] for i in range(n) for j in range(i)]).reshape(-1, 2))
    pairs, probability = likely_links(Rows(np.eye(n)), whole, 3)
    assert pairs.shape == (0, 2)
    assert probability.shape == (0,)


def test_repeats_are_left_out() -> None:
    ids = ["a.f", "b.f", "a.g", "a.h", "a.p", "a.q", "b.x", "b.y"]
    whole = TextNetwork(ids, ["text"] * 8, np.zeros((0, 2), dtype=np.int64))
    pairs = np.array([[0, 1], [2, 3], [2, 4], [4, 5], [0, 6], [1, 7]])
    same_text = Pairwise({(2, 3): 0.99})
    # a.f - b.f: one name; a.g - a.h: one text; a.p - a.q: a.p has come already.
    assert without_repeats(whole, pairs, same_text, 9).tolist() == [2, 4, 5]
    assert without_repeats(whole, pairs, same_text, 2).tolist() == [2, 4]
    assert without_repeats(whole, pairs[:0], same_text, 2).tolist() == []


def test_no_two_labels_have_all_the_pairs() -> None:
    n = 12
    labels = ["x"] * 8 + ["y"] * 4
    whole = TextNetwork([f"v{i}" for i in range(n)], ["t"] * n, np.zeros((0, 2), int), labels)
    pairs = np.arange(n).reshape(-1, 2)
    assert without_repeats(whole, pairs, Pairwise({}), n).tolist() == [0, 1, 4, 5]


def test_known_pairs_in_either_direction() -> None:
    known = np.array([[3, 1], [0, 2]])
    pairs = np.array([[1, 3], [2, 0], [1, 2], [3, 1]])
    assert known_pairs(known, pairs, 4).tolist() == [True, True, False, True]
    assert known_pairs(known[:0], pairs, 4).tolist() == [False] * 4


def test_probability_at_a_density_is_bayes_rule() -> None:
    rng = np.random.default_rng(0)
    evenly = rng.uniform(size=9)
    odds = evenly / (1 - evenly) * (0.01 / 0.99)
    np.testing.assert_allclose(at_density(evenly, 0.01), odds / (1 + odds))
    np.testing.assert_allclose(at_density(evenly, 0.5), evenly)
    assert at_density(np.array([0.0, 1.0]), 0.01).tolist() == [0, 1]
