"""Matrices of texts and links that several baselines share."""

from __future__ import annotations

import numpy as np
import torch
from scipy import sparse
from sklearn.decomposition import TruncatedSVD


def lsa(rows: sparse.csr_array, dimensions: int, seed: int) -> np.ndarray:
    """Projection of rows (n, words) on their leading singular vectors: (n, ≤ dimensions)."""
    if min(rows.shape) <= dimensions:  # nothing to truncate
        left, singular_values, _ = np.linalg.svd(rows.toarray(), full_matrices=False)
        return left * singular_values
    return TruncatedSVD(dimensions, random_state=seed).fit_transform(rows)


def normalised_adjacency(links: np.ndarray, vertices: int) -> sparse.csr_array:
    """D^-½ (A + I) D^-½ of the undirected links, D the degrees with self-loops: (n, n)."""
    own = np.arange(vertices).repeat(2).reshape(vertices, 2)
    row, column = np.concatenate([links, links[:, ::-1], own]).T
    scale = 1 / np.sqrt(np.bincount(row, minlength=vertices))
    return sparse.csr_array((scale[row] * scale[column], (row, column)), (vertices, vertices))


def transition_matrix(links: np.ndarray, vertices: int) -> sparse.csr_array:
    """P, (n, n): uniform steps to neighbours; rows of vertices without links are zero."""
    row, column = np.concatenate([links, links[:, ::-1]]).T
    probability = 1 / np.bincount(row, minlength=vertices)[row]
    return sparse.csr_array((probability, (row, column)), (vertices, vertices))


def as_tensor(matrix: sparse.csr_array) -> torch.Tensor:
    """The sparse matrix as a torch tensor in single precision."""
    coo = matrix.tocoo()
    indices = torch.from_numpy(np.stack([coo.row, coo.col]).astype(np.int64))
    values = torch.from_numpy(coo.data.astype(np.float32))
    return torch.sparse_coo_tensor(indices, values, coo.shape, check_invariants=False).coalesce()


def centred(rows: np.ndarray) -> np.ndarray:
    """Rows (n, d) minus the mean of the rows that are not zero; rows of zeros stay zero.

    Negative sampling adds a common component to all vectors (Mimno & Thompson, EMNLP 2017), which
    dominates their cosines although it does not distinguish pairs.
    """
    known = rows.any(axis=1, keepdims=True)
    mean = rows.sum(axis=0) / max(int(known.sum()), 1)
    return np.where(known, rows - mean, 0).astype(rows.dtype)
