"""Ids to row numbers: an index sorted by hash, in shards, and the edges as row numbers.

A row number counts the vertices in the order of the part files. The 128 bits of the two hashes of
a string identify it; the first hash of an integer does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vhe.errors import VHEError
from vhe.runtime.messages import shortened, shown
from vhe.scale.inputs import Piece, read_parts
from vhe.scale.shards import Numbers, collect, read_array, shard, write_array

ENTRY = np.dtype([("hash", "<u8"), ("check", "<u8"), ("row", "<i8")])
HASH_KEYS = "vhe id hash no 1", "vhe id hash no 2"  # 16 bytes each
ROWS_PER_BUCKET = 1 << 20


def hashed(ids: list[Any], id_type: str) -> NDArray[Any]:
    """The entries of ids, in their order, with the row 0."""
    from pandas.util import hash_array

    entries = np.zeros(len(ids), dtype=ENTRY)
    if id_type == "integer":
        try:
            values = np.array(ids, dtype=np.int64)
        except OverflowError:
            raise VHEError("an id is an integer beyond 64 bits; use strings.") from None
        entries["hash"] = hash_array(values)  # a bijection
    else:
        objects = np.array(ids, dtype=object)
        for name, key in zip(("hash", "check"), HASH_KEYS, strict=True):
            entries[name] = hash_array(objects, hash_key=key, categorize=False)
    return entries


def bucket_starts(buckets: int) -> NDArray[np.uint64]:
    """The least hash of each bucket."""
    return np.array([(k << 64) // buckets for k in range(buckets)], dtype=np.uint64)


def merge_bucket(
    number: int, work: Path, out: Path, buckets: int, parts: int, part_rows: list[int]
) -> None:
    """Collect the ids of a range of hashes, sort them, and refuse duplicates."""
    starts = [*bucket_starts(buckets), None]
    entries = collect(work, "keys", parts, "hash", starts[number], starts[number + 1])
    entries = entries[np.lexsort((entries["row"], entries["check"], entries["hash"]))]
    same = (entries["hash"][1:] == entries["hash"][:-1]) & (
        entries["check"][1:] == entries["check"][:-1]
    )
    if same.any():
        where = int(np.flatnonzero(same)[0])
        first, second = (int(entries["row"][k]) for k in (where, where + 1))
        name = shown(id_of(out, second, np.append(0, np.cumsum(part_rows))))
        raise VHEError(
            f"duplicate id {name} in rows {first + 1:,} and {second + 1:,} of the vertices; "
            "remove one of them."
        )
    write_array(shard(out, "index", number), entries)


def find_rows(folder: Path, buckets: int, wanted: NDArray[Any]) -> Numbers:
    """The row of each entry of ``wanted``; -1 where the id is unknown."""
    rows = np.full(len(wanted), -1, dtype=np.int64)
    order = np.argsort(wanted["hash"], kind="stable")  # one pass over each bucket
    ends = np.append(np.searchsorted(wanted["hash"][order], bucket_starts(buckets)), len(wanted))
    for number in np.flatnonzero(np.diff(ends)).tolist():
        entries = read_array(shard(folder, "index", number))
        if entries.dtype != ENTRY or entries.ndim != 1:
            raise VHEError(f"{shard(folder, 'index', number)} is damaged; fit the model again.")
        asked = order[ends[number] : ends[number + 1]]
        hashes = wanted["hash"][asked]
        position = np.searchsorted(entries["hash"], hashes)
        while len(asked):
            inside = position < len(entries)
            inside[inside] = entries["hash"][position[inside]] == hashes[inside]
            asked, hashes, position = asked[inside], hashes[inside], position[inside]
            right = entries["check"][position] == wanted["check"][asked]
            rows[asked[right]] = entries["row"][position[right]]
            # different strings with the same first hash are neighbours
            asked, hashes, position = asked[~right], hashes[~right], position[~right] + 1
    return rows


def resolve_edges(piece: Piece, work: Path, out: Path, buckets: int, id_type: str) -> int:
    """Write the edges of a piece as row numbers (m, 2), one shard per part; return how many."""
    row, total = piece.row_in_file, 0
    for number, columns in enumerate(read_parts(piece), start=piece.first_part):
        names = ("source", "target")
        ends = [find_rows(out, buckets, hashed(columns[name], id_type)) for name in names]
        for name, found in zip(names, ends, strict=True):
            if (found < 0).any():
                where = int(np.flatnonzero(found < 0)[0])
                raise VHEError(
                    f"{piece.url} (row {row + where + 1}): unknown {name} "
                    f"{shown(columns[name][where])}: no vertex has this id."
                )
        edges = np.stack(ends, axis=1)
        write_array(shard(work, "edges", number), edges)
        row += len(edges)
        total += len(edges)
    return total


def arrow_shard(out: Path, part: int) -> Path:
    return out / "vertices" / f"{part:05d}.arrow"


def vertex_table(out: Path, part: int) -> Any:
    """The columns id and text (its beginning) of a part, memory-mapped."""
    import pyarrow

    try:
        with pyarrow.memory_map(str(arrow_shard(out, part))) as file:
            return pyarrow.ipc.open_file(file).read_all()
    except (OSError, pyarrow.ArrowException) as error:
        reason = shortened(" ".join(str(error).split()))
        raise VHEError(f"{arrow_shard(out, part)} cannot be read: {reason}; fit again.") from None


def id_of(out: Path, row: int, starts: Numbers) -> Any:
    part = int(np.searchsorted(starts, row, side="right")) - 1
    return vertex_table(out, part)["id"][row - int(starts[part])].as_py()
