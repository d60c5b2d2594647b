"""The likeliest missing links of each vertex: candidates from the lists, ranked by the posterior.

The lists of the texts serve the embeddings, too: their centroids are the mean embeddings of their
members. Candidates are ranked by the link posterior.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from vhe.predict.calibration import sigmoid
from vhe.predict.link_posterior import LinkPosterior, at_density
from vhe.predict.pair_features import KNEE, LINK_STRENGTHS, VertexRows
from vhe.runtime.arrays import unit_rows
from vhe.scale.lists import nearby
from vhe.scale.shards import Numbers, Ragged, Sharded, read_array, shard, write_array

QUERIES = 512  # whose candidates are ranked at a time
LISTS = 12  # nearest lists that candidates come from
FURTHER = 24  # candidates per query, beside the number of suggestions
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
    read = _Tables(work, sizes, posterior, vocabulary)
    rows: VertexRows | None = None
    known = np.zeros(0, np.int64)
    for own, others, places in nearby(block, table, numbers, centroids, starts, LISTS):
        if rows is None or others is not known:
            rows, known = read(others, words=False), others
        for start in range(0, len(own), QUERIES):
            part = slice(start, start + QUERIES)
            local = own[part] - low
            targets = np.sort(others[_candidates(posterior, rows, places[part], k)])
            score = posterior.log_odds_matrix(read(own[part]), read(targets))
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


def _candidates(posterior: LinkPosterior, rows: VertexRows, places: Numbers, k: int) -> Numbers:
    """Which of some vertices are likely partners of the queries, by their places.

    They are the likeliest without their words; all queries are then ranked with the candidates of
    each of them, by everything.
    """
    chosen = np.zeros(len(rows), dtype=bool)
    scales = {name: torch.from_numpy(unit) for name, unit in rows.scales.items()}
    log_degree, alone = (torch.from_numpy(a) for a in (np.log1p(rows.degree), rows.degree == 0))
    for isolated in (False, True):  # queries
        queries = torch.from_numpy(places[alone.numpy()[places] == isolated])
        if not len(queries):
            continue
        # pairs with an isolated vertex have weights of their own
        other = posterior.isolated_weights or posterior.weights
        offset = posterior.isolated_offset if posterior.isolated_weights else posterior.offset
        mixed = torch.ones_like(alone) if isolated else alone

        def weight(name: str, own: Tensor = mixed, other: dict[str, float] = other) -> Tensor:
            values = posterior.weights.get(name, 0.0), other.get(name, 0.0)
            return torch.where(own, values[1], values[0]).float()

        total = torch.where(mixed, offset + weight("isolated"), posterior.offset).float()
        total = total + weight("degree") * log_degree.float()
        score = log_degree[queries].float()[:, None] * weight("degree") + total
        for name, unit in scales.items():
            value = (unit[queries] @ unit.T).div_(KNEE)
            # asinh, several times as fast as torch's
            value = value.square().add_(1).sqrt_().add_(value).log_()
            score += value.mul_(weight(name))
        nearest = score.topk(min(k + FURTHER, len(rows)), dim=1).indices
        chosen[nearest.numpy().ravel()] = True
    return np.flatnonzero(chosen)


class _Tables:
    """The rows of vertices, given by their positions."""

    def __init__(
        self, work: Path, sizes: list[int], posterior: LinkPosterior, vocabulary: int
    ) -> None:
        self._vocabulary, self._has_words = vocabulary, "words" in posterior.names
        names = [n for n in ("embedding", *LINK_STRENGTHS) if posterior.weights.get(n, 0) != 0]
        names = names or ["embedding"]
        self._scales = {name: Sharded(work, f"mean-{name}", sizes) for name in names}
        self._degree = Sharded(work, "degree", sizes)
        self._values, self._words = (Ragged(work, name, sizes) for name in ("tfidf", "tfidf-words"))

    def __call__(self, positions: Numbers, words: bool = True) -> VertexRows:
        rows: Any = sparse.csr_array((len(positions), self._vocabulary), dtype=np.float32)
        if words and self._has_words:
            values, offsets = self._values.take_ragged(positions)
            columns, _ = self._words.take_ragged(positions)
            rows = sparse.csr_array((values, columns, offsets), shape=rows.shape)
        nothing: Any = sparse.csr_array((len(positions), 1), dtype=np.float32)
        return VertexRows(
            scales={
                name: unit_rows(table.take(positions)).astype(np.float32)
                for name, table in self._scales.items()
            },
            words=rows,
            degree=self._degree.take(positions),
            structure=np.zeros((len(positions), 0), np.float32),
            signs=np.zeros(0, np.float32),
            adjacency=nothing,
            neighbour_weight=np.ones(1, np.float32),
        )
