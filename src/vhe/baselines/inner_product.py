"""Scoring by inner products of rows, for methods that do not score by cosine."""

from __future__ import annotations

from typing import Any

import numpy as np

from vhe.predict.scoring import PAIRS_AT_ONCE


class InnerProductMethod:
    """Scores a pair by the inner product of its rows of ``embedding_``, which ``fit`` sets."""

    embedding_: Any  # (n, d)

    def score_indices(self, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Scores of the pairs (sources[k], targets[k]), in blocks of bounded memory: (m,)."""
        starts = range(0, max(len(sources), 1), PAIRS_AT_ONCE)
        blocks = (slice(start, start + PAIRS_AT_ONCE) for start in starts)
        return np.concatenate([self._products(sources[b], targets[b]) for b in blocks])

    def score_matrix(self, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Scores of each source with each target: (len(sources), len(targets))."""
        return self._source_rows(sources) @ self.embedding_[targets].T

    def _products(self, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
        return np.einsum("md,md->m", self._source_rows(sources), self.embedding_[targets])

    def _source_rows(self, vertices: np.ndarray) -> np.ndarray:
        """The left factor of the inner product: (len(vertices), d)."""
        return self.embedding_[vertices]
