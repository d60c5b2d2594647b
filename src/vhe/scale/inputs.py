"""Parquet datasets: their part files, the check of their columns, and reading them in parts.

A part is a number of consecutive rows. A piece is what one task reads: row groups of a file, in
one or more parts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from vhe.data.readers.columns import combined, find_columns
from vhe.data.readers.parquet import readable_parquet
from vhe.errors import VHEError
from vhe.runtime.messages import shortened
from vhe.scale.engine import Engine

BATCH = 8192  # rows decoded at a time


@dataclass(frozen=True)
class Piece:
    """Row groups of a part file.

    Attributes
    ----------
    columns : names of the columns by meaning
    first_row : number of the first row in the dataset
    first_part : number of the first part
    part_rows : number of rows of each part
    row_in_file : number of the first row in the file
    """

    url: str
    groups: list[int]
    columns: dict[str, list[str]]
    first_row: int
    first_part: int
    part_rows: list[int]
    row_in_file: int


@dataclass(frozen=True)
class Dataset:
    pieces: list[Piece]
    id_type: str  # "integer" or "string"

    @property
    def part_rows(self) -> list[int]:
        """Number of rows of each part."""
        return [rows for piece in self.pieces for rows in piece.part_rows]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> Dataset:
        return cls([Piece(**piece) for piece in saved["pieces"]], saved["id_type"])


def part_files(path: str) -> dict[str, int]:
    """The Parquet files of a folder, sorted by name, or the file itself: sizes by fsspec URL."""
    import fsspec

    try:
        system, root = fsspec.core.url_to_fs(path)
        if not system.exists(root):
            raise VHEError(f"{path} does not exist; check the path.")
        found = system.find(root, detail=True)  # a file finds itself
    except (ImportError, ValueError, OSError) as error:
        if isinstance(error, VHEError):
            raise
        raise VHEError(f"{path} cannot be listed: {shortened(str(error), 200)}.") from None
    names = [name for name in sorted(found) if name.endswith((".parquet", ".parq", ".pq"))]
    if not names:
        raise VHEError(f"{path} contains no part file (*.parquet); check the path.")
    return {system.unstrip_protocol(name): int(found[name]["size"]) for name in names}


def read_dataset(
    engine: Engine,
    files: list[str],
    meanings: tuple[str, ...],
    id_columns: tuple[str, ...],
    rows: int,
) -> Dataset:
    """Read the metadata of all part files, check their columns, and divide them into parts.

    Parameters
    ----------
    files : URLs, in the order of their rows
    meanings : of the columns to be read, as `vhe.data.readers.synonyms` names them
    id_columns : those of them that hold ids
    rows : at most this many rows in a part
    """
    found = engine.map("part files", _metadata, files, meanings, id_columns)
    first_types = found[0]["types"]
    pieces: list[Piece] = []
    first_row = first_part = 0
    for url, file in zip(files, found, strict=True):
        for column, kind in file["types"].items():
            if first_types.get(column) != kind:
                expected = first_types.get(column, "missing")
                raise VHEError(
                    f"{url}: the column {column!r} holds {kind}s, but in {files[0]} it is "
                    f"{expected}: write all part files with one schema."
                )
        row_in_file = 0
        for groups, count in _grouped(file["group_rows"], rows):
            part_rows = [min(rows, count - start) for start in range(0, count, rows)]
            pieces.append(
                Piece(url, groups, file["columns"], first_row, first_part, part_rows, row_in_file)
            )
            first_row += count
            first_part += len(part_rows)
            row_in_file += count
    kinds = {first_types[found[0]["columns"][name][0]] for name in id_columns}
    if len(kinds) > 1:
        raise VHEError(f"{files[0]}: the columns of ids hold integers and strings; use one type.")
    return Dataset(pieces, kinds.pop())


def read_parts(piece: Piece) -> Iterator[dict[str, list[Any]]]:
    """The columns of each part, by meaning; a missing text is empty."""
    import pyarrow

    names = sorted({name for own in piece.columns.values() for name in own})
    with _opened(piece.url) as file:
        batches = file.iter_batches(batch_size=BATCH, row_groups=piece.groups, columns=names)
        waiting, sizes = [], iter(piece.part_rows)
        size, row = next(sizes), piece.row_in_file
        for batch in batches:
            waiting.append(batch)
            while sum(map(len, waiting)) >= size:
                table = pyarrow.Table.from_batches(waiting)
                yield _values(table.slice(0, size), piece, row)
                row += size
                waiting = table.slice(size).to_batches()
                size = next(sizes, 0)
                if not size:
                    return
    raise VHEError(f"{piece.url} has fewer rows than its metadata says; write it again.")


def _values(table: Any, piece: Piece, row: int) -> dict[str, list[Any]]:
    columns = {}
    for meaning, names in piece.columns.items():
        values = [table[name].to_pylist() for name in names]
        if meaning == "text":
            texts = values[0] if len(values) == 1 else map(combined, zip(*values, strict=True))
            columns[meaning] = [text or "" for text in texts]
        else:
            columns[meaning] = values[0]
            if None in values[0]:
                where = row + values[0].index(None) + 1
                raise VHEError(f"{piece.url} (row {where}): no {meaning}; fill it in.")
    return columns


def _metadata(url: str, meanings: tuple[str, ...], id_columns: tuple[str, ...]) -> dict[str, Any]:
    with _opened(url) as file:
        schema = file.schema_arrow
        columns = find_columns(schema.names, meanings, url)
        types = {}
        for meaning, names in columns.items():
            for name in names:
                kind = _kind(schema.field(name).type)
                if kind is None or (kind == "integer" and meaning not in id_columns):
                    allowed = "integers or strings" if meaning in id_columns else "strings"
                    raise VHEError(f"{url}: the column {name!r} must hold {allowed}.")
                types[name] = kind
        about = file.metadata
        counts = [about.row_group(k).num_rows for k in range(about.num_row_groups)]
        return {"columns": columns, "types": types, "group_rows": counts}


def _kind(kind: Any) -> str | None:
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_string(kind) or types.is_large_string(kind):
        return "string"
    return "integer" if types.is_integer(kind) else None


def _grouped(counts: list[int], rows: int) -> Iterator[tuple[list[int], int]]:
    """Consecutive row groups of at most ``rows`` rows together, and their number of rows."""
    groups: list[int] = []
    total = 0
    for number, count in enumerate(counts):
        if groups and total + count > rows:
            yield groups, total
            groups, total = [], 0
        if count:
            groups.append(number)
            total += count
    if groups:
        yield groups, total


@contextlib.contextmanager
def _opened(url: str) -> Iterator[Any]:
    import fsspec
    from pyarrow import parquet

    try:
        with fsspec.open(url, "rb") as file, readable_parquet(url):
            yield parquet.ParquetFile(file)
    except FileNotFoundError:
        raise VHEError(f"{url} does not exist: a part file is missing; write it again.") from None
    except OSError as error:
        raise VHEError(f"{url} cannot be read: {error.strerror or error}.") from None
