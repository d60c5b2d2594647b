"""Cosine scores of pairs and of all combinations of vertices."""

import numpy as np
import pytest

from vhe.predict import scoring
from vhe.predict.scoring import CosineMethod


def method(rows: np.ndarray) -> CosineMethod:
    made = CosineMethod()
    made.embedding_ = rows
    return made


def test_scores_are_cosines(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 6)).astype(np.float32)
    i, j = rng.integers(30, size=(2, 50))
    expected = [
        rows[a] @ rows[b] / (np.linalg.norm(rows[a]) * np.linalg.norm(rows[b]))
        for a, b in zip(i, j, strict=True)
    ]
    np.testing.assert_allclose(method(rows).score_indices(i, j), expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(np.diag(method(rows).score_matrix(i, j)), expected, atol=1e-6)
    monkeypatch.setattr(scoring, "PAIRS_AT_ONCE", 7)
    np.testing.assert_allclose(method(rows).score_indices(i, j), expected, rtol=1e-4, atol=1e-6)


def test_the_length_of_a_row_does_not_matter() -> None:
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(9, 4)).astype(np.float32)
    i, j = np.arange(8), np.arange(1, 9)
    found = method(rows * rng.uniform(0.1, 9, size=(9, 1))).score_indices(i, j)
    np.testing.assert_allclose(found, method(rows).score_indices(i, j), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(method(rows).score_indices(i, i), 1, rtol=1e-5)


def test_the_cosine_with_a_row_of_zeros_is_zero() -> None:
    rows = np.array([[0, 0], [1, 2]], dtype=np.float32)
    assert method(rows).score_indices(np.array([0, 1, 0]), np.array([1, 0, 0])).tolist() == [0] * 3
    assert method(rows).score_matrix(np.arange(2), np.array([0])).tolist() == [[0], [0]]


def test_very_long_and_very_short_rows() -> None:
    rows = np.array([[1e15, 0], [1e-15, 0]], dtype=np.float32)
    assert method(rows).score_indices(np.array([0]), np.array([1])) == pytest.approx([1])


def test_no_pairs() -> None:
    none = np.zeros(0, dtype=np.int64)
    assert method(np.eye(3)).score_indices(none, none).shape == (0,)
    assert method(np.eye(3)).score_matrix(none, np.arange(3)).shape == (0, 3)
