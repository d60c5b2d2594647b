"""Likeliest partners without a link: exactly, or nearly all of them from candidates."""

import importlib.util
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from vhe.predict import suggest
from vhe.predict.link_posterior import LinkPosterior
from vhe.predict.pair_features import VertexRows, vertex_rows
from vhe.predict.suggest import exact_partners, nearest, partners

has_usearch = importlib.util.find_spec("usearch") is not None

COSINE = LinkPosterior({"embedding": 1.0}, 0.0)
EVERYTHING = LinkPosterior(
    {
        "embedding": 2.0,
        "weak links": 0.5,
        "strong links": 0.5,
        "words": 0.3,
        "degree": 0.3,
        "isolated": -0.5,
        "structure": 0.2,
        "neighbours": 1.0,
    },
    -1.0,
)
NO_LINKS = np.zeros((0, 2), dtype=np.int64)


def clusters(n: int, d: int = 16, of: int = 20, seed: int = 0) -> np.ndarray:
    """Rows in clusters of about ``of`` each."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n // of + 1, d))
    rows = centres[np.arange(n) % len(centres)] + 0.3 * rng.normal(size=(n, d))
    return rows.astype(np.float32)


def vertices(n: int, links: np.ndarray, names: tuple[str, ...] = ()) -> VertexRows:
    """Vertices in clusters, with words of their cluster and words that are rare."""
    rng = np.random.default_rng(3)
    topics = n // 20 + 1
    words = np.zeros((n, topics + n // 4), dtype=np.float32)
    words[np.arange(n), np.arange(n) % topics] = 1
    words[np.arange(n), topics + rng.integers(n // 4, size=n)] = 2
    words /= np.linalg.norm(words, axis=1, keepdims=True)
    scales = {
        name: clusters(n, seed=seed)
        for seed, name in enumerate(("embedding", "weak links", "strong links"))
    }
    distinct = np.unique(np.sort(links, axis=1), axis=0)
    return vertex_rows(scales, sparse.csr_array(words), distinct, names, seed=0)


def random_links(n: int, m: int) -> np.ndarray:
    links = np.random.default_rng(1).integers(n, size=(m, 2))
    return links[links[:, 0] != links[:, 1]]


def naive_partners(
    posterior: LinkPosterior, rows: VertexRows, links: np.ndarray, k: int
) -> list[list[tuple[int, float]]]:
    linked = {frozenset(link) for link in links.tolist()}
    found = []
    for i in range(len(rows)):
        others = [j for j in range(len(rows)) if j != i and frozenset((i, j)) not in linked]
        scores = posterior.log_odds(rows, np.full(len(others), i), np.array(others, dtype=int))
        order = np.argsort(-scores, kind="stable")[:k]
        found.append([(others[position], float(scores[position])) for position in order])
    return found


@pytest.mark.parametrize("posterior", [COSINE, EVERYTHING], ids=["cosine", "everything"])
@pytest.mark.parametrize("at_once", [30, 2**22])
@pytest.mark.parametrize("k", [1, 4, 200])
def test_partners_against_a_loop(
    posterior: LinkPosterior, k: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suggest, "SCORES_AT_ONCE", at_once)
    links = random_links(40, 150)
    rows = vertices(40, links, posterior.names)
    partner, score = partners(posterior, rows, k)
    assert partner.shape == score.shape == (40, min(k, 39))
    for row, expected in enumerate(naive_partners(posterior, rows, links, k)):
        found = partner[row][partner[row] >= 0]
        assert (partner[row][len(found) :] == -1).all()
        assert np.isneginf(score[row][len(found) :]).all()
        scores = [value for _, value in expected]
        np.testing.assert_allclose(score[row][: len(found)], scores, atol=1e-4)
        assert found.tolist() == [j for j, _ in expected]


def test_partners_of_some_vertices() -> None:
    links = random_links(40, 100)
    rows = vertices(40, links, EVERYTHING.names)
    partner, score = partners(EVERYTHING, rows, 5)
    queries = np.array([31, 2])
    some, scores = exact_partners(EVERYTHING, rows, 5, queries)
    np.testing.assert_array_equal(some, partner[queries])
    np.testing.assert_allclose(scores, score[queries], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_complete_graph_has_no_partners(n: int) -> None:
    links = np.array([[i, j] for i in range(n) for j in range(i)]).reshape(-1, 2).astype(np.int64)
    rows = vertex_rows({"embedding": np.eye(n)}, sparse.csr_array((n, 1)), links, (), seed=0)
    partner, score = partners(COSINE, rows, 3)
    assert (partner == -1).all()
    assert np.isneginf(score).all()
    assert partners(COSINE, rows, 0)[0].shape == (n, 0)


def test_partners_with_many_links_are_likelier_where_the_degree_counts() -> None:
    links = np.array([(0, k) for k in range(1, 20)])
    rows = vertex_rows({"embedding": np.eye(40)}, sparse.csr_array((40, 1)), links, (), seed=0)
    degree = LinkPosterior({"embedding": 1.0, "degree": 0.5}, 0.0)
    partner, score = partners(degree, rows, 1)
    assert (partner[20:, 0] == 0).all()
    np.testing.assert_allclose(score[20:, 0], 0.5 * np.log(20), rtol=1e-6)


# --- candidates


@pytest.fixture
def exact_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exact search in place of the index, which is optional."""

    def found(unit: np.ndarray, among: np.ndarray, count: int) -> np.ndarray:
        order: np.ndarray = np.argsort(-(unit @ unit[among].T), axis=1)[:, :count]
        return among[order]

    monkeypatch.setattr(suggest, "_index_is_installed", lambda: True)
    monkeypatch.setattr(suggest, "_nearest_in_index", found)


