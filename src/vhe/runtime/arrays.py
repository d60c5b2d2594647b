"""Small operations on arrays that several packages share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def unit_rows(rows: NDArray[Any]) -> NDArray[Any]:
    """Rows (n, d) scaled to unit length; rows of zeros stay."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(length > 0, length, 1)


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """The distinct values, ascending: `np.unique` by sorting, which is faster than by hashing."""
    ordered = np.sort(values, axis=None)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]
