"""Vectors that the user gives: standardisation, the same for the vertices of the fit and new ones.

    x'_ic = (x_ic - mean_c) / scale_c

with the mean and the standard deviation of each column over the vertices that have a vector.
Constant columns are dropped. A row of zeros means that the vertex has no vector, and stays zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from vhe.data.attributes import Vectors, checked_vectors
from vhe.errors import VHEError
from vhe.runtime.arrays import release
from vhe.runtime.messages import counted

BLOCK = 16_384  # rows that are converted to float64 at a time
SHOWN_COLUMNS = 10


@dataclass(frozen=True, eq=False)
class Standardisation:
    """The transformation of given vectors.

    Attributes
    ----------
    width : number of columns of the given vectors
    columns : (k,) numbers of the columns that are not constant
    mean, scale : (k,) mean and standard deviation of these columns
    """

    width: int
    columns: NDArray[np.int64]
    mean: NDArray[np.float64]
    scale: NDArray[np.float64]

    @classmethod
    def fit(cls, vectors: Any) -> Self:
        """Find the transformation for vectors (n, k)."""
        # what an encoder has written to a file is finite, and too large to be copied
        checked = vectors if isinstance(vectors, np.memmap) else checked_vectors(vectors)
        count = sum(len(rows) for rows in _filled_blocks(checked))
        if not count:
            raise VHEError("all vectors are zero; give a vector for at least two vertices.")
        low = np.min([rows.min(axis=0) for rows in _filled_blocks(checked)], axis=0)
        high = np.max([rows.max(axis=0) for rows in _filled_blocks(checked)], axis=0)
        columns = np.flatnonzero(low < high)
        if not len(columns):
            raise VHEError(
                "every column of the vectors is constant, so that they distinguish no vertices; "
                "give vectors that differ."
            )
        mean = sum(rows.sum(axis=0) for rows in _filled_blocks(checked)) / count
        square = sum(((rows - mean) ** 2).sum(axis=0) for rows in _filled_blocks(checked)) / count
        return cls(checked.shape[1], columns, mean[columns], np.sqrt(square)[columns])

    def __call__(self, vectors: Any, row_name: Callable[[int], str] = "row {}".format) -> Vectors:
        """Return the standardised vectors: (n, width) to (n, k)."""
        checked = checked_vectors(vectors, row_name=row_name)
        if checked.shape[1] != self.width:
            raise VHEError(
                f"the vectors have {counted(checked.shape[1], 'column')} but those of the fit have "
                f"{self.width:,}; give the same columns."
            )
        result = np.zeros((len(checked), len(self.columns)), dtype=np.float32)
        for start in range(0, len(checked), BLOCK):
            rows = checked[start : start + BLOCK]
            filled = rows.any(axis=1)
            chosen = rows[filled][:, self.columns].astype(np.float64)
            result[start : start + BLOCK][filled] = (chosen - self.mean) / self.scale
        return result

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on what was dropped."""
        dropped = self.width - len(self.columns)
        if not dropped:
            return ()
        constant = np.setdiff1d(np.arange(self.width), self.columns)
        names = ", ".join(map(str, islice(constant, SHOWN_COLUMNS)))
        more = ", …" if dropped > SHOWN_COLUMNS else ""
        noun = counted(dropped, "constant column")
        return (f"{noun} of the vectors dropped (numbers from 0: {names}{more})",)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays from which `from_arrays` makes the same transformation."""
        return {
            "width": np.array(self.width),
            "columns": self.columns,
            "mean": self.mean,
            "scale": self.scale,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Self:
        """Restore a transformation; `arrays` may be tensors."""
        columns = np.asarray(arrays["columns"], dtype=np.int64)
        mean, scale = (np.asarray(arrays[name], dtype=np.float64) for name in ("mean", "scale"))
        width = int(arrays["width"])
        if not columns.ndim == mean.ndim == scale.ndim == 1 or not (
            0 < len(columns) == len(mean) == len(scale)
            and 0 <= columns.min() <= columns.max() < width
            and np.isfinite(mean).all()
            and (np.isfinite(scale) & (scale > 0)).all()
        ):
            raise VHEError("the standardisation of the vectors is inconsistent; fit again.")
        return cls(width, columns, mean, scale)


def _filled_blocks(vectors: Vectors) -> Iterator[NDArray[np.float64]]:
    """Yield the rows that are not zero, some thousand at a time."""
    for start in range(0, len(vectors), BLOCK):
        rows = vectors[start : start + BLOCK]
        filled = rows.any(axis=1)
        if filled.any():
            yield rows[filled].astype(np.float64)
        release(vectors)
