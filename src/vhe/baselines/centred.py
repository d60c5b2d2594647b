"""Rows moved to have a mean of zero: negative sampling leaves all vectors with a part in common
(Mimno & Thompson, EMNLP 2017), which says nothing about a pair but fills its cosine."""

from __future__ import annotations

import numpy as np


def centred(rows: np.ndarray) -> np.ndarray:
    """Rows (n, d) without the mean of those that say something; rows of zeros stay."""
    known = rows.any(axis=1, keepdims=True)
    mean = rows.sum(axis=0) / max(int(known.sum()), 1)
    moved: np.ndarray = np.where(known, rows - mean, 0).astype(rows.dtype)
    return moved
