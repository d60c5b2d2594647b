import numpy as np
import pytest

from vhe import VHE, TextNetwork
from vhe.graph.inductive import NEW_TEXT_KNN_WEIGHT
from vhe.graph.isolated import isolated_posterior, isolated_weight
from vhe.graph.model import TextNeighbours


def test_posterior_given_the_other_codes() -> None:
    """Against the equation, term by term; vertices 3 and 4 have no link."""
    rng = np.random.default_rng(0)
    codes, mean = rng.normal(size=(2, 5, 3)).astype(np.float32)
    precision = np.array([1, 2, 1, 0.5, 3], np.float32)
    pairs = np.array([[0, 3], [1, 3], [0, 1]])
    neighbours = TextNeighbours(pairs, np.array([0.5, 0.25, 0.9], np.float32))
    links = np.array([[0, 1], [1, 2]])
    variance = np.array([0.5, 0.25, 1, 2, 2], np.float32)
    found = isolated_posterior(links, neighbours, precision, codes, mean, variance, 4.0)
    np.testing.assert_array_equal(found.vertices, [3, 4])
    s = [4 * 0.5 / np.sqrt(3 * 3), 4 * 0.25 / np.sqrt(3 * 3)]
    diagonal = 0.5 + s[0] + s[1]
    expected = (0.5 * codes[3] + s[0] * mean[0] + s[1] * mean[1]) / diagonal
    np.testing.assert_allclose(found.mean, [expected, codes[4]], rtol=1e-5)
    np.testing.assert_allclose(found.diagonal, [diagonal, 3], rtol=1e-6)
    read = (s[0] ** 2 * 0.5 + s[1] ** 2 * 0.25) / diagonal**2
    np.testing.assert_allclose(found.variance, [1 / diagonal + read, 1 / 3], rtol=1e-6)


def test_weight() -> None:
    assert isolated_weight(None, 1.0) == NEW_TEXT_KNN_WEIGHT
    assert isolated_weight(None, 9.0) == 9.0
    assert isolated_weight(0.5, 0.5) == 0.5


def test_a_fit_stores_the_posterior_of_isolated_vertices() -> None:
    words = ("red", "blue", "green", "warm", "cold", "round", "flat", "long")
    rng = np.random.default_rng(0)
    texts = {f"v{k}": " ".join(rng.choice(words, 6)) for k in range(30)}
    edges = [(f"v{k}", f"v{k + 1}") for k in range(24)]
    network = TextNetwork.from_edges(texts, edges)
    model = VHE(random_state=0, verbose=False, max_steps=2, latent_dim=4).fit(network)
    graph, alone = model._graph, network.degrees == 0
    assert (graph.variance[alone] > 1 / graph.diagonal[alone]).all()  # and that of the texts read
    pairs, n = graph.neighbours.pairs, len(network)
    count = np.bincount(pairs.ravel(), minlength=n)
    total = np.zeros(n)
    for (i, j), cosine in zip(pairs, graph.neighbours.cosines, strict=True):
        total[[i, j]] += NEW_TEXT_KNN_WEIGHT * cosine / np.sqrt((1 + count[i]) * (1 + count[j]))
    expected = graph.precision + total
    assert alone.sum() == 5
    assert graph.diagonal[alone] == pytest.approx(expected[alone], rel=1e-5)
