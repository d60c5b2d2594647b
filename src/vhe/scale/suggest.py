"""The likeliest missing links of each vertex: all members of some lists, scored by the posterior.

The vertices are clustered anew, by their embeddings. All members of the lists whose centroids are
nearest to a vertex are scored. A task handles the vertices of some consecutive lists, which are
similar, so that most of them are compared with the same lists.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse

from vhe.data.text import concatenated_ranges
from vhe.predict.calibration import sigmoid
from vhe.predict.link_posterior import LinkPosterior, at_density
from vhe.predict.pair_features import KNEE, LINK_STRENGTHS, VertexRows
from vhe.runtime.arrays import distinct, unit_rows
from vhe.scale.centroids import centroids_path, nearest_centroids
from vhe.scale.checked import SUGGESTION
from vhe.scale.lists import EXACT_UP_TO
from vhe.scale.shards import Numbers, Ragged, Sharded, collect, read_array, shard, write_array

PAIRS_AT_ONCE = 1 << 21  # that are scored
UNIT = "unit"  # the table of embeddings of unit length, which the lists are made of
LIST_ROWS = 256  # vertices per list
LISTS = 16  # that a vertex is compared with; up to `EXACT_UP_TO` vertices with all lists:
AROUND = 512  # the lists nearest to that of a vertex; the vertex chooses among them
TIED = 10  # further candidates, so that of equally likely ones the first vertices are suggested

MEMBER = np.dtype([("list", "<i8"), ("position", "<i8"), ("row", "<i8")])


def write_unit(block: int, work: Path) -> None:
    """Write the embeddings of a block in unit length."""
    rows = np.asarray(read_array(shard(work, "mean-embedding", block)))
    write_array(shard(work, UNIT, block), unit_rows(rows).astype(np.float32))


def assign(block: int, work: Path, sizes: list[int]) -> Numbers:
    """Write the list of each vertex of a block; return the number of vertices per list."""
    centroids = np.asarray(read_array(centroids_path(work, UNIT)))
    unit = np.asarray(read_array(shard(work, UNIT, block)))
    records = np.empty(len(unit), dtype=MEMBER)
    records["list"] = nearest_centroids(unit, centroids)
    records["position"] = sum(sizes[:block]) + np.arange(len(unit))
    records["row"] = read_array(shard(work, "rows", block))
    write_array(shard(work, "listed", block), records[np.argsort(records["list"])])
    return np.bincount(records["list"], minlength=len(centroids))


def gather_members(
    number: int, work: Path, blocks: int, starts: Numbers, ranges: list[int]
) -> None:
    """Write the positions and row numbers of the vertices of a range of lists, list by list."""
    first, last = np.searchsorted(starts, np.append(0, np.cumsum(ranges))[number : number + 2])
    records = collect(work, "listed", blocks, "list", first, last)
    records = records[np.lexsort((records["row"], records["list"]))]
    for name in ("position", "row"):
        write_array(shard(work, f"member-{name}", number), records[name])


def suggest_range(
    number: int,
    work: Path,
    sizes: list[int],
    ranges: list[int],
    starts: Numbers,
    k: int,
    posterior: LinkPosterior,
    vocabulary: int,
    density: float,
) -> None:
    """Write the ``k`` likeliest partners of each vertex of a range of lists, by positions.

    Parameters
    ----------
    sizes, ranges : number of vertices of each block, and of each range of lists
    starts : of the lists in the order of their members, (L + 1,)
    """
    low, high = np.append(0, np.cumsum(ranges))[number : number + 2]
    table, numbers = (Sharded(work, f"member-{name}", ranges) for name in ("position", "row"))
    own = np.searchsorted(starts, np.arange(low, high), side="right") - 1
    near = _nearest_lists(
        work, sum(sizes), Sharded(work, UNIT, sizes).take(table.shard(number)), own
    )
    lists = distinct(np.append(near, own))
    lengths = starts[lists + 1] - starts[lists]
    members = concatenated_ranges(starts[lists], lengths)
    positions, row_numbers = table.take(members), numbers.take(members)
    places = int(np.searchsorted(members, low)) + np.arange(high - low)
    rows = _Tables(work, sizes, posterior, vocabulary)(positions)
    excluded = _excluded(work, sizes, positions, places)
    value, column = _likeliest(posterior, rows, places, near, lists, lengths, excluded, k + TIED)
    rank = np.lexsort((row_numbers[column], -value))[:, :k]
    value, column = (np.take_along_axis(array, rank, axis=1) for array in (value, column))
    found = np.empty(len(places), dtype=_found(k))
    found["position"] = positions[places]
    found["partners"]["row"] = np.where(np.isfinite(value), positions[column], -1)
    found["partners"]["probability"] = at_density(sigmoid(value), density)
    write_array(shard(work, "found", number), found[np.argsort(found["position"])])


def write_suggestions(block: int, work: Path, sizes: list[int], ranges: int) -> None:
    """Write the suggestions of the vertices of a block, in their order."""
    low = sum(sizes[:block])
    records = collect(work, "found", ranges, "position", low, low + sizes[block])
    partners = records["partners"][np.argsort(records["position"])]
    write_array(shard(work, "suggestions", block), partners)


def _found(k: int) -> np.dtype[Any]:
    return np.dtype([("position", "<i8"), ("partners", SUGGESTION, (k,))])


def _nearest_lists(work: Path, n: int, rows: Any, own: Numbers) -> Numbers:
    """The lists that some vertices are compared with, given their lists, ascending: (m, p)."""
    centroids = np.asarray(read_array(centroids_path(work, UNIT)))
    if n <= EXACT_UP_TO:
        return np.tile(np.arange(len(centroids)), (len(rows), 1))
    found = []
    for number in distinct(own).tolist():
        first, last = np.searchsorted(own, [number, number + 1])
        around = np.argsort(-(centroids @ centroids[number]), kind="stable")[:AROUND]
        cosine = torch.from_numpy(rows[first:last] @ centroids[around].T)
        found.append(around[cosine.topk(min(LISTS, len(around)), dim=1).indices.numpy()])
    return np.concatenate(found)


def _excluded(work: Path, sizes: list[int], positions: Numbers, places: Numbers) -> Any:
    """Which of some vertices the vertices at some places among them are linked with, or are."""
    linked, offsets = Ragged(work, "links", sizes).take_ragged(positions[places])
    query = np.repeat(np.arange(len(places)), np.diff(offsets))
    order = np.argsort(positions)
    column = order[np.searchsorted(positions, linked, sorter=order).clip(max=len(order) - 1)]
    there = positions[column] == linked
    query = np.append(query[there], np.arange(len(places)))
    column = np.append(column[there], places)
    shape = len(places), len(positions)
    return sparse.csr_array((np.ones(len(query), np.int8), (query, column)), shape=shape)


def _likeliest(
    posterior: LinkPosterior,
    rows: VertexRows,
    places: Numbers,
    near: Numbers,
    lists: Numbers,
    lengths: Numbers,
    excluded: Any,
    count: int,
) -> tuple[Any, Numbers]:
    """The likeliest partners of some vertices: log odds and rows, (m, count).

    Parameters
    ----------
    rows : the members of some lists, list after list
    places : the rows of the vertices
    near : (m, p) the lists that each is compared with
    lists, lengths : the numbers of the lists, and of their members
    """
    value = np.full((*near.shape, count), -np.inf, dtype=np.float32)
    column = np.zeros(value.shape, dtype=np.int32)
    order = np.argsort(near, axis=None, kind="stable")
    first_of = np.searchsorted(near.ravel()[order], np.append(lists, lists[-1] + 1))
    ends = np.append(0, np.cumsum(lengths)).tolist()
    for group, (first, last) in enumerate(pairwise(ends)):
        queries, slots = np.divmod(order[first_of[group] : first_of[group + 1]], near.shape[1])
        at_once = max(1, PAIRS_AT_ONCE // max(1, last - first))
        for start in range(0, len(queries) if last > first else 0, at_once):
            some, slot = queries[start : start + at_once], slots[start : start + at_once]
            score = _log_odds(posterior, rows, places[some], slice(first, last))
            linked = excluded[some, first:last].tocoo()
            score[linked.row, linked.col] = -np.inf
            best = torch.from_numpy(score).topk(min(count, last - first), dim=1)
            value[some, slot, : best.values.shape[1]] = best.values.numpy()
            column[some, slot, : best.values.shape[1]] = first + best.indices.numpy()
    best = torch.from_numpy(value.reshape(len(places), -1)).topk(count, dim=1)
    every: Any = column.reshape(len(places), -1)
    return best.values.numpy(), np.take_along_axis(every, best.indices.numpy(), axis=1)


def _weights(posterior: LinkPosterior, name: str, isolated: Any) -> Any:
    """The weight of a feature in pairs of which one vertex is isolated, or not."""
    other = posterior.isolated_weights or posterior.weights
    values = other.get(name, 0.0), posterior.weights.get(name, 0.0)
    return np.where(isolated, *values).astype(np.float32)


def _log_odds(posterior: LinkPosterior, rows: VertexRows, places: Numbers, members: slice) -> Any:
    """The log odds of some of the vertices with some others, in single precision."""
    log_degree = np.log1p(rows.degree).astype(np.float32)
    alone = rows.degree[members] == 0
    score = np.empty((len(places), len(alone)), dtype=np.float32)
    for isolated in (False, True):  # queries; pairs with an isolated vertex have other weights
        chosen = np.flatnonzero((rows.degree[places] == 0) == isolated)
        if not len(chosen):
            continue
        queries, mixed = places[chosen], alone | isolated
        offset = posterior.isolated_offset if posterior.isolated_weights else posterior.offset
        degree = _weights(posterior, "degree", mixed)
        total = np.where(mixed, offset + _weights(posterior, "isolated", mixed), posterior.offset)
        total = total.astype(np.float32) + degree * log_degree[members]
        own = total + log_degree[queries, None] * degree
        for name, unit in rows.scales.items():
            value = unit[queries] @ unit[members].T
            value /= np.float32(KNEE)
            np.arcsinh(value, out=value)
            value *= _weights(posterior, name, mixed)
            own += value
        words = _weights(posterior, "words", mixed)
        if words.any():
            value = (rows.words[queries] @ rows.words[members].T).toarray()
            value *= np.float32(100)
            np.log1p(value, out=value)
            value *= words
            own += value
        score[chosen] = own
    return score


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
