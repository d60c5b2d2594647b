"""Clusters of the rows of a table: their centroids, and the nearest of these to a row.

Centroids come from evenly spaced rows. In an iteration of k-means every part adds up its share of
these by cluster, so that all workers take part.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from vhe.scale.engine import Engine
from vhe.scale.shards import Numbers, Sharded, read_array, shard, write_array
from vhe.scale.words import directions

LEAST_LISTS, MOST_LISTS = 16, 1 << 14
SAMPLE_PER_LIST, LARGEST_SAMPLE = 64, 200_000  # rows that the centroids come from
ITERATIONS = 3  # of k-means
PRODUCTS_AT_ONCE = 1 << 24

Vectors = NDArray[np.float32]


def find_centroids(
    engine: Engine, table: str, sizes: list[int], rows_per_list: int, centre: Vectors | None = None
) -> None:
    """Write the centroids of a table, of unit length, in an order in which neighbours are similar.

    Parameters
    ----------
    sizes : rows of each part of the table
    rows_per_list : about this many rows belong to a centroid
    centre : subtracted from the rows, which are scaled to unit length (default: they have it)
    """
    work, parts, n = engine.folder, range(len(sizes)), sum(sizes)
    count = min(n, max(LEAST_LISTS, min(n // rows_per_list, MOST_LISTS)))
    size = min(n, max(count, min(SAMPLE_PER_LIST * count, LARGEST_SAMPLE)))
    found = engine.map("centroids", _write_sample, parts, work, table, sizes, size, centre)
    count = min(count, sum(found))
    chosen = np.linspace(0, max(0, sum(found) - 1), count).astype(np.int64)
    centroids: Any = Sharded(work, _sample(table), found).take(chosen)
    if not count:  # no tokens found in any text
        centroids = np.ones((1, centroids.shape[1]), np.float32)
    for _ in range(ITERATIONS):
        write_array(centroids_path(work, table), centroids)
        sums, members = engine.reduce("centroids", _add_up, parts, work, table, combine=_total)
        length = np.linalg.norm(sums, axis=1, keepdims=True)
        moved = (members[:, None] > 0) & (length > 0)
        centroids = np.where(moved, sums / np.maximum(length, 1e-12), centroids).astype(np.float32)
    order = np.array(_similar_order(centroids))
    write_array(centroids_path(work, table), centroids[order])


def centroids_path(work: Path, table: str) -> Path:
    return work / f"{table}-centroids.npy"


def nearest_centroids(rows: Vectors, centroids: Vectors) -> Numbers:
    """The number of the nearest centroid of each row."""
    table = torch.tensor(centroids)
    parts = torch.tensor(rows).split(max(1, PRODUCTS_AT_ONCE // len(centroids)))
    return torch.cat([(part @ table.T).argmax(dim=1) for part in parts]).numpy()


def _sample(table: str) -> str:
    return f"{table}-sample"


# --- tasks


def _write_sample(
    part: int, work: Path, table: str, sizes: list[int], size: int, centre: Vectors | None
) -> int:
    """Write the rows of a part that the centroids come from, without zeros; return their number."""
    low = sum(sizes[:part])
    chosen = np.linspace(0, sum(sizes) - 1, size).astype(np.int64)
    first, last = np.searchsorted(chosen, [low, low + sizes[part]])
    rows = np.asarray(read_array(shard(work, table, part)))[chosen[first:last] - low]
    rows = rows if centre is None else directions(rows, centre)
    rows = rows[rows.any(axis=1)]
    write_array(shard(work, _sample(table), part), rows)
    return len(rows)


def _add_up(part: int, work: Path, table: str) -> tuple[NDArray[np.float64], Numbers]:
    """The sums and the numbers of the rows of a part by cluster: (L, d) and (L,)."""
    rows = np.asarray(read_array(shard(work, _sample(table), part)))
    centroids = np.asarray(read_array(centroids_path(work, table)))
    sums = torch.zeros(centroids.shape, dtype=torch.float64)
    cluster = nearest_centroids(rows, centroids)
    sums.index_add_(0, torch.from_numpy(cluster), torch.tensor(rows, dtype=torch.float64))
    return sums.numpy(), np.bincount(cluster, minlength=len(centroids))


def _total(parts: list[tuple[Any, Any]]) -> tuple[Any, Any]:
    sums, members = zip(*parts, strict=True)
    return sum(sums), sum(members)


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
