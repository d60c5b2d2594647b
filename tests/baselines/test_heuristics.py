"""Adamic-Adar and Katz against networkx and a sum of matrix powers."""

import networkx
import numpy as np
import pytest

from vhe.baselines.heuristics import AdamicAdar, Katz
from vhe.data.network import TextNetwork

N = 25
EDGES = np.random.default_rng(0).integers(N, size=(60, 2))
NETWORK = TextNetwork(range(N), ["text"] * N, EDGES)
EVERYTHING = np.arange(N)


def test_adamic_adar_against_networkx() -> None:
    method = AdamicAdar().fit(NETWORK)
    graph = networkx.Graph(NETWORK.links.tolist())
    pairs = [(i, j) for i in graph for j in graph if i < j]
    expected = {(i, j): p for i, j, p in networkx.adamic_adar_index(graph, pairs)}
    scores = method.score_matrix(EVERYTHING, EVERYTHING)
    for (i, j), score in expected.items():
        assert scores[i, j] == pytest.approx(score)
    isolated = np.flatnonzero(NETWORK.degrees == 0)
    assert not scores[isolated].any()


def test_katz_against_matrix_powers() -> None:
    method = Katz(beta=0.1).fit(NETWORK)
    a = np.zeros((N, N))
    a[NETWORK.links[:, 0], NETWORK.links[:, 1]] = a[NETWORK.links[:, 1], NETWORK.links[:, 0]] = 1
    expected = 0.1 * a + 0.01 * a @ a + 0.001 * a @ a @ a
    np.testing.assert_allclose(method.score_matrix(EVERYTHING, EVERYTHING), expected, atol=1e-12)


@pytest.mark.parametrize("method", [AdamicAdar(), Katz()])
def test_pairs_are_the_entries_of_the_matrix(method: AdamicAdar | Katz) -> None:
    method.fit(NETWORK)
    i, j = np.random.default_rng(1).integers(N, size=(2, 40))
    matrix = method.score_matrix(EVERYTHING, EVERYTHING)
    np.testing.assert_allclose(method.score_indices(i, j), matrix[i, j])
