"""Search by score: nearest vertices of a vector, and likeliest partners of all vertices.

Exact where that is fast. For many vertices, candidates come from an approximate index (the extra
`search`) and are then ranked exactly.
"""

from __future__ import annotations

import importlib.util
import warnings

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from vhe.runtime.arrays import unit_rows

EXACT_UP_TO = 20_000  # vertices; up to here all are compared with all
SCORES_AT_ONCE = 2**22  # entries of the largest score matrix held at a time
SPARE = 32  # additional candidates; a vertex with more links is compared with all vertices

Vectors = NDArray[np.float32]
Vertices = NDArray[np.int64]


def nearest(rows: Vectors, vector: Vectors, k: int) -> tuple[Vertices, Vectors]:
    """The ``k`` rows (n, d) with the largest cosine to a vector (d,), and the cosines."""
    length = np.linalg.norm(rows, axis=1) * np.linalg.norm(vector)
    cosine = (rows @ vector / np.where(length > 0, length, 1)).astype(np.float32)
    best = np.argsort(-cosine, kind="stable")[:k].astype(np.int64)
    return best, cosine[best]


def partners(
    rows: Vectors, links: Vertices, k: int, degree_bias: Vectors | None = None
) -> tuple[Vertices, Vectors]:
    """The likeliest partners of each vertex among those it is not linked with, best first.

    Parameters
    ----------
    rows : (n, d) embeddings
    links : (m, 2)
    degree_bias : (n,) added to the cosine in the score of a vertex's pairs; None: nothing

    Returns
    -------
    partner (n, k), -1 where there are no more, and score (n, k), -inf there
    """
    n = len(rows)
    everything = np.arange(n)
    bias = np.zeros(n, dtype=np.float32) if degree_bias is None else degree_bias
    if n <= EXACT_UP_TO or k < 1 or not _index_is_installed():
        return exact_partners(rows, links, k, everything, bias)
    many_links = np.bincount(links.ravel(), minlength=n) > SPARE
    partner, score = _index_partners(rows, links, k, bias)
    exact = exact_partners(rows, links, k, everything[many_links], bias)
    partner[many_links], score[many_links] = exact
    return partner, score


def exact_partners(
    rows: Vectors, links: Vertices, k: int, queries: Vertices, degree_bias: Vectors
) -> tuple[Vertices, Vectors]:
    """The partners of some vertices, each compared with all vertices: (len(queries), k)."""
    n = len(rows)
    k = max(min(k, n - 1), 0)
    unit = unit_rows(np.asarray(rows, dtype=np.float32))
    ends = np.concatenate([links, links[:, ::-1]])
    adjacency = sparse.csr_array((np.ones(len(ends), bool), ends.T), shape=(n, n))
    partner = np.full((len(queries), k), -1, dtype=np.int64)
    score = np.full((len(queries), k), -np.inf, dtype=np.float32)
    step = max(SCORES_AT_ONCE // max(n, 1), 1)
    for start in range(0, len(queries) if k else 0, step):
        part = slice(start, start + step)
        block = queries[part]
        scores = unit[block] @ unit.T + degree_bias + degree_bias[block, None]  # (b, n)
        scores[np.arange(len(block)), block] = -np.inf
        scores[adjacency[block].nonzero()] = -np.inf
        best = np.argpartition(-scores, k - 1, axis=1)[:, :k]
        partner[part], score[part] = _ranked(best, np.take_along_axis(scores, best, axis=1), k)
    return partner, score


def _index_partners(
    rows: Vectors, links: Vertices, k: int, degree_bias: Vectors
) -> tuple[Vertices, Vectors]:
    """Partners whose candidates come from an HNSW index.

    Two more dimensions turn the score into a cosine: (u, p, r) · (v, 1, 0) = u · v + p, with r such
    that all indexed rows have the same length (Bachrach et al. 2014).
    """
    from usearch.index import Index

    n, d = rows.shape
    unit = unit_rows(np.asarray(rows, dtype=np.float32))
    length = (unit**2).sum(axis=1) + degree_bias**2
    rest = np.sqrt(length.max() - length)
    # 8 bits per dimension suffice for candidates, and are twice as fast as 16
    index = Index(ndim=d + 2, metric="cos", dtype="i8", expansion_add=64, expansion_search=64)
    index.add(np.arange(n), np.column_stack([unit, degree_bias, rest]))
    queries = np.column_stack([unit, np.ones(n, np.float32), np.zeros(n, np.float32)])
    linked = np.sort(np.concatenate([links @ [n, 1], links @ [1, n]]))
    count = min(k + 1 + SPARE, n)  # includes the vertex itself and its links, removed below
    partner = np.empty((n, k), dtype=np.int64)
    score = np.empty((n, k), dtype=np.float32)
    for start in range(0, n, step := max(SCORES_AT_ONCE // (count * d), 1) * 8):
        block = np.arange(start, min(start + step, n))
        found = index.search(queries[block], count).keys.astype(np.int64).reshape(len(block), -1)
        scores = np.einsum("bd,bcd->bc", unit[block], unit[found])
        scores += degree_bias[found] + degree_bias[block, None]
        excluded = np.isin(block[:, None] * n + found, linked) | (found == block[:, None])
        scores[excluded] = -np.inf
        partner[block], score[block] = _ranked(found, scores, k)
    return partner, score


def _ranked(candidates: Vertices, scores: Vectors, k: int) -> tuple[Vertices, Vectors]:
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    scores = np.take_along_axis(scores, order, axis=1)
    chosen = np.take_along_axis(candidates, order, axis=1)
    return np.where(np.isfinite(scores), chosen, -1), scores


def _index_is_installed() -> bool:
    installed = importlib.util.find_spec("usearch") is not None
    if not installed:
        warnings.warn(
            "comparing all pairs of vertices is slow: pip install 'vhe[search]' adds an index",
            stacklevel=3,
        )
    return installed
