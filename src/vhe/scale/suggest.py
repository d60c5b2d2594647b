"""The likeliest missing links of each vertex: candidates from the lists, ranked by the posterior.

The lists of the texts serve the embeddings, too: their centroids are the mean embeddings of their
members. All members of the nearest lists are ranked by what the link posterior knows without their
words, the first of them by everything.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse

from vhe.predict.calibration import sigmoid
from vhe.predict.link_posterior import LinkPosterior, at_density
from vhe.predict.pair_features import KNEE, LINK_STRENGTHS, VertexRows
from vhe.runtime.arrays import unit_rows
from vhe.scale.checked import SUGGESTION
from vhe.scale.lists import nearby
from vhe.scale.shards import Numbers, Ragged, Sharded, read_array, shard, write_array

QUERIES = 256  # whose candidates are ranked at a time
LISTS = 24  # nearest lists that candidates come from
FURTHER = 60  # candidates whose words are compared, beside the number of suggestions


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
    known = order = np.zeros(0, np.int64)
    for own, others, places in nearby(block, table, numbers, centroids, starts, LISTS):
        if rows is None or others is not known:
            rows, known, order = read(others), others, np.argsort(others)
        for start in range(0, len(own), QUERIES):
            part = slice(start, start + QUERIES)
            local = own[part] - low
            score = _without_words(posterior, rows, places[part])
            linked = links[ends[local[0]] : ends[local[-1] + 1]]
            query = np.repeat(np.arange(len(local)), np.diff(ends[local[0] : local[-1] + 2]))
            query, linked = np.append(query, np.arange(len(local))), np.append(linked, own[part])
            column = order[np.searchsorted(others, linked, sorter=order).clip(max=len(others) - 1)]
            there = others[column] == linked
            score[query[there], column[there]] = -np.inf
            best = torch.from_numpy(score).topk(min(k + FURTHER, len(others)), dim=1)
            value, column = best.values.numpy(), best.indices.numpy()
            if "words" in posterior.names:
                value = value + _words(posterior, rows, places[part], column)
            rank = np.argsort(-value, axis=1, kind="stable")[:, :k]
            value, column = (np.take_along_axis(a, rank, axis=1) for a in (value, column))
            chosen = result[local, : rank.shape[1]]
            chosen["row"] = np.where(np.isfinite(value), others[column], -1)
            chosen["probability"] = at_density(sigmoid(value), density)
            result[local, : rank.shape[1]] = chosen
    write_array(shard(work, "suggestions", block), result)


def _weights(posterior: LinkPosterior, name: str, isolated: Any) -> Any:
    """The weight of a feature in pairs of which one vertex is isolated, or not."""
    other = posterior.isolated_weights or posterior.weights
    values = other.get(name, 0.0), posterior.weights.get(name, 0.0)
    return np.where(isolated, *values).astype(np.float32)


def _without_words(posterior: LinkPosterior, rows: VertexRows, places: Numbers) -> Any:
    """Log odds, without what the words add, of some of the vertices with all: (k, len(rows))."""
    alone, log_degree = rows.degree == 0, np.log1p(rows.degree).astype(np.float32)
    score = np.empty((len(places), len(rows)), dtype=np.float32)
    for isolated in (False, True):  # queries; pairs with an isolated vertex have other weights
        chosen = np.flatnonzero(alone[places] == isolated)
        queries, mixed = places[chosen], alone | isolated
        offset = posterior.isolated_offset if posterior.isolated_weights else posterior.offset
        degree = _weights(posterior, "degree", mixed)
        total = np.where(mixed, offset + _weights(posterior, "isolated", mixed), posterior.offset)
        total = total.astype(np.float32) + degree * log_degree
        own = total + log_degree[queries, None] * degree
        for name, unit in rows.scales.items():
            value = unit[queries] @ unit.T
            value /= np.float32(KNEE)
            np.arcsinh(value, out=value)
            value *= _weights(posterior, name, mixed)
            own += value
        score[chosen] = own
    return score


def _words(posterior: LinkPosterior, rows: VertexRows, places: Numbers, columns: Numbers) -> Any:
    """What the words add to the log odds of pairs of rows, in the shape of ``columns``."""
    first, second = np.repeat(places, columns.shape[1]), columns.ravel()
    common = rows.words[first].multiply(rows.words[second]).sum(axis=1)
    isolated = (rows.degree[first] == 0) | (rows.degree[second] == 0)
    value = _weights(posterior, "words", isolated) * np.log1p(100 * np.asarray(common).ravel())
    return value.astype(np.float32).reshape(columns.shape)


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

    def __call__(self, positions: Numbers) -> VertexRows:
        rows: Any = sparse.csr_array((len(positions), self._vocabulary), dtype=np.float32)
        if self._has_words:
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