def close_links(rows: np.ndarray) -> np.ndarray:
    """A hub, and the nearest vertex of each vertex."""
    n, rng = len(rows), np.random.default_rng(2)
    hub = np.column_stack([np.zeros(200, int), rng.choice(np.arange(1, n), 200, replace=False)])
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    close = np.column_stack([np.arange(n), (unit @ unit.T - 2 * np.eye(n)).argmax(axis=1)])
    return np.concatenate([hub, close])


def assert_nearly_all_are_found(
    posterior: LinkPosterior, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    k, links = 10, close_links(clusters(n))
    rows = vertices(n, links, posterior.names)
    exact, scores = partners(posterior, rows, k)
    monkeypatch.setattr(suggest, "EXACT_UP_TO", 100)
    found, by_candidates = partners(posterior, rows, k)
    recall = np.mean([len(set(a) & set(b)) / k for a, b in zip(exact, found, strict=True)])
    assert recall >= 0.95
    linked = {frozenset(link) for link in links.tolist()}
    for i in range(n):
        chosen = found[i][found[i] >= 0].tolist()
        assert i not in chosen
        assert len(set(chosen)) == len(chosen)
        assert not any(frozenset((i, j)) in linked for j in chosen)
    assert (np.diff(by_candidates, axis=1) <= 0).all()
    same = found == exact
    np.testing.assert_allclose(by_candidates[same], scores[same], atol=1e-4)  # scored exactly


POSTERIORS = {
    "cosine": COSINE,
    "degree": LinkPosterior({"embedding": 1.0, "degree": 0.3}, 0.0),
    "everything": EVERYTHING,
    "few features": LinkPosterior({"embedding": 1.0, "words": 0.5, "neighbours": 0.0}, 0.5),
}


@pytest.mark.parametrize("name", POSTERIORS)
def test_candidates_include_nearly_all_partners_and_no_link(
    name: str, exact_index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_nearly_all_are_found(POSTERIORS[name], 1200, monkeypatch)


@pytest.mark.skipif(not has_usearch, reason="usearch is not installed")
@pytest.mark.parametrize("name", POSTERIORS)
def test_an_index_finds_nearly_all_partners_and_no_link(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_nearly_all_are_found(POSTERIORS[name], 3000, monkeypatch)


@pytest.mark.parametrize("name", ["words", "neighbours", "degree"])
def test_each_feature_has_its_own_candidates(
    name: str, exact_index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where one feature alone decides, the likeliest partner is found although it is not near."""
    n, links = 300, random_links(300, 900)
    rows = vertices(n, links)
    noise = np.random.default_rng(0).normal(size=(n, 8)).astype(np.float32)
    rows = replace(rows, scales={"embedding": noise})
    monkeypatch.setattr(suggest, "NEAREST", 0)
    posterior = LinkPosterior({"embedding": 1e-3, name: 1.0}, 0.0)
    _, scores = partners(posterior, rows, 1)
    monkeypatch.setattr(suggest, "EXACT_UP_TO", 100)
    _, found = partners(posterior, rows, 1)
    assert np.mean(found[:, 0] > scores[:, 0] - 0.1) > 0.95
    _, near = partners(replace(posterior, weights={"embedding": 1e-3}), rows, 1)
    assert np.mean(near[:, 0] > scores[:, 0] - 0.1) < 0.5


def test_isolated_vertices_have_candidates_of_their_own(
    exact_index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pair with an isolated vertex may be likely although many others are nearer."""
    links = close_links(clusters(1200))
    links = links[(links % 7 > 0).all(axis=1)]
    rows = vertices(1200, links)
    assert 100 < (rows.degree == 0).sum() < 300
    rare = LinkPosterior({"embedding": 1.0}, 0.0, {"embedding": 1.0}, 5.0)
    exact, _ = partners(rare, rows, 5)
    linked = rows.degree > 0
    assert (rows.degree[exact[linked]] == 0).all()
    monkeypatch.setattr(suggest, "EXACT_UP_TO", 100)
    monkeypatch.setattr(suggest, "NEAREST", 0)
    found, _ = partners(rare, rows, 5)
    np.testing.assert_array_equal(found[linked], exact[linked])


def test_largest_products_against_dense_rows() -> None:
    dense = np.random.default_rng(0).poisson(0.4, size=(30, 12)).astype(np.float32)
    dense *= np.random.default_rng(1).uniform(size=12).astype(np.float32)
    left = sparse.csr_array(dense)
    found = suggest._largest_products(left, left.T.tocsr(), 3)
    products = dense @ dense.T
    for row in range(30):
        positive = np.flatnonzero(products[row] > 0)
        expected = np.sort(products[row][positive])[::-1][:3]
        chosen = found[row][found[row] >= 0]
        np.testing.assert_allclose(products[row][chosen], expected, rtol=1e-5)
        assert (found[row][len(chosen) :] == -1).all()


def test_without_the_index_all_vertices_are_compared(
    monkeypatch: pytest.MonkeyPatch, logs: Any
) -> None:
    rows = vertices(60, np.array([[0, 1], [2, 3]]))
    exact, _ = partners(COSINE, rows, 3)
    monkeypatch.setattr(suggest, "EXACT_UP_TO", 10)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with logs(r"vhe\[search\]"):
        found, _ = partners(COSINE, rows, 3)
    np.testing.assert_array_equal(found, exact)


def test_nearest_rows_to_a_vector() -> None:
    rows = np.array([[1, 0], [0, 2], [3, 3], [0, 0]], dtype=np.float32)
    best, cosine = nearest(rows, np.array([1, 1], dtype=np.float32), 3)
    assert best.tolist() == [2, 0, 1]
    np.testing.assert_allclose(cosine, [1, 0.5**0.5, 0.5**0.5], rtol=1e-6)
    assert nearest(rows, np.zeros(2, dtype=np.float32), 9)[1].tolist() == [0] * 4
