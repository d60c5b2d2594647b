"""Centring of embeddings that were trained with negative sampling.

Negative sampling adds a common component to all vectors (Mimno & Thompson, EMNLP 2017), which
dominates their cosines although it does not distinguish pairs.
"""

from __future__ import annotations

import numpy as np


def centred(rows: np.ndarray) -> np.ndarray:
    """Rows (n, d) minus the mean of the rows that are not zero; rows of zeros stay zero."""
    known = rows.any(axis=1, keepdims=True)
    mean = rows.sum(axis=0) / max(int(known.sum()), 1)
    result: np.ndarray = np.where(known, rows - mean, 0).astype(rows.dtype)
    return result
