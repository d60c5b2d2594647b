"""Scores of pairs from the links alone: common neighbours and paths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import sparse

from vhe.data.network import TextNetwork
from vhe.predict.pair_features import adjacency_matrix


class _PairScores:
    """Scores that are the entries of a product of two sparse matrices, left @ right."""

    embedding_: sparse.csr_array  # the left factor: one row per vertex
    _right: sparse.csr_array  # (n, n), transposed: one row per target

    def score_indices(self, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Scores of the pairs (sources[k], targets[k]): (m,)."""
        products = self.embedding_[sources].multiply(self._right[targets])
        return np.asarray(products.sum(axis=1)).ravel()

    def score_matrix(self, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Scores of each source with each target: (len(sources), len(targets))."""
        return (self.embedding_[sources] @ self._right[targets].T).toarray()


class AdamicAdar(_PairScores):
    """Σ 1 / log(degree) over common neighbours (Adamic and Adar 2003)."""

    def fit(self, network: TextNetwork) -> Self:
        """Read the links."""
        adjacency = adjacency_matrix(network.links, len(network)).astype(np.float64)
        weights = sparse.diags_array(1 / np.log(np.maximum(network.degrees, 2)))
        self.embedding_ = sparse.csr_array(adjacency @ weights)
        self._right = adjacency
        return self


@dataclass(kw_only=True)
class Katz(_PairScores):
    """β A + β² A² + β³ A³: short paths count most (Katz 1953, truncated).

    Parameters
    ----------
    beta : weight of a link more in a path.
    """

    beta: float = 0.05

    def fit(self, network: TextNetwork) -> Self:
        """Read the links."""
        n = len(network)
        adjacency = adjacency_matrix(network.links, n).astype(np.float64)
        paths = self.beta * adjacency + self.beta**2 * (adjacency @ adjacency)
        # β A + β² A² + β³ A³ = β A + (β A + β² A²) β A
        self.embedding_ = sparse.hstack([adjacency, paths], format="csr")
        one = self.beta * sparse.eye_array(n, format="csr")
        self._right = sparse.hstack([one, self.beta * adjacency], format="csr")
        return self
