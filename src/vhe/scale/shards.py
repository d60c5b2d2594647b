"""Tables in shards: one NPY file per part, memory-mapped, and what is gathered from them.

Pages of a mapped file count as memory of the worker that has read them, and Dask pauses or ends a
worker that exceeds its limit: they are given back as soon as rows are gathered.

Every file is written whole or not at all, so that a task that a worker did not finish can run
again, on this or another worker, with the same result.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from tokenize import TokenError
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from vhe.data.text import concatenated_ranges
from vhe.errors import VHEError
from vhe.runtime.arrays import release
from vhe.runtime.files import atomic_write
from vhe.runtime.messages import shortened

Numbers = NDArray[np.int64]


class _Writer:
    """A file that numpy cannot bypass: its own writing does not say why it failed."""

    def __init__(self, file: BinaryIO) -> None:
        self.write = file.write


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Write an NPY file."""
    with atomic_write(path) as temporary, temporary.open("wb") as file:
        np.lib.format.write_array(cast(Any, _Writer(file)), array, allow_pickle=False)


def write_json(path: Path, value: object) -> None:
    with atomic_write(path) as temporary:
        temporary.write_text(json.dumps(value, indent=1), encoding="utf-8")


def read_array(path: Path) -> Any:
    """The array of an NPY file, memory-mapped and read-only."""
    try:  # mapped as such, also if it looks like another kind of file
        return np.lib.format.open_memmap(path, mode="r")
    except (OSError, ValueError, EOFError, TypeError, TokenError) as error:
        reason = shortened(" ".join((getattr(error, "strerror", None) or str(error)).split()))
        raise VHEError(f"{path} cannot be read: {reason}; fit the model again.") from None


def shard(folder: Path, table: str, number: int) -> Path:
    """The NPY file of one part of a table."""
    return folder / table / f"{number:05d}.npy"


class Sharded:
    """A table whose consecutive rows are in consecutive shards.

    Parameters
    ----------
    sizes : number of rows of each shard
    """

    def __init__(self, folder: Path, table: str, sizes: Sequence[int]) -> None:
        self.folder, self.table = folder, table
        self._opened: dict[int, NDArray[Any]] = {}
        self.starts = np.append(0, np.cumsum(sizes, dtype=np.int64))

    def __len__(self) -> int:
        return int(self.starts[-1])

    def shard(self, number: int) -> NDArray[Any]:
        if number not in self._opened:
            path = shard(self.folder, self.table, number)
            self._opened[number] = np.asarray(read_array(path))
        return self._opened[number]

    def take(self, rows: Numbers) -> NDArray[Any]:
        """Some rows, in the given order."""
        taken: NDArray[Any] | None = None
        for number, where in self._by_shard(rows):
            values = self.shard(number)
            if taken is None:
                taken = np.empty((len(rows), *values.shape[1:]), dtype=values.dtype)
            taken[where] = values[rows[where] - self.starts[number]]
            release(values)
        return self.shard(0)[:0] if taken is None else taken

    def range(self, start: int, end: int) -> NDArray[Any]:
        """The rows from ``start`` to ``end``, which lie in one shard."""
        number = int(np.searchsorted(self.starts, start, side="right")) - 1
        values = self.shard(number)
        return values[start - self.starts[number] : end - self.starts[number]]

    def _by_shard(self, rows: Numbers) -> list[tuple[int, Numbers]]:
        """The shards that hold some rows, and which of ``rows`` each holds, in ascending order."""
        order = np.argsort(rows, kind="stable")
        ends = np.searchsorted(rows[order], self.starts)
        return [(k, order[ends[k] : ends[k + 1]]) for k in np.flatnonzero(np.diff(ends)).tolist()]


class Ragged(Sharded):
    """A table whose rows have different lengths: values, and offsets in a second table."""

    def take_ragged(self, rows: Numbers) -> tuple[NDArray[Any], Numbers]:
        """The values of some rows, one row after the other, and the offsets (k + 1,)."""
        lengths = np.zeros(len(rows), dtype=np.int64)
        parts = []
        for number, where in self._by_shard(rows):
            offsets = read_array(shard(self.folder, f"{self.table}-offsets", number))
            local = rows[where] - self.starts[number]
            lengths[where] = offsets[local + 1] - offsets[local]
            chosen = concatenated_ranges(offsets[local], lengths[where])
            parts.append((where, self.shard(number)[chosen]))
            release(self.shard(number))
        ends = np.append(0, np.cumsum(lengths))
        taken = np.empty(ends[-1], dtype=parts[0][1].dtype if parts else self.shard(0).dtype)
        for where, values in parts:
            taken[concatenated_ranges(ends[where], lengths[where])] = values
        return taken, ends


def write_ragged(
    folder: Path, table: str, number: int, values: NDArray[Any], offsets: Numbers
) -> None:
    write_array(shard(folder, f"{table}-offsets", number), offsets)
    write_array(shard(folder, table, number), values)


def collect(folder: Path, table: str, shards: int, key: str, start: Any, end: Any) -> NDArray[Any]:
    """The records with start <= key < end of all shards, each of which is sorted by the key.

    ``end`` None means no limit. This is the receiving side of a shuffle: what one task wrote in
    one file, sorted, many tasks read in slices.
    """
    found = []
    for number in range(shards):
        records = read_array(shard(folder, table, number))
        first = np.searchsorted(records[key], start)
        last = len(records) if end is None else np.searchsorted(records[key], end)
        found.append(np.asarray(records[first:last]))
    return np.concatenate(found)
