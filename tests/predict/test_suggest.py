"""Likeliest partners without a link: exactly, or nearly all of them from an approximate index."""

import importlib.util

import numpy as np
import pytest

from vhe.predict import suggest
from vhe.predict.suggest import nearest, partners

has_usearch = importlib.util.find_spec("usearch") is not None


def clusters(n: int, d: int = 16, of: int = 20) -> np.ndarray:
    """Rows in clusters of about ``of`` each."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(n // of + 1, d))
    rows = centres[rng.integers(len(centres), size=n)] + 0.3 * rng.normal(size=(n, d))
    return rows.astype(np.float32)


def naive_partners(rows: np.ndarray, links: np.ndarray, k: int) -> list[list[int]]:
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    linked = {frozenset(link) for link in links.tolist()}
    found = []
    for i in range(len(rows)):
        order = np.argsort(-(unit @ unit[i]), kind="stable").tolist()
        found.append([j for j in order if j != i and frozenset((i, j)) not in linked][:k])
    return found


@pytest.mark.parametrize("at_once", [30, 2**22])
@pytest.mark.parametrize("k", [1, 4, 200])
def test_partners_against_a_loop(k: int, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suggest, "SCORES_AT_ONCE", at_once)
    rows = clusters(40)
    links = np.random.default_rng(1).integers(40, size=(150, 2))
    links = links[links[:, 0] != links[:, 1]]
    partner, cosine = partners(rows, links, k)
    assert partner.shape == cosine.shape == (40, min(k, 39))
    for row, expected in enumerate(naive_partners(rows, links, k)):
        found = partner[row][partner[row] >= 0]
        assert found.tolist() == expected
        assert (partner[row][len(found) :] == -1).all()
        assert np.isneginf(cosine[row][len(found) :]).all()
        unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        np.testing.assert_allclose(cosine[row][: len(found)], unit[found] @ unit[row], atol=1e-5)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_complete_graph_has_no_partners(n: int) -> None:
    links = np.array([[i, j] for i in range(n) for j in range(i)]).reshape(-1, 2).astype(np.int64)
    partner, _ = partners(np.eye(n, dtype=np.float32), links, 3)
    assert (partner == -1).all()
    assert partners(np.eye(n, dtype=np.float32), links, 0)[0].shape == (n, 0)


def test_partners_with_a_degree_bias() -> None:
    rows, bias = clusters(40), np.linspace(-0.5, 0.5, 40, dtype=np.float32)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    scores = unit @ unit.T + bias + bias[:, None]
    np.fill_diagonal(scores, -np.inf)
    partner, found = partners(rows, np.zeros((0, 2), dtype=np.int64), 4, bias)
    np.testing.assert_array_equal(partner, np.argsort(-scores, axis=1)[:, :4])
    np.testing.assert_allclose(found, np.take_along_axis(scores, partner, axis=1), atol=1e-5)


@pytest.mark.skipif(not has_usearch, reason="usearch is not installed")
@pytest.mark.parametrize("degree_weight", [0.0, 0.1])
def test_an_index_finds_nearly_all_partners_and_no_link(
    degree_weight: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    n, k = 3000, 10
    rows, rng = clusters(n), np.random.default_rng(2)
    bias = (degree_weight * rng.exponential(size=n)).astype(np.float32)
    hub = np.column_stack([np.zeros(200, int), rng.choice(np.arange(1, n), 200, replace=False)])
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    close = np.column_stack([np.arange(n), (unit @ unit.T - 2 * np.eye(n)).argmax(axis=1)])
    links = np.concatenate([hub, close])
    exact, cosine = partners(rows, links, k, bias)
    monkeypatch.setattr(suggest, "EXACT_UP_TO", 1000)
    found, by_index = partners(rows, links, k, bias)
    recall = np.mean([len(set(a) & set(b)) / k for a, b in zip(exact, found, strict=True)])
    assert recall > 0.95
    np.testing.assert_array_equal(
        found[0], exact[0]
    )  # has more links than SPARE: compared with all
    linked = {frozenset(link) for link in links.tolist()}
    assert not any(frozenset((i, j)) in linked for i in range(n) for j in found[i].tolist())
    same = found == exact
    np.testing.assert_allclose(by_index[same], cosine[same], atol=1e-5)  # ranked exactly


def test_without_the_index_all_vertices_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, links = clusters(60), np.array([[0, 1], [2, 3]])
    exact, _ = partners(rows, links, 3)
    monkeypatch.setattr(suggest, "EXACT_UP_TO", 10)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.warns(UserWarning, match=r"vhe\[search\]"):
        found, _ = partners(rows, links, 3)
    np.testing.assert_array_equal(found, exact)


def test_nearest_rows_to_a_vector() -> None:
    rows = np.array([[1, 0], [0, 2], [3, 3], [0, 0]], dtype=np.float32)
    best, cosine = nearest(rows, np.array([1, 1], dtype=np.float32), 3)
    assert best.tolist() == [2, 0, 1]
    np.testing.assert_allclose(cosine, [1, 0.5**0.5, 0.5**0.5], rtol=1e-6)
    assert nearest(rows, np.zeros(2, dtype=np.float32), 9)[1].tolist() == [0] * 4
