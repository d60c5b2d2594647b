"""New vertices against the dense posterior of the grown graph with the other codes fixed."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from vhe.data.network import TextNetwork
from vhe.data.text import Corpus
from vhe.estimators import VHE
from vhe.graph import inductive
from vhe.graph.model import NEIGHBOURS, GraphModel, link_weights, marginal_variance
from vhe.text.lsa import CENTRE_SHARE, EMPTY_CENTRE

NO_LINKS = np.zeros((0, 2), dtype=np.int64)


def no_vectors(texts) -> np.ndarray:
    return np.zeros((len(texts), 0), dtype=np.float32)


def text_directions(model, texts):
    return inductive.text_directions(model, texts, no_vectors(texts))


def embed_new(model, directions, degrees, texts, links, **options):
    vectors = no_vectors(texts)
    return inductive.embed_new(model, directions, degrees, texts, vectors, links, **options)


def naive_code(corpus: Corpus, k: int, words: np.ndarray) -> np.ndarray:
    """√d u / ‖u‖ with damped counts, before it is centred."""
    tokens = corpus.tokens[corpus.offsets[k] : corpus.offsets[k + 1]].tolist()
    total = sum(((1 + np.log(tokens.count(t))) * words[t] for t in set(tokens)), np.zeros(16))
    return total * 4 / np.linalg.norm(total) if tokens else total


def encoded(model: VHE, texts: list[str]) -> Corpus:
    return Corpus.encode(texts, model.vocabulary_, max_words=16)


@pytest.fixture(scope="module")
def links_only(new: Callable[..., VHE], network: TextNetwork) -> VHE:
    return new(text_knn_weight=0.0, link_strength=1.5).fit(network)


@pytest.mark.parametrize("vertex", [0, 7, 33])
def test_a_vertex_that_is_added_again_has_its_row_of_the_solution(
    links_only: VHE, vertex: int
) -> None:
    """The posterior of one vertex given all others is its row of the solved system."""
    graph, corpus = links_only._graph, links_only._corpus
    links, degrees = links_only.network_.links, links_only.network_.degrees.copy()
    partners = links[(links == vertex).any(axis=1)].sum(axis=1) - vertex
    degrees[partners] -= 1  # the vertex is not there yet
    known = np.column_stack([np.full(len(partners), 60), partners])
    directions, text = text_directions(graph, corpus), corpus.select(np.array([vertex]))
    found = embed_new(graph, directions, degrees, text, known, text_knn_weight=0.0)
    np.testing.assert_allclose(found.mean[0], graph.mean[vertex], rtol=1e-3, atol=2e-3)
    assert found.precision[0] == pytest.approx(graph.precision[vertex], rel=1e-5)
    assert found.diagonal[0] == pytest.approx(graph.diagonal[vertex], rel=1e-5)
    s = link_weights(known, np.append(degrees, 0) + np.bincount(known.ravel()), 1.5)
    read = s**2 @ graph.variance[partners] / found.diagonal[0] ** 2
    assert found.variance[0] == pytest.approx(1 / graph.diagonal[vertex] + read, rel=1e-4)


def test_linked_new_vertices_against_a_dense_system(fitted: VHE) -> None:
    graph, corpus, n = fitted._graph, fitted._corpus, 60
    texts = encoded(fitted, ["t0w1 t0w2", "t0w3 common1 common2 t0w3", "t2w2", "", "common3"])
    k = len(texts)
    known = np.array([[n, 0], [n, n + 1], [n + 1, n + 2], [n + 1, 7], [n + 3, 9]])
    degrees = fitted.network_.degrees
    found = embed_new(graph, text_directions(graph, corpus), degrees, texts, known)

    raw = np.stack([naive_code(corpus, v, graph.words) for v in range(n)])
    new = np.stack([naive_code(texts, v, graph.words) for v in range(k)])
    centre = raw.mean(axis=0)  # no text of the fit is empty
    np.testing.assert_allclose(graph.centre, centre, atol=1e-5)
    degree = np.append(degrees, np.zeros(k))
    np.add.at(degree, known.ravel(), 1)
    matrix, right, read = np.zeros((k, k)), np.zeros((k, 16)), np.zeros((k, n))
    precision = np.sqrt(1 + texts.lengths) / np.exp(np.log1p(corpus.lengths).mean() / 2)
    for v in range(k):
        empty = texts.lengths[v] == 0
        share = EMPTY_CENTRE if empty else -CENTRE_SHARE
        matrix[v, v] += precision[v]
        right[v] += precision[v] * (new[v] + share * centre)
        a, b = new[v] - centre, raw - centre
        cosine = b @ a / np.linalg.norm(b, axis=1) / np.linalg.norm(a)
        for j in np.argsort(-cosine)[:NEIGHBOURS] if not empty else ():
            weight = inductive.NEW_TEXT_KNN_WEIGHT * max(cosine[j], 0) / (NEIGHBOURS + 1)
            matrix[v, v] += weight
            right[v] += weight * graph.mean[j]
            read[v, j] += weight
    for i, j in known:
        strength = graph.link_strength * ((degree[i] + 1) * (degree[j] + 1)) ** -0.25
        matrix[i - n, i - n] += strength
        if j >= n:
            matrix[j - n, j - n] += strength
            matrix[i - n, j - n] -= strength
            matrix[j - n, i - n] -= strength
        else:
            right[i - n] += strength * graph.mean[j]
            read[i - n, j] += strength
    np.testing.assert_allclose(found.mean, np.linalg.solve(matrix, right), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(found.diagonal, np.diag(matrix), rtol=1e-4)
    diagonal = np.diag(matrix)
    variance = 1 / diagonal + read**2 @ graph.variance / diagonal**2
    np.testing.assert_allclose(found.variance, variance, rtol=1e-4)
    np.testing.assert_allclose(found.precision, precision, rtol=1e-5)


def test_the_order_of_the_ends_of_a_link_does_not_matter(fitted: VHE) -> None:
    graph, degrees = fitted._graph, fitted.network_.degrees
    directions = text_directions(graph, fitted._corpus)
    texts = encoded(fitted, ["t0w1 t0w2", "t2w2"])
    links = np.array([[60, 3], [61, 60]])
    one = embed_new(graph, directions, degrees, texts, links)
    other = embed_new(graph, directions, degrees, texts, links[:, ::-1].copy())
    np.testing.assert_allclose(one.mean, other.mean, atol=1e-6)


def test_directions_are_centred_codes_of_unit_length(fitted: VHE) -> None:
    graph = fitted._graph
    texts = encoded(fitted, ["t0w1 t0w2 t0w2", "", "common1"])
    found = text_directions(graph, texts)
    for k in (0, 2):
        centred = naive_code(texts, k, graph.words) - graph.centre
        np.testing.assert_allclose(found[k], centred / np.linalg.norm(centred), atol=1e-5)
    assert not found[1].any()


def test_many_new_texts_are_compared_in_parts(fitted: VHE, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, degrees = fitted._graph, fitted.network_.degrees
    directions = text_directions(graph, fitted._corpus)
    whole = embed_new(graph, directions, degrees, fitted._corpus, NO_LINKS)
    argpartition = np.argpartition
    parts: list[int] = []

    def spy(cosines: np.ndarray, *rest: Any, **options: Any) -> np.ndarray:
        parts.append(len(cosines))
        return argpartition(cosines, *rest, **options)

    monkeypatch.setattr(inductive, "COSINES_AT_ONCE", 7 * len(directions))
    monkeypatch.setattr(inductive.np, "argpartition", spy)
    again = embed_new(graph, directions, degrees, fitted._corpus, NO_LINKS)
    assert parts == [7] * 8 + [4]
    np.testing.assert_allclose(again.mean, whole.mean, atol=1e-5)


def test_no_new_texts(fitted: VHE) -> None:
    graph = fitted._graph
    directions = text_directions(graph, fitted._corpus)
    degrees = fitted.network_.degrees
    found = embed_new(graph, directions, degrees, encoded(fitted, []), NO_LINKS)
    assert found.mean.shape == (0, 16)
    assert found.variance.shape == found.precision.shape == found.diagonal.shape == (0,)


def test_an_extended_model_has_the_new_rows_last(fitted: VHE) -> None:
    graph = fitted._graph
    directions = text_directions(graph, fitted._corpus)
    texts = encoded(fitted, ["t0w1", "t1w1"])
    found = embed_new(graph, directions, fitted.network_.degrees, texts, NO_LINKS)
    grown = inductive.extended(graph, found, no_vectors(texts))
    assert isinstance(grown, GraphModel)
    for name in ("mean", "variance", "precision", "diagonal"):
        rows = getattr(grown, name)
        np.testing.assert_array_equal(rows[:60], getattr(graph, name))
        np.testing.assert_array_equal(rows[60:], getattr(found, name))
    assert grown.words is graph.words
    np.testing.assert_allclose(grown.own_share[60:], found.precision / found.diagonal)
    assert len(graph.mean) == 60


def test_texts_with_a_negative_cosine_are_not_coupled(hasty: Callable[..., VHE]) -> None:
    """In a network of six vertices all are among the nearest."""
    texts = ["cats purr", "cats sleep", "dogs bark", "dogs run", "stars shine", "stars turn"]
    model = hasty().fit(TextNetwork(range(6), texts, [[0, 1], [2, 3], [4, 5]]))
    graph, new = model._graph, encoded(model, ["cats purr sleep"])
    directions = text_directions(graph, model._corpus)
    cosines = directions @ text_directions(graph, new)[0]
    assert (cosines < -0.1).any()
    assert (cosines > 0.1).any()
    found = embed_new(graph, directions, model.network_.degrees, new, NO_LINKS)
    total = inductive.NEW_TEXT_KNN_WEIGHT * np.maximum(cosines, 0).sum() / (NEIGHBOURS + 1)
    assert found.diagonal[0] - found.precision[0] == pytest.approx(total, rel=1e-4)


def test_the_variance_of_a_vertex_that_reads_others_against_the_joint_covariance() -> None:
    """Exact where the codes that it reads are independent; a lower bound otherwise."""
    rng = np.random.default_rng(0)
    weights = np.abs(rng.normal(size=(6, 6)))
    weights = np.triu(weights, 1) + np.triu(weights, 1).T
    covariance = np.linalg.inv(np.eye(6) + np.diag(weights.sum(axis=1)) - weights)
    coupling = np.abs(rng.normal(size=(3, 6)))
    diagonal = 1 + coupling.sum(axis=1)

    def exact(read: np.ndarray) -> np.ndarray:
        return 1 / diagonal + np.einsum("ki,ij,kj->k", coupling, read, coupling) / diagonal**2

    found = marginal_variance(sparse.csr_array(coupling), diagonal, np.diag(covariance))
    np.testing.assert_allclose(found, exact(np.diag(np.diag(covariance))))
    assert (1 / diagonal < found).all()
    assert (found < exact(covariance)).all()


def test_directions_of_added_texts_are_those_of_the_whole_network(fitted: VHE) -> None:
    model = copy.copy(fitted)
    model.add_vertices({"new": "t2w4 t2w5", "empty": ""})
    found = model._directions
    model.__dict__.pop("_directions")
    np.testing.assert_array_equal(found, model._directions)
