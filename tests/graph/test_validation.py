"""The ranking of held-out links against a loop."""

import numpy as np
import pytest

from vhe.graph.validation import ranking_auc, win_rates


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    length = np.linalg.norm(a) * np.linalg.norm(b)
    return float(a @ b / length) if length else 0.0


def test_win_rates_against_a_loop():
    rng = np.random.default_rng(0)
    codes = rng.integers(-2, 3, size=(12, 2)).astype(np.float64)  # with ties
    codes[3] = 0
    links = np.array([[0, 1], [0, 2], [3, 4], [5, 6], [6, 0], [7, 8], [9, 10], [10, 11]])
    linked = {frozenset(link) for link in links.tolist()}
    expected = []
    for link in links.tolist():
        for i, j in (link, link[::-1]):
            reached = cosine(codes[i], codes[j])
            others = [k for k in range(12) if k != i and frozenset((i, k)) not in linked]
            scores = [cosine(codes[i], codes[k]) for k in others]
            wins = [0.5 if abs(s - reached) < 1e-12 else float(s < reached) for s in scores]
            expected.append(np.mean(wins))
    unit = codes / np.maximum(np.linalg.norm(codes, axis=1, keepdims=True), 1e-12)
    exact = np.round(unit @ unit.T, 9)
    found = win_rates(codes, links)
    ties = any(len(np.unique(row)) < 12 for row in exact)
    assert ties
    # rounding may break a tie of two different pairs, which moves one win by one half
    assert found == pytest.approx(expected, abs=0.5 / 9)
    assert np.mean(found) == pytest.approx(np.mean(expected), abs=0.02)
    auc = ranking_auc(codes, links)
    assert auc == pytest.approx(np.mean(found))


def test_win_rates_without_ties_are_exact():
    rng = np.random.default_rng(1)
    codes = rng.normal(size=(10, 4)).astype(np.float32)
    links = np.array([[0, 1], [2, 3], [4, 5], [0, 5], [6, 7], [8, 9]])
    linked = {frozenset(link) for link in links.tolist()}
    expected = [
        np.mean(
            [
                cosine(codes[i], codes[k]) < cosine(codes[i], codes[j])
                for k in range(10)
                if k != i and frozenset((i, k)) not in linked
            ]
        )
        for link in links.tolist()
        for i, j in (link, link[::-1])
    ]
    np.testing.assert_allclose(win_rates(codes, links), expected)


def test_equal_codes_win_half():
    links = np.array([[0, 1], [2, 3]])
    assert win_rates(np.ones((4, 2), np.float32), links) == pytest.approx([0.5] * 4)
    assert ranking_auc(np.ones((4, 2), np.float32), links) == 0.5


def test_nothing_to_compare_with():
    codes = np.ones((2, 3), np.float32)
    assert np.isnan(win_rates(codes, np.array([[0, 1]]))).all()
    assert ranking_auc(codes, np.array([[0, 1]])) is None
