"""The nearest texts of each text, by the cosine of centred text codes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vhe.graph.model import NEIGHBOURS, TextNeighbours
from vhe.runtime.arrays import release, unit_rows
from vhe.runtime.tables import new_table

EXACT_UP_TO = 10_000  # texts; up to here each is compared with all others
NEAREST_CLUSTERS = 16  # beyond, a text is compared with those of this many nearest clusters
CLUSTERS = 0.5  # number of clusters, in units of √n; more where they would be larger than this:
MOST_MEMBERS = 512  # texts of a cluster on average, so that the cost per text does not grow
SAMPLE_PER_CLUSTER, LEAST_SAMPLE = 100, 50_000  # texts that the centres come from
BLOCK = 1 << 15  # rows processed at a time
ASSIGNED_AT_ONCE = 1 << 14  # rows that are compared with all centres
ROUNDING = 1e-6  # cosines that differ by less are equal


def nearest_texts(
    codes: NDArray[np.float32],
    neighbours: int = NEIGHBOURS,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Pairs (k, 2) of a text and one of its nearest texts, each once, and their cosines (k,).

    Pairs with a cosine of 0 or less are left out; of equally near texts the first are taken. Up to
    `EXACT_UP_TO` texts the result is exact; beyond, only texts of near clusters are compared, which
    misses some of the nearest.
    """
    n = len(codes)
    if min(neighbours, n - 1) < 1:
        return np.zeros((0, 2), dtype=np.int64), np.zeros(0, dtype=np.float32)
    table = _unit_rows(codes)
    groups = _one_group(table) if n <= EXACT_UP_TO else _near_clusters(table)
    del table
    keys, values, done = [], [], 0
    for queries, candidates, rows in groups:
        count = min(neighbours, len(candidates) - 1)
        places = torch.searchsorted(candidates, queries)
        for own in places.split(max(1, (1 << 24) // len(candidates))) if count else ():
            cosine = rows[own] @ rows.T
            cosine[torch.arange(len(own)), own] = -2
            best, index = largest(cosine, count)
            i = np.repeat(candidates[own].numpy(), count)
            j, value = candidates[index].numpy().ravel(), best.numpy().ravel()
            positive = value > 0
            keys.append((np.minimum(i, j) * n + np.maximum(i, j))[positive])
            values.append(value[positive])
        done += len(queries)
        progress(done, n)
    key, first = np.unique(np.concatenate(keys), return_index=True)
    return np.stack(np.divmod(key, n), axis=1), np.concatenate(values)[first]


def largest(cosine: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The ``count`` largest entries of each row and their columns: (k, count) each.

    Of entries that differ by rounding only, the first columns are taken, so that the choice does
    not depend on how the cosines were computed. Equal texts are common.
    """
    best = cosine.topk(min(count + 1, cosine.shape[1]), dim=1)
    value, index = best.values[:, :count].contiguous(), best.indices[:, :count].contiguous()
    if best.values.shape[1] == count:
        return value, index
    tied = (best.values[:, count - 1] - best.values[:, count] <= ROUNDING).nonzero().squeeze(1)
    for rows in tied.split(max(1, (1 << 22) // cosine.shape[1])):
        some, least = cosine[rows], value[rows, -1:]
        above = some > least + ROUNDING
        equal = (some >= least - ROUNDING) & ~above
        missing = count - above.sum(dim=1, keepdim=True)
        chosen = above | (equal & (equal.cumsum(dim=1) <= missing))
        index[rows] = chosen.nonzero()[:, 1].reshape(-1, count)
        value[rows] = some.gather(1, index[rows])
    return value, index


def _unit_rows(codes: NDArray[np.float32]) -> NDArray[np.float32]:
    """Centred codes of unit length."""
    n = len(codes)
    if n <= EXACT_UP_TO:
        centred = codes - codes.mean(axis=0)
        unit = centred / np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-12)
        return np.ascontiguousarray(unit)
    table, parts = new_table(*codes.shape), [slice(k, k + BLOCK) for k in range(0, n, BLOCK)]
    total = np.zeros(codes.shape[1])
    for part in parts:
        total += codes[part].sum(axis=0, dtype=np.float64)
        release(codes)
    centre = (total / n).astype(np.float32)
    for part in parts:
        table[part] = unit_rows(codes[part] - centre)
        release(codes)
        release(table)
    return table


def text_neighbours(
    codes: NDArray[np.float32],
    empty: NDArray[np.bool_],
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> TextNeighbours:
    """The nearest texts among those that are not empty."""
    filled = np.flatnonzero(~empty)
    chosen = codes if len(filled) == len(codes) else _rows(codes, filled)
    pairs, cosines = nearest_texts(chosen, progress=progress)
    return TextNeighbours(filled[pairs], cosines)


def _rows(codes: NDArray[np.float32], chosen: NDArray[np.int64]) -> NDArray[np.float32]:
    table = new_table(len(chosen), codes.shape[1])
    for start in range(0, len(chosen), BLOCK):
        part = slice(start, start + BLOCK)
        table[part] = codes[chosen[part]]
        release(codes)
        release(table)
    return table


def _one_group(table: NDArray[np.float32]) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """All rows, to be compared with all rows."""
    everything = torch.arange(len(table))
    yield everything, everything, torch.from_numpy(table)


def _near_clusters(table: NDArray[np.float32]) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Each cluster of rows of unit length, and the rows of the clusters that are nearest to it.

    Yields the numbers of the rows of a cluster, those of the rows to compare them with, ascending,
    and these rows. The centres are those of evenly spaced rows.
    """
    n = len(table)
    count = max(round(CLUSTERS * n**0.5), n // MOST_MEMBERS)
    size = min(n, max(LEAST_SAMPLE, SAMPLE_PER_CLUSTER * count))
    sample = torch.from_numpy(table[torch.linspace(0, n - 1, size).long().numpy()])
    release(table)
    centres = sample[torch.linspace(0, size - 1, count).long()]
    for _ in range(3):
        cluster = _assigned(sample.numpy(), centres)
        centres = torch.zeros_like(centres).index_add_(0, cluster, sample)
        centres = torch.nn.functional.normalize(centres, dim=1)
    del sample
    cluster = _assigned(table, centres)
    sizes = torch.bincount(cluster, minlength=count).tolist()
    order = cluster.argsort(stable=True)
    # rows of a cluster one after the other: a page of a mapped file holds several of them
    ordered = _rows(table, order.numpy())
    del table
    members, starts = order.split(sizes), np.append(0, np.cumsum(sizes)).tolist()
    near = (centres @ centres.T).topk(min(NEAREST_CLUSTERS, count), dim=1).indices
    for number, (own, others) in enumerate(zip(members, near.tolist(), strict=True)):
        if len(own):
            chosen = {*others, number}
            candidates, place = torch.cat([members[k] for k in chosen]).sort()
            rows = np.concatenate([ordered[starts[k] : starts[k + 1]] for k in chosen])
            release(ordered)
            yield own, candidates, torch.from_numpy(rows)[place]


def _assigned(table: NDArray[np.float32], centres: Tensor) -> Tensor:
    """The nearest centre of each row: (n,)."""
    found = []
    for start in range(0, len(table), ASSIGNED_AT_ONCE):
        part = torch.from_numpy(np.asarray(table[start : start + ASSIGNED_AT_ONCE]))
        found.append((part @ centres.T).argmax(dim=1))
        release(table)
    return torch.cat(found)
