"""Writing embeddings to files: Parquet, CSV, npy and the text format of word2vec."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from os import PathLike
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vhe.data.readers.parquet import arrow_array
from vhe.data.readers.tables import checked_extension
from vhe.errors import VHEError
from vhe.runtime.arrays import blocks
from vhe.runtime.files import atomic_write


def write_embedding(
    path: str | PathLike[str],
    ids: Sequence[Hashable],
    mean: NDArray[np.floating],
    std: NDArray[np.floating] | None = None,
) -> None:
    """Write an embedding atomically; the format is inferred from the extension of `path`.

    Parameters
    ----------
    path : str or path
        `.parquet`: columns id, mean and std, the last two lists of d numbers.
        `.csv`: columns id, mean_0 ... mean_{d-1} and std_0 ... std_{d-1}.
        `.npy`: (n, d), or (2, n, d) with `std`; rows in the order of `ids`, which are not stored.
        `.txt`: word2vec's text format: 'n d', then one vertex per line; white space in ids
        becomes _.
    ids : sequence of hashable, n
    mean : (n, d) array
    std : (n, d) array, optional
        Standard deviations.
    """
    path = Path(path)
    extension = checked_extension(path, (".parquet", ".csv", ".npy", ".txt"))
    if mean.ndim != 2 or len(mean) != len(ids) or (std is not None and std.shape != mean.shape):
        shapes = f"{mean.shape}" if std is None else f"{mean.shape} and {std.shape}"
        raise VHEError(f"an embedding of {len(ids):,} vertices cannot have the shape {shapes}.")
    if extension == ".txt" and std is not None:
        raise VHEError(
            f"{path}: word2vec's format cannot store standard deviations; use .parquet, .csv or "
            ".npy."
        )
    parts = {"mean": mean} if std is None else {"mean": mean, "std": std}
    with atomic_write(path) as temporary:
        if extension == ".npy":
            with temporary.open("wb") as file:
                # not the file itself: numpy would write by `tofile`, which ignores a full disk
                target: Any = SimpleNamespace(write=file.write)
                shape = mean.shape if std is None else (2, *mean.shape)
                number = np.lib.format.dtype_to_descr(mean.dtype)
                header = {"descr": number, "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(target, header)
                for part in parts.values():
                    for _, block in blocks(part):
                        file.write(np.ascontiguousarray(block, mean.dtype).data)
        else:
            _write_arrow(extension, temporary, ids, parts)


def _write_arrow(
    extension: str, path: Path, ids: Sequence[Hashable], parts: dict[str, NDArray[np.floating]]
) -> None:
    """Write by Arrow, which is fast and prints the shortest digits that identify a number."""
    import pyarrow
    from pyarrow import compute, csv, parquet

    if extension == ".parquet":
        keys = arrow_array(ids)
        types = {
            name: pyarrow.list_(pyarrow.from_numpy_dtype(part.dtype), part.shape[1])
            for name, part in parts.items()
        }
        schema = pyarrow.schema({"id": keys.type, **types})
        # numbers of an embedding do not compress
        with parquet.ParquetWriter(
            path, schema, use_dictionary=False, compression="none"
        ) as writer:
            for start, block in blocks(parts["mean"]):
                columns = {"id": keys.slice(start, len(block))}
                for name, part in parts.items():
                    values = np.ascontiguousarray(part[start : start + len(block)]).ravel()
                    columns[name] = pyarrow.FixedSizeListArray.from_arrays(values, part.shape[1])
                writer.write_table(pyarrow.table(columns, schema=schema))
        return
    columns = {
        f"{name}_{k}": column
        for name, part in parts.items()
        for k, column in enumerate(np.ascontiguousarray(part.T))
    }
    if extension == ".csv":
        csv.write_csv(pyarrow.table({"id": arrow_array(ids), **columns}), path)
        return
    names = ["_".join(str(vertex).split()) for vertex in ids]
    if len(set(names)) < len(names) or "" in names:
        raise VHEError(
            "word2vec's format allows no white space in ids, and without it some ids are equal or "
            "empty; use .parquet or .csv."
        )
    cells = [compute.cast(pyarrow.array(column), pyarrow.string()) for column in columns.values()]
    lines = compute.binary_join_element_wise(pyarrow.array(names), *cells, " ").to_pylist()
    content = f"{len(names)} {len(cells)}\n" + "".join(line + "\n" for line in lines)
    path.write_text(content, encoding="utf-8", newline="\n")
