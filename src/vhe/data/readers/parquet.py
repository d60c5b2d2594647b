"""Columns of Parquet files as Python values, and Python values as Arrow arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vhe.errors import VHEError
from vhe.runtime.files import physical_memory
from vhe.runtime.messages import shortened


@contextmanager
def readable_parquet(where: str) -> Iterator[None]:
    """Convert the errors of pyarrow to one `VHEError` that names the file `where`."""
    import pyarrow

    try:
        yield
    except VHEError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError, ArithmeticError, LookupError) as error:
        reason = shortened((str(error).splitlines() or [""])[0].rstrip("."), 200)
        raise VHEError(f"{where} is not a readable Parquet file: {reason}.") from None


def open_parquet(raw: bytes) -> Any:
    """Return a ParquetFile that stores equal texts once, as the file does.

    It reads a copy in Arrow's memory: threads of Arrow that release memory of Python while the
    process ends would abort it.
    """
    import pyarrow
    from pyarrow import parquet, types

    copy = pyarrow.allocate_buffer(len(raw))
    memoryview(copy).cast("B")[:] = raw
    binary = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    schema = parquet.ParquetFile(pyarrow.BufferReader(copy)).schema_arrow
    names = [field.name for field in schema if any(test(field.type) for test in binary)]
    return parquet.ParquetFile(pyarrow.BufferReader(copy), read_dictionary=names)


def parquet_table(file: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return some columns of a Parquet file as Arrow columns.

    A file of a few kilobytes can expand to more than the memory; such a file is refused.
    """
    about = file.metadata
    groups = [about.row_group(k).total_byte_size for k in range(about.num_row_groups)]
    size = 8 * len(names) * about.num_rows + sum(groups)
    if size > physical_memory():
        raise OverflowError(f"it expands to {size:,} bytes, more than the memory of this machine")
    table = file.read(columns=list(names))
    return {name: table[name] for name in names}


def parquet_values(column: Any) -> list[Any]:
    """Return an Arrow column as Python values; equal texts are one object."""
    import pyarrow

    if not pyarrow.types.is_dictionary(column.type):
        return list(column.to_pylist())
    values: list[Any] = []
    for chunk in column.chunks:
        distinct = chunk.dictionary.to_pylist()
        values += [None if k is None else distinct[k] for k in chunk.indices.to_pylist()]
    return values


def parquet_numbers(column: Any) -> NDArray[Any]:
    """Return an Arrow column of numbers without nulls; `to_numpy` would import pandas."""
    chunks = [np.from_dlpack(chunk) for chunk in column.chunks]
    return np.concatenate(chunks) if chunks else np.zeros(0, dtype=np.int64)


def parquet_vectors(column: Any) -> list[Any]:
    """Return an Arrow column of lists of numbers as arrays, None for null; others as they are."""
    from pyarrow import compute, types

    lists = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    numbers = (types.is_floating, types.is_integer)
    kind = column.type
    if not any(test(kind) for test in lists) or not any(test(kind.value_type) for test in numbers):
        return parquet_values(column)
    rows: list[Any] = []
    for chunk in column.chunks:
        lengths = compute.list_value_length(chunk).to_pylist()
        values = chunk.flatten().to_numpy(zero_copy_only=False)  # without null lists; null is NaN
        start = 0
        for length in lengths:
            rows.append(None if length is None else values[start : start + length])
            start += length or 0
    return rows


def arrow_array(values: Sequence[Any]) -> Any:
    """Return an Arrow array of integers, floats, booleans, strings or lists of floats.

    Values of mixed or other types are converted to strings.
    """
    import pyarrow

    kinds = {type(value) for value in values} - {type(None)}
    if kinds in ({int}, {float}, {bool}, {str}, {list}):
        try:
            return pyarrow.array(list(values))
        except (OverflowError, pyarrow.ArrowInvalid):  # an integer beyond 64 bits
            pass
    strings = [None if value is None else str(value) for value in values]
    return pyarrow.array(strings, pyarrow.string())
