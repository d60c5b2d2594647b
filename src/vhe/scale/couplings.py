"""The linear systems of the posteriors in blocks: couplings, diagonal, exchange.

The couplings s are those of `vhe.graph.prior`, computed from both ends in the block of each, so
that every block has its rows of the symmetric matrix. A column of another block is part of the
halo: rows that the block receives in each iteration of the solver.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy import sparse

from vhe.graph.model import NEIGHBOURS, text_precision
from vhe.graph.prior import LARGEST_WEIGHT
from vhe.predict.pair_features import LINK_STRENGTHS
from vhe.runtime.arrays import distinct
from vhe.scale.centroids import centroids_path
from vhe.scale.lists import TEXTS, nearest
from vhe.scale.shards import (
    Numbers,
    Ragged,
    Sharded,
    collect,
    read_array,
    shard,
    write_array,
    write_ragged,
)
from vhe.scale.words import corpus_of, read_words
from vhe.text.codes import empty_noise
from vhe.text.lsa import CENTRE_SHARE, EMPTY_CENTRE, tfidf_rows

LINK = np.dtype([("i", "<i8"), ("j", "<i8")])
NEAR = np.dtype([("i", "<i8"), ("j", "<i8"), ("cosine", "<f4")])


def system_part(work: Path, name: str, part: str, block: int) -> Path:
    """The file of "offsets", "columns" and "weights" of the matrix, "diagonal" or "halo"."""
    return shard(work, f"system-{name}-{part}", block)


def half_links(part: int, work: Path, part_rows: list[int]) -> None:
    """Write both directions of the edges of a part by positions, sorted, without loops."""
    edges = np.asarray(read_array(shard(work, "edges", part)))
    ends = Sharded(work, "positions", part_rows).take(edges.ravel()).reshape(-1, 2)
    ends = np.unique(ends[ends[:, 0] != ends[:, 1]].reshape(-1, 2), axis=0)
    records = np.empty(2 * len(ends), dtype=LINK)
    records["i"], records["j"] = np.concatenate([ends, ends[:, ::-1]]).T
    write_array(shard(work, "half-links", part), records[np.argsort(records["i"], kind="stable")])


def near_texts(block: int, work: Path, sizes: list[int], starts: Numbers) -> None:
    """Write both directions of the pairs of the nearest texts of a block, sorted."""
    table, numbers = Sharded(work, "directions", sizes), Sharded(work, "rows", sizes)
    centroids = np.asarray(read_array(centroids_path(work, TEXTS)))
    i, j, cosine = nearest(block, table, numbers, centroids, starts, NEIGHBOURS)
    records = np.empty(2 * len(i), dtype=NEAR)
    records["i"], records["j"] = np.append(i, j), np.append(j, i)
    records["cosine"] = np.tile(cosine, 2)
    write_array(shard(work, "half-near", block), records[np.argsort(records["i"], kind="stable")])


def merge_pairs(block: int, work: Path, sizes: list[int], edge_parts: int) -> int:
    """Write the distinct links and pairs of nearest texts of a block, and how many each vertex
    has; return the number of links' ends."""
    low, n = sum(sizes[:block]), sum(sizes)
    limits = low, low + sizes[block]
    links = collect(work, "half-links", edge_parts, "i", *limits)
    key = distinct(links["i"] * n + links["j"])
    i, j = np.divmod(key, n)
    degree = np.bincount(i - low, minlength=sizes[block])
    write_array(shard(work, "degree", block), degree)
    write_ragged(work, "links", block, j, np.append(0, np.cumsum(degree)))
    near = collect(work, "half-near", len(sizes), "i", *limits)
    # of the cosines from both sides the larger, so that both blocks have the same
    near = near[np.lexsort((-near["cosine"], near["i"] * n + near["j"]))]
    _, first = np.unique(near["i"] * n + near["j"], return_index=True)
    near = near[first]
    write_array(shard(work, "near", block), near)
    write_array(
        shard(work, "near-count", block), np.bincount(near["i"] - low, minlength=sizes[block])
    )
    return len(key)


