"""Validation of numeric attributes: vectors of vertices and weights of edges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vhe.errors import VHEError
from vhe.runtime.messages import counted, shown

Vectors = NDArray[np.float32]
Weights = NDArray[np.float64]


def checked_vectors(
    vectors: Any, count: int | None = None, row_name: Callable[[int], str] = "row {}".format
) -> Vectors:
    """Return vectors as a read-only float32 array: (n, k), k ≥ 1.

    It is a copy unless `vectors` is such an array itself.

    Parameters
    ----------
    vectors : (n, k) array-like or sparse matrix
        Finite numbers; a row of zeros stands for a vertex without vector.
    count : int, optional
        The required n.
    row_name : callable
        Name of a row in error messages.
    """
    try:
        given = np.asarray(vectors.toarray() if hasattr(vectors, "toarray") else vectors)
    except ValueError:  # rows of different lengths
        lengths = [np.size(row) for row in vectors]
        row = next(k for k, length in enumerate(lengths) if length != lengths[0])
        raise VHEError(
            f"vectors: {row_name(row)} has {counted(lengths[row], 'value')} but {row_name(0)} has "
            f"{lengths[0]:,}; give vectors of equal length."
        ) from None
    if given.dtype.kind == "O":
        with suppress(TypeError, ValueError):
            given = given.astype(np.float64)  # None becomes NaN
    if given.dtype.kind not in "biuf":
        raise VHEError(f"vectors must be numbers, not {given.dtype}.")
    if given.ndim != 2 or given.shape[1] == 0:
        raise VHEError(f"vectors must be an (n, k) array, not one of shape {given.shape}.")
    if count is not None and len(given) != count:
        raise VHEError(
            f"{counted(count, 'vertex', 'vertices')} but {counted(len(given), 'vector')}; give a "
            "row of zeros for a vertex without vector."
        )
    array = given
    if given.dtype != np.float32 or given.flags.writeable or given.base is not None:
        with np.errstate(over="ignore"):
            array = np.array(given, dtype=np.float32)
    if not np.isfinite(array.sum(dtype=np.float64)):  # float64 holds any sum of float32
        wrong = np.argwhere(~np.isfinite(array))
        row, column = wrong[0].tolist()
        more = f" (and {counted(len(wrong) - 1, 'more value')})" if len(wrong) > 1 else ""
        raise VHEError(
            f"vectors: {row_name(row)}, column {column} is {given[row, column]}{more}; replace "
            "NaN, infinities and numbers beyond 1e38."
        )
    array.setflags(write=False)
    return array


def stacked_vectors(rows: Sequence[Any], row_name: Callable[[int], str]) -> Vectors:
    """Stack one vector per vertex, zeros where it is None: (n, k); see `checked_vectors`."""
    given = [row for row in rows if row is not None]
    if not given:
        raise VHEError("no vertex has a vector; check the name of the attribute or column.")
    nothing = np.zeros(np.size(given[0]), dtype=np.float32)
    return checked_vectors([nothing if row is None else row for row in rows], row_name=row_name)


def checked_weights(weights: ArrayLike, count: int) -> Weights:
    """Return edge weights as a read-only copy: (m,), finite and positive."""
    try:
        array = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise VHEError("edge weights must be numbers; give one per edge.") from None
    if array.shape != (count,):
        raise VHEError(
            f"edge weights have the shape {array.shape} for {counted(count, 'edge')}; give one "
            "weight per edge."
        )
    wrong = np.flatnonzero(~(np.isfinite(array) & (array > 0)))
    if len(wrong):
        row = int(wrong[0])
        raise VHEError(
            f"the weight of edge {row} is {shown(array[row].item())}; weights must be positive and "
            "finite."
        )
    array.setflags(write=False)
    return array
