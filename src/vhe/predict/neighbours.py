"""The nearest vertices by the cosine of their codes, and the likeliest partners by their scores.

Exact where that is quick, and where vertices are many, candidates from an index (the extra
`search`) that are ranked exactly.
"""

from __future__ import annotations

import importlib.util
import warnings

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from vhe.predict.scoring import unit_rows

EXACT_UP_TO = 20_000  # vertices; all against all is quick up to here
SCORES_AT_ONCE = 2**22  # the largest score matrix held at a time
SPARE = 32  # candidates beyond those wanted; a vertex with more links is compared with everybody

Vectors = NDArray[np.float32]
Vertices = NDArray[np.int64]


def nearest(rows: Vectors, vector: Vectors, k: int) -> tuple[Vertices, Vectors]:
    """The ``k`` rows (n, d) with the largest cosine to a vector (d,), and the cosines."""
    length = np.linalg.norm(rows, axis=1) * np.linalg.norm(vector)
    cosine = (rows @ vector / np.where(length > 0, length, 1)).astype(np.float32)
    best = np.argsort(-cosine, kind="stable")[:k].astype(np.int64)
    return best, cosine[best]


def partners(
    rows: Vectors, links: Vertices, k: int, degree_weight: Vectors | None = None
) -> tuple[Vertices, Vectors]:
    """The likeliest partners of each vertex that it has no link with, the likeliest first.

    Parameters
    ----------
    rows : (n, d)
    links : (m, 2)
    degree_weight : (n,) what each vertex adds to the cosine in the score of its pairs; nothing if None

    Returns
    -------
    partner (n, k), -1 where there are no more, and score (n, k), -inf there
    """
    n = len(rows)
    everyone = np.arange(n)
    degree_weight = np.zeros(n, dtype=np.float32) if degree_weight is None else degree_weight
    if n <= EXACT_UP_TO or k < 1 or not _has_index():
        return exact_partners(rows, links, k, everyone, degree_weight)
    busy = np.bincount(links.ravel(), minlength=n) > SPARE
    partner, score = _by_index(rows, links, k, degree_weight)
    partner[busy], score[busy] = exact_partners(rows, links, k, everyone[busy], degree_weight)
    return partner, score


def exact_partners(
    rows: Vectors, links: Vertices, k: int, asking: Vertices, degree_weight: Vectors
) -> tuple[Vertices, Vectors]:
    """The partners of some vertices, each compared with everybody: (len(asking), k)."""
    n = len(rows)
    k = max(min(k, n - 1), 0)
    unit = unit_rows(np.asarray(rows, dtype=np.float32))
    ends = np.concatenate([links, links[:, ::-1]])
    matrix = sparse.csr_array((np.ones(len(ends), bool), ends.T), shape=(n, n))
    partner = np.full((len(asking), k), -1, dtype=np.int64)
    score = np.full((len(asking), k), -np.inf, dtype=np.float32)
    step = max(SCORES_AT_ONCE // max(n, 1), 1)
    for start in range(0, len(asking) if k else 0, step):
        here = asking[start : start + step]
        scores = unit[here] @ unit.T + degree_weight + degree_weight[here, None]  # (b, n)
        scores[np.arange(len(here)), here] = -np.inf
        scores[matrix[here].nonzero()] = -np.inf
        best = np.argpartition(-scores, k - 1, axis=1)[:, :k]
        part = slice(start, start + step)
        partner[part], score[part] = _ranked(best, np.take_along_axis(scores, best, axis=1), k)
    return partner, score


def _by_index(
    rows: Vectors, links: Vertices, k: int, degree_weight: Vectors
) -> tuple[Vertices, Vectors]:
    """Partners whose candidates come from a graph of near neighbours (HNSW).

    Two more numbers make a cosine of the score: (u, p, r) · (v, 1, 0) = u · v + p, with r such that
    all rows that are searched are of one length (Bachrach et al. 2014).
    """
    from usearch.index import Index

    n, d = rows.shape
    unit = unit_rows(np.asarray(rows, dtype=np.float32))
    length = (unit**2).sum(axis=1) + degree_weight**2
    rest = np.sqrt(length.max() - length)
    # a byte a number is enough for candidates, and twice as fast as two
    index = Index(ndim=d + 2, metric="cos", dtype="i8", expansion_add=64, expansion_search=64)
    index.add(np.arange(n), np.column_stack([unit, degree_weight, rest]))
    asking = np.column_stack([unit, np.ones(n, np.float32), np.zeros(n, np.float32)])
    linked = np.sort(np.concatenate([links @ [n, 1], links @ [1, n]]))
    count = min(k + 1 + SPARE, n)  # with itself and its links, which are taken out again
    partner = np.empty((n, k), dtype=np.int64)
    score = np.empty((n, k), dtype=np.float32)
    for start in range(0, n, step := max(SCORES_AT_ONCE // (count * d), 1) * 8):
        here = np.arange(start, min(start + step, n))
        found = index.search(asking[here], count).keys.astype(np.int64).reshape(len(here), -1)
        scores = np.einsum("bd,bcd->bc", unit[here], unit[found])
        scores += degree_weight[found] + degree_weight[here, None]
        taken = np.isin(here[:, None] * n + found, linked) | (found == here[:, None])
        scores[taken] = -np.inf
        partner[here], score[here] = _ranked(found, scores, k)
    return partner, score


def _ranked(candidates: Vertices, scores: Vectors, k: int) -> tuple[Vertices, Vectors]:
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    scores = np.take_along_axis(scores, order, axis=1)
    chosen = np.take_along_axis(candidates, order, axis=1)
    return np.where(np.isfinite(scores), chosen, -1), scores


def _has_index() -> bool:
    there = importlib.util.find_spec("usearch") is not None
    if not there:
        warnings.warn(
            "every vertex is compared with every other, which takes a while: "
            "pip install 'vhe[search]' makes it faster",
            stacklevel=3,
        )
    return there
