"""Search by score: nearest vertices of a vector, and likeliest partners of all vertices.

Up to `EXACT_UP_TO` vertices, all pairs are scored. Beyond, candidates are collected and then scored
exactly: the nearest vertices at each scale (an index, the extra `search`), vertices that share rare
words, vertices with common neighbours, and the vertices with most links. Pairs with an isolated
vertex have separate weights in the link posterior, so the nearest isolated vertices are searched
separately. `scan.py` finds the candidates of a single vertex without an index.
"""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from vhe.predict.link_posterior import LinkPosterior
from vhe.predict.pair_features import LINK_STRENGTHS, VertexRows

logger = logging.getLogger(__name__)

EXACT_UP_TO = 8_000  # vertices
SCORES_AT_ONCE = 2**22  # entries of the largest score matrix held at a time
NEAREST = 64  # candidates per scale, beside the number that is asked for
ISOLATED = 32  # candidates without links
COMMON_NEIGHBOURS = 64  # candidates with common neighbours
COMMON_WORDS = 16  # candidates with common rare words
HUBS = 16  # candidates with most links
SMALL_WEIGHT = 0.1  # of a scale, relative to the embedding; it then adds no candidates
RARE = 100  # a word in more texts, or a neighbour with more links, adds no candidates

Vectors = NDArray[np.float32]
Vertices = NDArray[np.int64]
Floats = NDArray[np.float64]


def nearest(rows: Vectors, vector: Vectors, k: int) -> tuple[Vertices, Vectors]:
    """The ``k`` rows (n, d) with the largest cosine to a vector (d,), and the cosines."""
    length = np.linalg.norm(rows, axis=1) * np.linalg.norm(vector)
    cosine = (rows @ vector / np.where(length > 0, length, 1)).astype(np.float32)
    best = np.argsort(-cosine, kind="stable")[:k].astype(np.int64)
    return best, cosine[best]


