"""The likeliest missing links of each vertex: candidates from the lists, ranked by the posterior.

The lists of the texts serve the embeddings, too: their centroids are the mean embeddings of their
members. Candidates are the nearest vertices at each scale; the link posterior ranks them with
everything else it reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse

from vhe.predict.calibration import sigmoid
from vhe.predict.link_posterior import LinkPosterior, at_density
from vhe.predict.pair_features import LINK_STRENGTHS, VertexRows
from vhe.predict.suggest import searched_scales
from vhe.runtime.arrays import unit_rows
from vhe.scale.lists import nearby
from vhe.scale.shards import Numbers, Ragged, Sharded, read_array, shard, write_array

QUERIES = 512  # whose candidates are ranked at a time
NEAREST, ISOLATED = 24, 8  # candidates per query and scale beside k, and of isolated vertices
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
    table, numbers = Sharded(work, "unit", sizes), Sharded(work, "rows", sizes)
    centroids = np.asarray(read_array(work / "mean-centroids.npy"))
    ends = np.asarray(read_array(shard(work, "links-offsets", block)))
    links, low = read_array(shard(work, "links", block)), int(table.starts[block])
    result = np.full((sizes[block], k), -1, dtype=SUGGESTION)
    result["probability"] = 0
    scales: dict[str, Any] = {}
    known = np.zeros(0, np.int64)
    for own, others, places in nearby(block, table, numbers, centroids, starts):
        if others is not known:
            scales, known = _scales(work, sizes, others, searched_scales(posterior)), others
            isolated = np.flatnonzero(Sharded(work, "degree", sizes).take(others) == 0)
        for start in range(0, len(own), QUERIES):
            part = slice(start, start + QUERIES)
            local = own[part] - low
            targets = np.sort(others[_candidates(scales, places[part], isolated, k)])
            score = posterior.log_odds_matrix(
                _vertex_rows(work, sizes, own[part], posterior, vocabulary),
                _vertex_rows(work, sizes, targets, posterior, vocabulary),
            )
            linked = links[ends[local[0]] : ends[local[-1] + 1]]
            query = np.repeat(np.arange(len(local)), np.diff(ends[local[0] : local[-1] + 2]))
            query, linked = np.append(query, np.arange(len(local))), np.append(linked, own[part])
            column = np.searchsorted(targets, linked).clip(max=len(targets) - 1)
            there = targets[column] == linked
            score[query[there], column[there]] = -np.inf
            count = min(k, len(targets))
            best = torch.from_numpy(score).topk(count, dim=1)
            value, row = best.values.numpy(), targets[best.indices.numpy()]
            chosen = result[local, :count]
            chosen["row"] = np.where(np.isfinite(value), row, -1)
            chosen["probability"] = at_density(sigmoid(value), density)
            result[local, :count] = chosen
    write_array(shard(work, "suggestions", block), result)


def _scales(work: Path, sizes: list[int], positions: Numbers, names: list[str]) -> dict[str, Any]:
    """The unit vectors of some vertices at each scale."""
    return {
        name: torch.from_numpy(
            Sharded(work, "unit", sizes).take(positions)
            if name == "embedding"
            else unit_rows(Sharded(work, f"mean-{name}", sizes).take(positions)).astype(np.float32)
        )
        for name in names
    }


def _candidates(scales: dict[str, Any], places: Numbers, isolated: Numbers, k: int) -> Numbers:
    """Which of some vertices are among the nearest of the queries at a scale, by their places.

    All queries are ranked with the candidates of each of them. Pairs with an isolated vertex have
    weights of their own in the link posterior, so the nearest of them are candidates, too.
    """
    chosen = np.zeros(len(scales["embedding"]), dtype=bool)
    for name, unit in scales.items():
        cosine = unit[torch.from_numpy(places)] @ unit.T
        nearest = cosine.topk(min(k + NEAREST, len(unit)), dim=1).indices
        chosen[nearest.numpy().ravel()] = True
        if name == "embedding" and len(isolated):
            some = cosine[:, torch.from_numpy(isolated)]
            nearest = some.topk(min(ISOLATED, len(isolated)), dim=1).indices
            chosen[isolated[nearest.numpy().ravel()]] = True
    return np.flatnonzero(chosen)


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