def write_block(
    block: int,
    work: Path,
    out: Path,
    sizes: list[int],
    part_rows: list[int],
    centre: np.ndarray,
    mean_log_length: float,
) -> None:
    """Write the text codes, precisions and TF-IDF rows of a block."""
    rows = np.asarray(read_array(shard(work, "rows", block)))
    scaled = Sharded(work, "codes", part_rows).take(rows)
    codes = scaled - np.float32(CENTRE_SHARE) * centre
    empty = np.flatnonzero(~scaled.any(axis=1))
    if len(empty):
        every = np.concatenate(
            [read_array(shard(work, "empty", part)) for part in range(len(part_rows))]
        )
        noise = empty_noise(len(every), scaled.shape[1]).numpy()
        codes[empty] = EMPTY_CENTRE * centre + noise[np.searchsorted(every, rows[empty])]
    write_array(shard(work, "text-codes", block), codes)
    corpus = corpus_of(Ragged(work, "tokens", part_rows), rows, read_words(out / "vocabulary.json"))
    precision = text_precision(corpus.lengths, mean_log_length)
    write_array(shard(work, "precision", block), precision)
    words = tfidf_rows(corpus, np.asarray(read_array(out / "idf.npy")))
    offsets = words.indptr.astype(np.int64)
    write_ragged(work, "tfidf-words", block, words.indices.astype(np.int32), offsets)
    write_ragged(work, "tfidf", block, words.data.astype(np.float32), offsets)


def write_system(
    block: int, work: Path, sizes: list[int], name: str, strength: float, weight: float
) -> list[int]:
    """Write the rows of a block: its couplings with local columns, the diagonal and the halo.

    ``name`` is "embedding" or a scale of the link posterior, which couples links only. Returns the
    blocks that the halo belongs to.
    """
    low = sum(sizes[:block])
    high = low + sizes[block]
    degree = Sharded(work, "degree", sizes)
    offsets = np.asarray(read_array(shard(work, "links-offsets", block)))
    i = low + np.repeat(np.arange(sizes[block]), np.diff(offsets))
    j = np.asarray(read_array(shard(work, "links", block)))
    own = np.repeat(degree.shard(block), np.diff(offsets))
    s = strength * ((own + 1.0) * (degree.take(j) + 1.0)) ** -0.25
    if name not in LINK_STRENGTHS and weight > 0:
        near = read_array(shard(work, "near", block))
        count = Sharded(work, "near-count", sizes)
        share = ((count.take(near["i"]) + 1.0) * (count.take(near["j"]) + 1.0)) ** -0.5
        i, j = np.append(i, near["i"]), np.append(j, near["j"])
        s = np.append(s, weight * near["cosine"] * share)
    s = s.clip(max=LARGEST_WEIGHT).astype(np.float32)
    outside = (j < low) | (j >= high)
    halo, position = np.unique(j[outside], return_inverse=True)
    column = j - low
    column[outside] = sizes[block] + position
    shape = (sizes[block], sizes[block] + len(halo))
    matrix = sparse.csr_array((s, (i - low, column)), shape=shape)
    precision = np.asarray(read_array(shard(work, "precision", block)))
    total = np.asarray(matrix.sum(axis=1), dtype=np.float32)
    for part, array in (
        ("offsets", matrix.indptr.astype(np.int32)),
        ("columns", matrix.indices.astype(np.int32)),
        ("weights", matrix.data),
        ("diagonal", precision + total),
        ("halo", halo),
    ):
        write_array(system_part(work, name, part, block), array)
    ends = np.searchsorted(halo, np.append(0, np.cumsum(sizes)))
    return list(np.flatnonzero(np.diff(ends)).tolist())


def write_boundary(
    block_and_receivers: tuple[int, list[int]], work: Path, sizes: list[int], name: str
) -> None:
    """Write which rows of a block others need, given the blocks that need some."""
    block, receivers = block_and_receivers
    low = sum(sizes[:block])
    wanted = [np.zeros(0, np.int64)]
    for other in receivers:
        halo = read_array(system_part(work, name, "halo", other))
        first, last = np.searchsorted(halo, [low, low + sizes[block]])
        wanted.append(halo[first:last])
    write_array(shard(work, f"boundary-{name}", block), distinct(np.concatenate(wanted)) - low)


def write_receipt(block: int, work: Path, sizes: list[int], name: str) -> None:
    """Write where the halo of a block is in the boundaries of others: one row for each of them."""
    halo = read_array(system_part(work, name, "halo", block))
    starts = np.append(0, np.cumsum(sizes))
    ends = np.searchsorted(halo, starts)
    positions = [np.zeros(0, np.int64)]
    for owner in np.flatnonzero(np.diff(ends)).tolist():
        boundary = read_array(shard(work, f"boundary-{name}", owner))
        rows = halo[ends[owner] : ends[owner + 1]] - starts[owner]
        positions.append(np.searchsorted(boundary, rows))
    offsets = np.cumsum([len(p) for p in positions])
    write_ragged(work, f"receipt-{name}", block, np.concatenate(positions), offsets)
