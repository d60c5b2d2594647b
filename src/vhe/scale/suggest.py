"""The likeliest missing links of each vertex: candidates from the lists, ranked by the posterior.

The lists of the texts serve the embeddings, too: their centroids are the mean embeddings of their
members. Candidates are the nearest vertices by the cosine of embeddings; the link posterior ranks
them with everything else it reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from vhe.predict.calibration import sigmoid
from vhe.predict.link_posterior import LinkPosterior, at_density
from vhe.predict.pair_features import LINK_STRENGTHS, VertexRows
from vhe.predict.suggest import NEAREST
from vhe.runtime.arrays import unit_rows
from vhe.scale.couplings import linked
from vhe.scale.lists import search
from vhe.scale.shards import Numbers, Ragged, Sharded, read_array, shard, write_array

QUERIES = 2048  # whose candidates are ranked at a time
SUGGESTION = np.dtype([("row", "<i8"), ("probability", "<f4")])  # row -1: no more


def write_unit(block: int, work: Path) -> None:
    """Write the embeddings of a block in unit length."""
    rows = np.asarray(read_array(shard(work, "mean-embedding", block)))
    write_array(shard(work, "unit", block), unit_rows(rows).astype(np.float32))


def suggest_block(
    block: int,
    work: Path,
    sizes: list[int],
    starts: Numbers,
    k: int,
    posterior: LinkPosterior,
    vocabulary: int,
    density: float,
) -> None:
    """Write the ``k`` likeliest partners of each vertex of a block, by positions."""
    table = Sharded(work, "unit", sizes)
    numbers, low = Sharded(work, "rows", sizes), int(table.starts[block])
    own = np.arange(low, low + sizes[block])
    centroids = np.asarray(read_array(work / "mean-centroids.npy"))
    count = min(k + NEAREST, len(table) - 1)
    result = np.full((sizes[block], k), -1, dtype=SUGGESTION)
    result["probability"] = 0
    for start in range(0, sizes[block] if count > 0 else 0, 1 << 14):
        part = own[start : start + (1 << 14)]
        queries = table.shard(block)[start : start + (1 << 14)]
        near, _ = search(queries, part, table, numbers, centroids, starts, count)
        for first in range(0, len(part), QUERIES):
            some = slice(first, first + QUERIES)
            query, rank = np.nonzero(near[some] >= 0)
            i, j = part[some][query], near[some][query, rank]
            rows, position = np.unique(np.concatenate([i, j]), return_inverse=True)
            vertices = _vertex_rows(work, sizes, rows, posterior, vocabulary)
            score = np.full(near[some].shape, -np.inf)
            score[query, rank] = np.where(
                linked(block, work, sizes, i, j),
                -np.inf,
                posterior.log_odds(vertices, position[: len(i)], position[len(i) :]),
            )
            best = np.argsort(-score, axis=1, kind="stable")[:, :k]
            score = np.take_along_axis(score, best, axis=1)
            chosen = np.take_along_axis(near[some], best, axis=1)
            target = result[start + first : start + first + len(best), : best.shape[1]]
            target["row"] = np.where(np.isfinite(score), chosen, -1)
            target["probability"] = at_density(sigmoid(score), density)
    write_array(shard(work, "suggestions", block), result)


def _vertex_rows(
    work: Path, sizes: list[int], positions: Numbers, posterior: LinkPosterior, vocabulary: int
) -> VertexRows:
    names = [name for name in ("embedding", *LINK_STRENGTHS) if name in posterior.names]
    scales = {
        name: unit_rows(Sharded(work, f"mean-{name}", sizes).take(positions)).astype(np.float32)
        for name in names
    }
    words: Any = sparse.csr_array((len(positions), vocabulary), dtype=np.float32)
    if "words" in posterior.names:
        values, offsets = Ragged(work, "tfidf", sizes).take_ragged(positions)
        columns, _ = Ragged(work, "tfidf-words", sizes).take_ragged(positions)
        words = sparse.csr_array((values, columns, offsets), shape=words.shape)
    nothing: Any = sparse.csr_array((len(positions), 1), dtype=np.float32)
    return VertexRows(
        scales=scales,
        words=words,
        degree=Sharded(work, "degree", sizes).take(positions),
        structure=np.zeros((len(positions), 0), np.float32),
        signs=np.zeros(0, np.float32),
        adjacency=nothing,
        neighbour_weight=np.ones(1, np.float32),
    )
