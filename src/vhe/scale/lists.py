"""Inverted lists: clusters of similar texts, the order of the vertices by them, and the search.

Centroids come from a sample. The position of a vertex is its place in the order of lists, in which
similar lists are neighbours; a block is a range of positions that ends at the end of a list.
Similar vertices therefore share a block, and so do most linked ones. The members of a list are
compared exactly with the members of the lists whose centroids are nearest to its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from vhe.data.text import concatenated_ranges
from vhe.graph.neighbours import largest
from vhe.scale.centroids import Vectors, centroids_path, nearest_centroids
from vhe.scale.shards import Numbers, Sharded, collect, read_array, shard, write_array
from vhe.scale.words import directions

TEXTS = "initial"  # the table of text codes that the lists are made of
LIST_ROWS = 512  # texts per list, so that the cost per text does not grow with the network
PROBES = 16  # lists that a list is compared with
EXACT_UP_TO = 10_000  # vertices; up to here a list is compared with all lists

PLACE = np.dtype([("position", "<i8"), ("row", "<i8")])


def assign(part: int, work: Path, centre: Vectors, part_rows: list[int]) -> Numbers:
    """Write the list of each vertex of a part; return the number of vertices per list."""
    centroids = np.asarray(read_array(centroids_path(work, TEXTS)))
    rows = directions(read_array(shard(work, TEXTS, part)), centre)
    start = sum(part_rows[:part])
    found = np.arange(start, start + len(rows)) % len(centroids)  # of empty texts
    filled = np.flatnonzero(rows.any(axis=1))
    found[filled] = nearest_centroids(rows[filled], centroids)
    write_array(shard(work, "lists", part), found)
    return np.bincount(found, minlength=len(centroids))


def make_blocks(counts: Numbers, rows: int) -> tuple[Numbers, list[int]]:
    """The first position of each list (L + 1,), and the sizes of the blocks.

    ``counts`` (L,) are the sizes of the lists. A block ends with the list in which it reaches its
    share of the vertices.
    """
    starts = np.append(0, np.cumsum(counts))
    n = int(starts[-1])
    blocks = max(1, -(-n // rows))
    ends = np.unique(np.searchsorted(starts, np.arange(1, blocks + 1) * n / blocks))
    borders = np.unique(np.append(0, starts[ends]))
    return starts, np.diff(borders).tolist()


def place(part_and_first: tuple[int, Numbers], work: Path, part_rows: list[int]) -> None:
    """Write the positions of the vertices of a part, and (position, row) sorted by position.

    ``first`` (L,) is the position of the first vertex of this part in each list.
    """
    part, first = part_and_first
    found = np.asarray(read_array(shard(work, "lists", part)))
    order = np.argsort(found, kind="stable")
    sizes = np.bincount(found, minlength=len(first))
    rank = np.empty(len(found), dtype=np.int64)
    rank[order] = np.arange(len(found)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    positions = first[found] + rank
    write_array(shard(work, "positions", part), positions)
    records = np.empty(len(found), dtype=PLACE)
    records["position"], records["row"] = positions, sum(part_rows[:part]) + np.arange(len(found))
    write_array(shard(work, "places", part), records[order])


def gather_block(
    block: int, work: Path, sizes: list[int], part_rows: list[int], centre: Vectors
) -> None:
    """Write the rows of a block in the order of positions, and their directions."""
    start = sum(sizes[:block])
    records = collect(work, "places", len(part_rows), "position", start, start + sizes[block])
    rows = records["row"][np.argsort(records["position"])]
    write_array(shard(work, "rows", block), rows)
    codes = Sharded(work, TEXTS, part_rows).take(rows)
    write_array(shard(work, "directions", block), directions(codes, centre))


def nearby(
    block: int,
    table: Sharded,
    numbers: Sharded,
    centroids: Vectors,
    starts: Numbers,
) -> Iterator[tuple[Numbers, Numbers, Numbers]]:
    """What the vertices of each list of a block are compared with, list after list.

    Yields the positions of the members of a list, those of the members of the lists that are
    nearest to it, itself included, by their row numbers, and where the former are among the latter.

    Parameters
    ----------
    table : in the order of positions
    numbers : the row numbers of the positions
    centroids, starts : of the lists, (L, d) and (L + 1,)
    """
    low, high = table.starts[block : block + 2]
    first, last = np.searchsorted(starts, [low, high]).tolist()
    exact = len(table) <= EXACT_UP_TO
    near = np.tile(np.arange(len(centroids)), (last - first if exact else 0, 1))
    if not exact:
        cosine = torch.from_numpy(centroids[first:last] @ centroids.T)
        near = cosine.topk(min(PROBES, len(centroids)), dim=1).indices.numpy()
    others = order = np.zeros(0, np.int64)
    for number, lists in enumerate(near, start=first):
        own = np.arange(starts[number], starts[number + 1])
        if not len(own):
            continue
        if not (exact and len(others)):  # those of all lists are the same
            others = concatenated_ranges(starts[lists], starts[lists + 1] - starts[lists])
            others = others[np.argsort(numbers.take(others))]
            order = np.argsort(others)
        yield own, others, order[np.searchsorted(others, own, sorter=order)]


def nearest(
    block: int,
    table: Sharded,
    numbers: Sharded,
    centroids: Vectors,
    starts: Numbers,
    neighbours: int,
) -> tuple[Numbers, Numbers, Vectors]:
    """The nearest rows of the vertices of a block by cosine, zeros and themselves excluded.

    Positions i and j of the pairs, and their cosines, all positive. Of equally near rows (duplicate
    texts) those of the least row numbers are taken, as `vhe.graph.neighbours` does.
    """
    found: list[tuple[Any, Any, Any]] = []
    members = torch.zeros(0)
    known = np.zeros(0, np.int64)
    for _, others, places in nearby(block, table, numbers, centroids, starts):
        if others is not known:
            members, known = torch.from_numpy(table.take(others)), others
        count = min(neighbours, len(others) - 1)
        for some in torch.from_numpy(places).split(max(1, (1 << 24) // len(others))):
            if not count:
                continue
            cosine = members[some] @ members.T
            cosine[torch.arange(len(some)), some] = -2
            value, index = (best.numpy() for best in largest(cosine, count))
            query, rank = np.nonzero(value > 0)
            i = others[some.numpy()[query]]
            found.append((i, others[index[query, rank]], value[query, rank]))
    if not found:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32)
    i, j, cosines = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return i, j, cosines