def partners(posterior: LinkPosterior, rows: VertexRows, k: int) -> tuple[Vertices, Floats]:
    """The likeliest partners of each vertex among those it is not linked with, best first.

    Returns
    -------
    partner (n, k), -1 where there are no more, and score (n, k), -inf there
    """
    n = len(rows)
    k = max(min(k, n - 1), 0)
    if n <= EXACT_UP_TO or k < 1 or not _index_is_installed():
        return exact_partners(posterior, rows, k, np.arange(n))
    found = list(_candidates(posterior, rows, k))
    partner = np.empty((n, k), dtype=np.int64)
    score = np.empty((n, k))
    step = max(SCORES_AT_ONCE // (8 * sum(table.shape[1] for table in found)), 1)
    for start in range(0, n, step):
        block = np.arange(start, min(start + step, n))
        candidates = np.sort(np.concatenate([table[block] for table in found], axis=1), axis=1)
        wrong = (candidates < 0) | (candidates == block[:, None])
        wrong[:, 1:] |= candidates[:, 1:] == candidates[:, :-1]
        i, position = np.nonzero(~wrong)
        j = candidates[i, position]
        scores = np.full(candidates.shape, -np.inf)
        scores[i, position] = posterior.log_odds(rows, block[i], j)
        linked = np.asarray(rows.adjacency[block[i], j]).ravel() > 0
        scores[i[linked], position[linked]] = -np.inf
        partner[block], score[block] = _ranked(candidates, scores, k)
    return partner, score


def exact_partners(
    posterior: LinkPosterior, rows: VertexRows, k: int, queries: Vertices
) -> tuple[Vertices, Floats]:
    """The partners of some vertices, each compared with all vertices: (len(queries), k)."""
    n = len(rows)
    k = max(min(k, n - 1), 0)
    partner = np.full((len(queries), k), -1, dtype=np.int64)
    score = np.full((len(queries), k), -np.inf)
    step = max(SCORES_AT_ONCE // max(n, 1), 1)
    for start in range(0, len(queries) if k else 0, step):
        part = slice(start, start + step)
        block = queries[part]
        scores = posterior.log_odds_matrix(rows.take(block), rows)  # (b, n)
        scores[np.arange(len(block)), block] = -np.inf
        scores[rows.adjacency[block].nonzero()] = -np.inf
        best = np.argpartition(-scores, k - 1, axis=1)[:, :k]
        partner[part], score[part] = _ranked(best, np.take_along_axis(scores, best, axis=1), k)
    return partner, score


def searched_scales(posterior: LinkPosterior) -> list[str]:
    """The scales whose nearest vertices are candidates, the embedding first."""
    weights = posterior.weights
    small = SMALL_WEIGHT * weights["embedding"]
    return ["embedding", *(name for name in LINK_STRENGTHS if weights.get(name, 0) > small)]


def uses_neighbours(posterior: LinkPosterior) -> bool:
    return bool({"neighbours", "structure"} & set(posterior.names))


def _candidates(posterior: LinkPosterior, rows: VertexRows, k: int) -> Iterator[Vertices]:
    """Tables (n, c) of vertices that may be likely partners, -1 where there are fewer."""
    linked = np.flatnonzero(rows.degree)
    for name in searched_scales(posterior):
        yield _nearest_in_index(rows.scales[name], linked, k + NEAREST)
    isolated = np.flatnonzero(rows.degree == 0)
    yield _nearest_in_index(rows.scales["embedding"], isolated, k + ISOLATED)
    if "words" in posterior.names:
        rare = np.bincount(rows.words.indices, minlength=rows.words.shape[1]) <= RARE
        words = rows.words[:, rare]
        yield _largest_products(words, words.T.tocsr(), COMMON_WORDS)
    if uses_neighbours(posterior):
        few = sparse.diags_array((rows.degree <= RARE) * rows.neighbour_weight)
        near = sparse.csr_array(rows.adjacency @ few)
        yield _largest_products(near, rows.adjacency, COMMON_NEIGHBOURS)
    if posterior.weights.get("degree", 0) > 0:
        yield np.tile(hubs(rows.degree), (len(rows), 1))


def hubs(degree: Vertices) -> Vertices:
    """The vertices with most links."""
    return np.argsort(-degree, kind="stable")[:HUBS]


def _nearest_in_index(unit: Vectors, among: Vertices, count: int) -> Vertices:
    """The nearest of some vertices, by the rows of all: (n, count) or fewer."""
    from usearch.index import Index

    if not len(among):
        return np.zeros((len(unit), 0), dtype=np.int64)
    # 8 bits per dimension suffice for candidates, and are twice as fast as 16
    index = Index(ndim=unit.shape[1], metric="cos", dtype="i8")
    index.add(among, unit[among])
    found: Vertices = index.search(unit, min(count, len(among))).keys.astype(np.int64)
    return found.reshape(len(unit), -1)


def _largest_products(left: sparse.csr_array, right: sparse.csr_array, count: int) -> Vertices:
    """For each row of ``left @ right`` the columns of its ``count`` largest entries."""
    best = np.full((left.shape[0], count), -1, dtype=np.int64)
    for start in range(0, left.shape[0], step := 4096):
        product = sparse.csr_array(left[start : start + step] @ right)
        row = np.repeat(np.arange(product.shape[0]), np.diff(product.indptr))
        order = np.lexsort((-product.data, row))
        rank = np.arange(len(order)) - product.indptr[row[order]]
        kept = rank < count
        best[start + row[order][kept], rank[kept]] = product.indices[order][kept]
    return best


def _ranked(candidates: Vertices, scores: Floats, k: int) -> tuple[Vertices, Floats]:
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    scores = np.take_along_axis(scores, order, axis=1)
    chosen = np.take_along_axis(candidates, order, axis=1)
    return np.where(np.isfinite(scores), chosen, -1), scores


def _index_is_installed() -> bool:
    installed = importlib.util.find_spec("usearch") is not None
    if not installed:
        logger.warning(
            "comparing all pairs of vertices is slow: pip install 'vhe[search]' adds an index",
        )
    return installed
