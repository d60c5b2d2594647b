"""Large tables: in memory, or in temporary files that are mapped into memory.

A page of a mapped file counts as memory of the process as long as it is mapped; `release`
(`arrays.py`) gives the pages back, and the data stay in the file.
"""

from __future__ import annotations

import os
import re
import tempfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vhe.errors import VHEError
from vhe.runtime.arrays import release

IN_MEMORY = 1 << 27  # bytes; a larger table is in a file
ROWS_AT_ONCE = 1 << 15
SCATTERED_AT_ONCE = 1 << 10  # rows; the system maps some pages around each

Rows = NDArray[np.float32]


def new_table(rows: int, columns: int) -> Rows:
    """A table (rows, columns) to be filled; the space of a file is reserved before."""
    size = 4 * rows * columns
    if size <= IN_MEMORY:
        return np.empty((rows, columns), dtype=np.float32)
    try:
        with tempfile.TemporaryFile() as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                file.truncate(size)
            return np.memmap(file, dtype=np.float32, mode="r+", shape=(rows, columns))
    except OSError as error:
        raise VHEError(
            f"a table of {size / 1e9:.1f} GB cannot be written to the temporary folder "
            f"({error.strerror or error}); free space there or set TMPDIR to another folder."
        ) from None


def take_rows(table: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
    """Some rows of a table, as an array in memory."""
    taken = np.empty((len(rows), *table.shape[1:]), dtype=table.dtype)
    for start in range(0, len(rows), SCATTERED_AT_ONCE):
        part = slice(start, start + SCATTERED_AT_ONCE)
        taken[part] = table[rows[part]]
        release(table)
    return taken


def copy_columns(table: NDArray[Any], first: int, last: int) -> Rows:
    """Some columns of a table, as an array in memory."""
    columns = np.empty((len(table), last - first), dtype=np.float32)
    for start in range(0, len(table), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        columns[rows] = table[rows, first:last]
        release(table)
    return columns


def write_columns(table: Rows, first: int, values: Rows) -> None:
    """Write columns of a table, from the column ``first`` on."""
    for start in range(0, len(table), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        table[rows, first : first + values.shape[1]] = values[rows]
        release(table)


def parse_bytes(text: str) -> int:
    """A number of bytes.

    >>> parse_bytes("3GB"), parse_bytes("500 MB"), parse_bytes("2GiB")
    (3000000000, 500000000, 2147483648)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?\s*", text, re.IGNORECASE)
    if match is None or not float(match[1]):
        raise VHEError(f"the memory is {text!r}, but must be such as 3GB or 500MB")
    unit = " KMGT".index(match[2].upper() or " ")
    return int(float(match[1]) * (1024 if match[3] else 1000) ** unit)
