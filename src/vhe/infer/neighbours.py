"""The nearest vertices by the cosine of their codes: exact where that is quick, and where vertices
are many, candidates from an index (the extra `search`) that are ranked exactly."""

from __future__ import annotations

import importlib.util
import warnings

import numpy as np
from numpy.typing import NDArray

from vhe.evaluate.contract import unit_rows

EXACT_UP_TO = 20_000  # vertices; all against all is quick up to here
SCORES_AT_ONCE = 2**22  # the largest score matrix held at a time
SPARE = 32  # candidates beyond those wanted; a vertex with more links is compared with everybody

Vectors = NDArray[np.float32]
Vertices = NDArray[np.int64]


def nearest(rows: Vectors, vector: Vectors, k: int) -> tuple[Vertices, Vectors]:
    """The ``k`` rows (n, d) with the largest cosine to a vector (d,), and the cosines."""
    length = np.linalg.norm(rows, axis=1) * np.linalg.norm(vector)
    cosine = rows @ vector / np.where(length > 0, length, 1)
    best = np.argsort(-cosine, kind="stable")[:k]
    return best, cosine[best]


def partners(rows: Vectors, links: Vertices, k: int) -> tuple[Vertices, Vectors]:
    """The nearest vertices of each vertex that it has no link with, the nearest first.

    Parameters
    ----------
    rows : (n, d)
    links : (m, 2)

    Returns
    -------
    partner (n, k), -1 where there are no more, and cosine (n, k), -inf there
    """
    n = len(rows)
    k = max(min(k, n - 1), 0)
    unit = unit_rows(np.asarray(rows, dtype=np.float32))
    ends = np.concatenate([links, links[:, ::-1]])
    ends = ends[np.lexsort((ends[:, 1], ends[:, 0]))]
    starts = np.searchsorted(ends[:, 0], np.arange(n + 1))
    partner = np.full((n, k), -1, dtype=np.int64)
    cosine = np.full((n, k), -np.inf, dtype=np.float32)
    if not k:
        return partner, cosine
    exact = np.arange(n)
    if n > EXACT_UP_TO and _has_index():
        few = np.diff(starts) <= SPARE
        easy, exact = exact[few], exact[~few]
        partner[easy], cosine[easy] = _by_index(unit, ends, starts, easy, k)
    step = max(SCORES_AT_ONCE // n, 1)
    for start in range(0, len(exact), step):
        here = exact[start : start + step]
        scores = unit[here] @ unit.T  # (b, n)
        scores[np.arange(len(here)), here] = -np.inf
        scores[_known(ends, starts, here)] = -np.inf
        candidates = np.argpartition(-scores, k - 1, axis=1)[:, :k]
        partner[here], cosine[here] = _ranked(
            candidates, np.take_along_axis(scores, candidates, axis=1), k
        )
    return partner, cosine


def _by_index(
    unit: Vectors, ends: Vertices, starts: Vertices, asking: Vertices, k: int
) -> tuple[Vertices, Vectors]:
    """Partners of some vertices, whose candidates a graph of near neighbours (HNSW) gives."""
    from usearch.index import Index

    n, d = unit.shape
    index = Index(ndim=d, metric="ip", dtype="f16", expansion_add=64, expansion_search=64)
    index.add(np.arange(n), unit)
    partner = np.empty((len(asking), k), dtype=np.int64)
    cosine = np.empty((len(asking), k), dtype=np.float32)
    for start in range(0, len(asking), step := SCORES_AT_ONCE // d):
        here = asking[start : start + step]
        found = index.search(unit[here], min(k + 1 + SPARE, n)).keys.astype(np.int64)
        candidates = found.reshape(len(here), -1)
        scores = np.einsum("bd,bcd->bc", unit[here], unit[candidates])
        key = np.repeat(here, candidates.shape[1]) * n + candidates.ravel()
        linked = np.isin(key, ends[:, 0] * n + ends[:, 1]).reshape(candidates.shape)
        scores[linked | (candidates == here[:, None])] = -np.inf
        part = slice(start, start + step)
        partner[part], cosine[part] = _ranked(candidates, scores, k)
    return partner, cosine


def _ranked(candidates: Vertices, scores: Vectors, k: int) -> tuple[Vertices, Vectors]:
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    scores = np.take_along_axis(scores, order, axis=1)
    chosen = np.take_along_axis(candidates, order, axis=1)
    return np.where(np.isfinite(scores), chosen, -1), scores


def _known(ends: Vertices, starts: Vertices, here: Vertices) -> tuple[Vertices, Vertices]:
    """Row in ``here`` and vertex of every link of some vertices."""
    counts = starts[here + 1] - starts[here]
    row = np.repeat(np.arange(len(here)), counts)
    first = np.repeat(starts[here] - (np.cumsum(counts) - counts), counts)
    return row, ends[first + np.arange(len(row)), 1]


def _has_index() -> bool:
    there = importlib.util.find_spec("usearch") is not None
    if not there:
        warnings.warn(
            "every vertex is compared with every other, which takes a while: "
            "pip install 'vhe[search]' makes it faster",
            stacklevel=3,
        )
    return there
