"""Inverted lists: clusters of similar texts, the order of the vertices by them, and the search.

Centroids come from a sample. The position of a vertex is its place in the order of lists, in which
similar lists are neighbours; a block is a range of positions that ends at the end of a list.
Similar vertices therefore share a block, and so do most linked ones. A query is compared exactly
with the members of the lists whose centroids are nearest to it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from vhe.graph.neighbours import largest
from vhe.scale.shards import Numbers, Sharded, collect, read_array, shard, write_array
from vhe.scale.words import directions

LISTS = 1.0  # number of lists, in units of √n
LEAST_LISTS = 16
PROBES = 24  # lists that a query is compared with
EXACT_UP_TO = 10_000  # vertices; up to here a query is compared with all lists
SAMPLE_PER_LIST, LARGEST_SAMPLE = 64, 200_000  # texts that the centroids come from
ITERATIONS = 5  # of k-means

Vectors = NDArray[np.float32]
PLACE = np.dtype([("position", "<i8"), ("row", "<i8")])


def make_centroids(work: Path, centre: Vectors, part_rows: list[int]) -> None:
    """Write the centroids of the lists (L, d), unit length, in an order in which neighbours are
    similar: k-means of evenly spaced texts."""
    codes = Sharded(work, "initial", part_rows)
    n = len(codes)
    count = min(n, max(LEAST_LISTS, round(LISTS * n**0.5)))
    size = min(n, max(count, min(SAMPLE_PER_LIST * count, LARGEST_SAMPLE)))
    sample = directions(codes.take(np.linspace(0, n - 1, size).astype(np.int64)), centre)
    table = torch.from_numpy(sample[sample.any(axis=1)])
    if not len(table):  # no text has a word
        table = torch.ones(1, sample.shape[1])
    count = min(count, len(table))
    centres = table[torch.linspace(0, len(table) - 1, count).long()]
    for _ in range(ITERATIONS):
        nearest = torch.cat([(part @ centres.T).argmax(dim=1) for part in table.split(1 << 14)])
        sums = torch.zeros_like(centres).index_add_(0, nearest, table)
        empty = torch.bincount(nearest, minlength=count) == 0
        sums[empty] = centres[empty]
        centres = torch.nn.functional.normalize(sums, dim=1)
    ordered = centres.numpy()
    write_array(work / "centroids.npy", ordered[np.array(_similar_order(ordered))])


def assign(part: int, work: Path, centre: Vectors, part_rows: list[int]) -> Numbers:
    """Write the list of each vertex of a part; return the number of vertices per list."""
    centroids = np.asarray(read_array(work / "centroids.npy"))
    rows = directions(read_array(shard(work, "initial", part)), centre)
    start = sum(part_rows[:part])
    found = np.arange(start, start + len(rows)) % len(centroids)  # of empty texts
    filled = np.flatnonzero(rows.any(axis=1))
    for some in np.array_split(filled, max(1, len(filled) * len(centroids) >> 24)):
        found[some] = (rows[some] @ centroids.T).argmax(axis=1)
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
    codes = Sharded(work, "initial", part_rows).take(rows)
    write_array(shard(work, "directions", block), directions(codes, centre))


def list_sums(block: int, work: Path, table: str, sizes: list[int], starts: Numbers) -> Any:
    """The sums of the rows of each list of a block: the first list, and (lists, d)."""
    low = sum(sizes[:block])
    first, last = np.searchsorted(starts, [low, low + sizes[block]])
    rows = np.asarray(read_array(shard(work, table, block)), dtype=np.float64)
    number = np.repeat(np.arange(last - first), np.diff(starts[first : last + 1]))
    sums = np.zeros((last - first, rows.shape[1]))
    np.add.at(sums, number, rows)
    return int(first), sums


def search(
    queries: Vectors,
    own: Numbers,
    table: Sharded,
    numbers: Sharded,
    centroids: Vectors,
    starts: Numbers,
    neighbours: int,
) -> tuple[Numbers, Vectors]:
    """The nearest rows of each query by cosine, itself excluded: positions and cosines, (q, k).

    The position is -1 where there are fewer. Of equally near rows (duplicate texts) those of the
    least row numbers are taken, as `vhe.graph.neighbours` does.

    Parameters
    ----------
    queries : (q, d) of unit length
    own : (q,) their positions
    table : rows of unit length in the order of positions
    numbers : their row numbers, ascending in each list
    centroids, starts : of the lists, (L, d) and (L + 1,)
    """
    lists = len(centroids)
    probes = lists if len(table) <= EXACT_UP_TO else min(PROBES, lists)
    unit, places, centre = (torch.from_numpy(np.array(a)) for a in (queries, own, centroids))
    chosen = torch.cat(
        [(part @ centre.T).topk(probes, dim=1).indices for part in unit.split(1 << 13)]
    )
    visits = chosen.ravel().argsort(stable=True)  # queries by list
    ends = torch.bincount(chosen.ravel(), minlength=lists).cumsum(0).tolist()
    best = torch.full((len(unit), neighbours), -2.0)
    found = torch.full((len(unit), neighbours), -1, dtype=torch.int64)
    rows = torch.full_like(found, len(table))
    begin = 0
    for number, end in enumerate(ends):
        visitors, begin = visits[begin:end] // probes, end
        low, high = int(starts[number]), int(starts[number + 1])
        if not len(visitors) or low == high:
            continue
        members = torch.from_numpy(np.array(table.range(low, high)))
        own_rows = torch.from_numpy(np.array(numbers.range(low, high)))
        for some in visitors.split(max(1, (1 << 24) // len(members))):
            cosine = unit[some] @ members.T
            inside = ((places[some] >= low) & (places[some] < high)).nonzero().squeeze(1)
            cosine[inside, places[some][inside] - low] = -2
            value, index = largest(cosine, min(neighbours, len(members)))
            row, order = torch.cat([rows[some], own_rows[index]], dim=1).sort(dim=1)
            value = torch.cat([best[some], value], dim=1).gather(1, order)
            position = torch.cat([found[some], index + low], dim=1).gather(1, order)
            best[some], index = largest(value, neighbours)
            found[some], rows[some] = position.gather(1, index), row.gather(1, index)
    found[best < -1] = -1
    best, order = best.sort(dim=1, descending=True, stable=True)
    return found.gather(1, order).numpy(), best.numpy()


def _similar_order(centres: Vectors) -> list[int]:
    """An order in which neighbours are similar: halves along the principal direction, again and
    again."""
    stack, order = [np.arange(len(centres))], []
    while stack:
        group = stack.pop()
        if len(group) <= 2:
            order += group.tolist()
            continue
        rows = centres[group] - centres[group].mean(axis=0)
        direction = rows[int(np.argmax((rows**2).sum(axis=1)))]
        for _ in range(4):
            direction = (rows @ direction) @ rows
            direction = direction / max(float(np.linalg.norm(direction)), 1e-12)
        along = group[np.argsort(rows @ direction, kind="stable")]
        stack += [along[len(along) // 2 :], along[: len(along) // 2]]
    return order
