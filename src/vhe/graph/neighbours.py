"""The nearest texts of each text, by the cosine of centred text codes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vhe.graph.model import NEIGHBOURS, TextNeighbours

EXACT_UP_TO = 10_000  # texts; up to here each is compared with all others
NEAREST_CLUSTERS = 16  # beyond, a text is compared with those of this many nearest clusters


def nearest_texts(
    codes: NDArray[np.float32], neighbours: int = NEIGHBOURS
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Pairs (k, 2) of a text and one of its nearest texts, each once, and their cosines (k,).

    Pairs with a cosine of 0 or less are left out. Up to `EXACT_UP_TO` texts the result is exact;
    beyond, only texts of near clusters are compared, which misses some of the nearest.
    """
    n = len(codes)
    if min(neighbours, n - 1) < 1:
        return np.zeros((0, 2), dtype=np.int64), np.zeros(0, dtype=np.float32)
    centred = codes - codes.mean(axis=0)
    unit = centred / np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-12)
    table = torch.from_numpy(np.ascontiguousarray(unit))
    everything = torch.arange(n)
    groups = [(everything, everything)] if n <= EXACT_UP_TO else _near_clusters(table)
    keys, values = [], []
    for queries, candidates in groups:
        count, rows = min(neighbours, len(candidates) - 1), table[candidates].T
        for i in queries.split(max(1, (1 << 24) // len(candidates))) if count else ():
            cosine = table[i] @ rows
            cosine[i.unsqueeze(1) == candidates] = -2
            best = cosine.topk(count, dim=1)
            i, j = np.repeat(i.numpy(), count), candidates[best.indices].numpy().ravel()
            keys.append(np.minimum(i, j) * n + np.maximum(i, j))
            values.append(best.values.numpy().ravel())
    key, first = np.unique(np.concatenate(keys), return_index=True)
    value = np.concatenate(values)[first]
    positive = value > 0
    return np.stack(np.divmod(key[positive], n), axis=1), value[positive]


def text_neighbours(codes: NDArray[np.float32], empty: NDArray[np.bool_]) -> TextNeighbours:
    """The nearest texts among those that are not empty."""
    filled = np.flatnonzero(~empty)
    pairs, cosines = nearest_texts(codes[filled])
    return TextNeighbours(filled[pairs], cosines)


def _near_clusters(table: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Each cluster of rows of unit length, and the rows of the clusters that are nearest to it."""
    n = len(table)
    count = round(n**0.5 / 2)
    centres = table[torch.linspace(0, n - 1, count).long()]
    for _ in range(3):
        cluster = torch.cat([(part @ centres.T).argmax(dim=1) for part in table.split(1 << 14)])
        centres = torch.zeros_like(centres).index_add_(0, cluster, table)
        centres = torch.nn.functional.normalize(centres, dim=1)
    members = cluster.argsort(stable=True).split(torch.bincount(cluster, minlength=count).tolist())
    near = (centres @ centres.T).topk(min(NEAREST_CLUSTERS, count), dim=1).indices
    for own, others in zip(members, near.tolist(), strict=True):
        yield own, torch.cat([members[k] for k in {*others}])
