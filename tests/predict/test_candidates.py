"""The likeliest missing links of a network, without repetitions."""

import numpy as np
import pytest
from scipy import sparse

from vhe.data.network import TextNetwork
from vhe.predict import suggest
from vhe.predict.calibration import sigmoid
from vhe.predict.candidates import known_pairs, likely_links, without_repeats
from vhe.predict.link_posterior import LinkPosterior
from vhe.predict.pair_features import vertex_rows


class Rows:
    """A model of a network with a given embedding."""

    def __init__(self, rows: np.ndarray, network: TextNetwork, degree_weight: float = 0.0) -> None:
        words = sparse.csr_array((len(rows), 1))
        self._rows = vertex_rows({"embedding": rows}, words, network.links, (), seed=0)
        self._link_posterior = LinkPosterior({"embedding": 1.0, "degree": degree_weight}, -0.3)

    def score_indices(self, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
        return self._link_posterior.log_odds(self._rows, sources, targets)

    def probability(self, scores: np.ndarray) -> np.ndarray:
        return sigmoid(scores)


class Pairwise:
    """A method with given scores."""

    def __init__(self, similar: dict[tuple[int, int], float]) -> None:
        self.similar = similar

    def score_indices(self, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
        pairs = zip(sources.tolist(), targets.tolist(), strict=True)
        return np.array([self.similar.get(pair, 0.0) for pair in pairs])


def network(n: int, links: np.ndarray) -> TextNetwork:
    return TextNetwork([f"v{i}" for i in range(n)], ["text"] * n, links)


@pytest.mark.parametrize("at_once", [7, 100, 10**6])
@pytest.mark.parametrize("k", [1, 3])
def test_likely_links_are_the_best_missing_pairs(
    k: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suggest, "SCORES_AT_ONCE", at_once)
    rng = np.random.default_rng(0)
    n = 23
    whole = network(n, rng.integers(n, size=(60, 2)))
    model = Rows(rng.normal(size=(n, 4)), whole)
    pairs, probability = likely_links(model, k)

    linked = {tuple(link) for link in whole.links.tolist()}
    expected = set()
    for i in range(n):
        others = [j for j in range(n) if j != i and (min(i, j), max(i, j)) not in linked]
        scores = model.score_indices(np.full(len(others), i), np.array(others))
        best = [others[position] for position in np.argsort(-scores)[:k]]
        expected |= {(min(i, j), max(i, j)) for j in best}
    assert {tuple(pair) for pair in pairs.tolist()} == expected
    assert len(pairs) == len(expected)
    assert (np.diff(probability) <= 0).all()
    expected_probability = sigmoid(model.score_indices(*pairs.T))
    np.testing.assert_allclose(probability, expected_probability, atol=1e-6)


def test_likely_links_use_all_features() -> None:
    whole = network(5, np.array([[3, 4]]))
    pairs, _ = likely_links(Rows(np.eye(5), whole, degree_weight=0.5), 1)
    assert {tuple(pair) for pair in pairs.tolist()} == {(0, 3), (1, 3), (2, 3), (0, 4)}


@pytest.mark.parametrize("n", [1, 2, 4])
def test_a_complete_graph_has_no_missing_links(n: int) -> None:
    whole = network(n, np.array([[i, j] for i in range(n) for j in range(i)]).reshape(-1, 2))
    pairs, probability = likely_links(Rows(np.eye(n), whole), 3)
    assert pairs.shape == (0, 2)
    assert probability.shape == (0,)


def test_repetitions_are_omitted() -> None:
    ids = ["a.f", "b.f", "a.g", "a.h", "a.p", "a.q", "b.x", "b.y"]
    whole = TextNetwork(ids, ["text"] * 8, np.zeros((0, 2), dtype=np.int64))
    pairs = np.array([[0, 1], [2, 3], [2, 4], [4, 5], [0, 6], [1, 7]])
    same_text = Pairwise({(2, 3): 0.99})
    # a.f and b.f: the same name; a.g and a.h: the same text; a.p and a.q: a.p occurred before
    assert without_repeats(whole, pairs, same_text, 9).tolist() == [2, 4, 5]
    assert without_repeats(whole, pairs, same_text, 2).tolist() == [2, 4]
    assert without_repeats(whole, pairs[:0], same_text, 2).tolist() == []


def test_two_labels_have_at_most_two_pairs() -> None:
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
