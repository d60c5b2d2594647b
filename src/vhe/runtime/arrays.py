"""Small operations on arrays that several packages share."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCK = 1 << 25  # bytes of a table that are read at a time


def unit_rows(rows: NDArray[Any]) -> NDArray[Any]:
    """Rows (n, d) scaled to unit length; rows of zeros stay."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(length > 0, length, 1)


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """The distinct values, ascending: `np.unique` by sorting, which is faster than by hashing."""
    ordered = np.sort(values, axis=None)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]


def blocks(table: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Consecutive rows of a table, with the number of the first; mapped memory is released."""
    size = max(BLOCK // max(table[:1].nbytes, 1), 1)
    for start in range(0, len(table), size):
        block = np.asarray(table[start : start + size])
        yield start, block
        release(table)


def release(table: NDArray[Any]) -> None:
    """Give back the memory of a mapped table; of others, do nothing."""
    base: Any = table
    while isinstance(base, np.ndarray) and not isinstance(base.base, mmap.mmap):
        base = base.base
    mapped = getattr(base, "base", None)
    if isinstance(mapped, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)
