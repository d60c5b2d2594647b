"""Codes of the vectors of vertices, given or encoded, beside the text codes of words.

    a_i = √d · y_i / ‖y_i‖,    y_i = P (x'_i),

x' the standardised vectors (`features.py`) and P their leading principal components: a row has the
length of a text code. The code of a vertex joins both, with the share w of the squared length:

    m_i = [ √(1 - w) · text code, √w · a_i ]

so that cosines are mixed by w, and the posterior of both is solved at once. A vertex without vector
has a_i = 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from vhe.data.attributes import Vectors
from vhe.errors import VHEError
from vhe.runtime.arrays import release, unit_rows
from vhe.runtime.tables import new_table
from vhe.text.features import BLOCK, Standardisation


@dataclass(frozen=True, eq=False)
class VectorCodes:
    """The transformation of vectors to codes, the same for the vertices of the fit and new ones.

    Attributes
    ----------
    standardisation : of the given columns, k of which are not constant
    components : (k, p)
    length : √d, of the rows of the result
    """

    standardisation: Standardisation
    components: NDArray[np.float32]
    length: float

    @classmethod
    def fit(cls, vectors: Any, dim: int, seed: int) -> Self:
        """Find the transformation of vectors (n, columns) to codes of at most ``dim`` columns."""
        standardisation = Standardisation.fit(vectors)
        k = len(standardisation.columns)
        components = np.eye(k, dtype=np.float32)
        if k > dim:
            from sklearn.utils.extmath import randomized_svd

            covariance = np.zeros((k, k))
            for start in range(0, len(vectors), BLOCK):
                rows = standardisation(vectors[start : start + BLOCK]).astype(np.float64)
                covariance += rows.T @ rows
                release(vectors)
            found, _, _ = randomized_svd(covariance, dim, n_iter=7, random_state=seed)
            components = found.astype(np.float32)
        return cls(standardisation, components, dim**0.5)

    def __call__(self, vectors: Any, row_name: Callable[[int], str] = "row {}".format) -> Vectors:
        """Return the codes of vectors: (n, columns) to (n, p)."""
        result = new_table(len(vectors), self.components.shape[1])
        for start in range(0, len(vectors), BLOCK):

            def name(row: int, start: int = start) -> str:
                return row_name(start + row)

            rows = self.standardisation(vectors[start : start + BLOCK], name)
            codes = unit_rows(rows @ self.components)
            result[start : start + BLOCK] = np.float32(self.length) * codes
            release(result)
            release(vectors)
        return result

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays from which `from_arrays` makes the same transformation."""
        own = {"components": self.components, "length": np.array(self.length)}
        return self.standardisation.arrays() | own

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Self:
        """Restore a transformation."""
        standardisation = Standardisation.from_arrays(arrays)
        components = np.asarray(arrays["components"], dtype=np.float32)
        length = float(arrays["length"])
        if components.ndim != 2 or len(components) != len(standardisation.columns) or length <= 0:
            raise VHEError("the components of the vectors are inconsistent; fit again.")
        return cls(standardisation, components, length)


def joint_codes(text: Vectors, vectors: Vectors, weight: float) -> Vectors:
    """Join text codes (n, d) and vector codes (n, p), given the weight of the second: (n, d + p).

    Without vectors (p = 0) these are the text codes.
    """
    if not vectors.shape[1]:
        return text
    parts = [np.float32((1 - weight) ** 0.5) * text, np.float32(weight**0.5) * vectors]
    return np.concatenate(parts, axis=1)
