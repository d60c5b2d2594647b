"""Vertices without links, block by block, as in `vhe.graph.isolated`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy import sparse

from vhe.graph.model import marginal_variance
from vhe.scale.shards import Sharded, read_array, shard, write_array


def write_isolated(block: int, work: Path, sizes: list[int], weight: float) -> None:
    """Write the means of the vertices of a block that have no links, and their variances."""
    low = sum(sizes[:block])
    vertices = np.flatnonzero(read_array(shard(work, "degree", block)) == 0)
    near = np.asarray(read_array(shard(work, "near", block)))
    near = near[np.isin(near["i"] - low, vertices)]
    count = Sharded(work, "near-count", sizes)
    share = ((count.take(near["i"]) + 1.0) * (count.take(near["j"]) + 1.0)) ** -0.5
    columns, column = np.unique(near["j"], return_inverse=True)
    row = np.searchsorted(vertices, near["i"] - low)
    values = (weight * near["cosine"] * share).astype(np.float32)
    shape = len(vertices), len(columns)
    coupling = sparse.csr_array((values, (row, column)), shape=shape)
    precision = np.asarray(read_array(shard(work, "precision", block)))[vertices]
    codes = read_array(shard(work, "text-codes", block))[vertices]
    others = Sharded(work, "mean-embedding", sizes).take(columns)
    diagonal = precision + np.asarray(coupling.sum(axis=1), dtype=np.float32)
    mean = (precision[:, None] * codes + coupling @ others) / diagonal[:, None]
    write_array(shard(work, "isolated-mean", block), mean.astype(np.float32))
    variance = marginal_variance(coupling, diagonal, Sharded(work, "variance", sizes).take(columns))
    write_array(shard(work, "isolated-variance", block), variance.astype(np.float32))


def use_isolated(block: int, work: Path) -> None:
    """Write them into the means and variances of the block."""
    isolated = np.asarray(read_array(shard(work, "degree", block))) == 0
    for name, kind in (("mean-embedding", "mean"), ("variance", "variance")):
        table = np.array(read_array(shard(work, name, block)))
        table[isolated] = read_array(shard(work, f"isolated-{kind}", block))
        write_array(shard(work, name, block), table)
