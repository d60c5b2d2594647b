"""Standardisation of given vectors against numpy, its checks, and that it can be stored."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import sparse

from vhe.errors import VHEError
from vhe.text import features
from vhe.text.features import Standardisation


@pytest.fixture
def vectors() -> np.ndarray:
    rows = np.random.default_rng(0).normal(3, [1, 100, 1e-3, 1], size=(30, 4))
    rows[:, 3] = 7  # constant
    rows[[4, 9]] = 0  # without vector
    return rows.astype(np.float32)


@pytest.mark.parametrize("block", [7, 16_384])
def test_columns_are_standardised_over_the_vertices_with_vectors(
    vectors: np.ndarray, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(features, "BLOCK", block)
    scaling = Standardisation.fit(vectors)
    found = scaling(vectors)
    filled = np.delete(np.arange(30), [4, 9])
    rows = vectors[filled][:, :3].astype(np.float64)
    expected = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    np.testing.assert_allclose(found[filled], expected, atol=1e-4)
    assert found.dtype == np.float32
    assert not found[[4, 9]].any()
    assert scaling.columns.tolist() == [0, 1, 2]
    assert scaling.notes == ("1 constant column of the vectors dropped (numbers from 0: 3)",)


def test_new_vertices_are_transformed_as_those_of_the_fit(vectors: np.ndarray) -> None:
    scaling = Standardisation.fit(vectors)
    np.testing.assert_array_equal(scaling(vectors[10:12]), scaling(vectors)[10:12])
    assert scaling(vectors[:0]).shape == (0, 3)
    with pytest.raises(VHEError, match="have 3 columns but those of the fit have 4"):
        scaling(vectors[:, :3])


def test_sparse_matrices_integers_and_booleans(vectors: np.ndarray) -> None:
    binary = (vectors > 3)[:, :3]
    expected = Standardisation.fit(binary)(binary)
    for given_as in (sparse.csr_array(binary), binary.astype(int), binary.tolist()):
        np.testing.assert_array_equal(Standardisation.fit(given_as)(given_as), expected)


def test_many_constant_columns_are_listed_in_part() -> None:
    rows = np.ones((3, 40))
    rows[:, 39] = [1, 2, 3]
    (note,) = Standardisation.fit(rows).notes
    assert note.startswith("39 constant columns")
    assert note.endswith("7, 8, 9, …)")
    assert Standardisation.fit(rows[:, 39:]).notes == ()


def test_it_can_be_stored(vectors: np.ndarray) -> None:
    import torch

    scaling = Standardisation.fit(vectors)
    stored = {name: torch.from_numpy(np.array(a)) for name, a in scaling.arrays().items()}
    restored = Standardisation.from_arrays(stored)
    np.testing.assert_array_equal(restored(vectors), scaling(vectors))
    assert restored.notes == scaling.notes
    for name, damaged in (
        ("scale", np.zeros(3)),
        ("mean", np.full(3, np.nan)),
        ("mean", np.zeros(2)),
        ("columns", np.array([0, 1, 9])),
        ("columns", np.empty(0)),
        ("width", np.array(2)),
    ):
        with pytest.raises(VHEError, match="standardisation of the vectors is inconsistent"):
            Standardisation.from_arrays(scaling.arrays() | {name: damaged})


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (np.zeros((3, 2)), "all vectors are zero"),
        ([[1, 2], [1, 2], [0, 0]], "every column of the vectors is constant"),
        ([[1, 2], [np.nan, 3], [np.inf, 4]], r"row 1, column 0 is nan \(and 1 more value\)"),
        ([[1, 2], [3, -np.inf]], "row 1, column 1 is -inf; replace"),
        ([[1, 2], [3, 1e39]], r"row 1, column 1 is 1e\+39"),
        ([[1, 2], [3, None]], "row 1, column 1 is nan"),
        ([[1, 2], [3]], "row 1 has 1 value but row 0 has 2"),
        ([["a", "b"]], "vectors must be numbers"),
        ([[1, "b"]], "vectors must be numbers"),
        ([[1j, 2]], "vectors must be numbers, not complex128"),
        ([1, 2, 3], r"\(n, k\) array, not one of shape \(3,\)"),
        (np.zeros((3, 0)), r"not one of shape \(3, 0\)"),
    ],
)
def test_wrong_vectors_are_refused(rows, sentence: str) -> None:
    with pytest.raises(VHEError, match=sentence):
        Standardisation.fit(rows)


@given(
    arrays.arrays(
        np.float32,
        st.tuples(st.integers(2, 6), st.integers(1, 4)),
        elements=st.floats(width=32, allow_nan=False, allow_infinity=False),
    )
)
def test_results_are_finite_and_of_unit_variance(rows: np.ndarray) -> None:
    try:
        found = Standardisation.fit(rows)(rows)
    except VHEError:
        filled = rows[rows.any(axis=1)]
        assert not len(filled) or (filled == filled[0]).all()
        return
    assert np.isfinite(found).all()
    filled = found[rows.any(axis=1)].astype(np.float64)
    np.testing.assert_allclose(filled.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(filled.std(axis=0), 1, atol=1e-5)
