"""Tables in files: CSV and TSV, JSON and JSONL, Parquet, Excel and OpenDocument spreadsheets."""

from __future__ import annotations

import csv
import json
from array import array
from collections.abc import Container, Hashable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from vhe.data.readers.columns import (
    OPTIONAL,
    Table,
    column_notes,
    combined,
    find_columns,
    normalised,
    possible_names,
    table_of,
)
from vhe.data.readers.delimited import read_delimited
from vhe.data.readers.inputs import Input
from vhe.data.readers.json_documents import Documents
from vhe.data.readers.parquet import (
    arrow_array,
    open_parquet,
    parquet_table,
    parquet_values,
    parquet_vectors,
    readable_parquet,
)
from vhe.data.readers.records import DEFAULTS, Rules
from vhe.data.readers.spreadsheets import SPREADSHEETS, read_spreadsheet
from vhe.errors import VHEError
from vhe.runtime.files import atomic_write
from vhe.runtime.messages import listed

EXTENSIONS = (".csv", ".tsv", ".jsonl", ".parquet")  # that can be written
READABLE = (*EXTENSIONS, ".json", ".ndjson", ".txt", ".tab", *SPREADSHEETS)


def read_table(
    path: str | PathLike[str] | Input,
    meanings: Sequence[str],
    known: Container[Hashable] | None = None,
    *,
    rules: Rules = DEFAULTS,
    sheets: Sequence[str] = (),
) -> Table:
    """Read the columns with these `meanings` (keys of SYNONYMS) from a file.

    `known` are existing ids: a CSV or TSV file with two columns whose first row consists of two of
    them has no header. Of a spreadsheet, the first of `sheets` that exists is read, or the first.
    """
    source = path if isinstance(path, Input) else Input(path)
    extension = source.extension
    if source.shown != "<stdin>":
        checked_extension(source.unpacked_path, READABLE, source.shown)
    if source.head.startswith(b"PAR1") or extension == ".parquet":
        return _read_parquet(source, meanings, rules)
    if extension in SPREADSHEETS:
        return read_spreadsheet(source, meanings, rules, sheets)
    if extension in (".json", ".jsonl", ".ndjson"):
        return _read_json(source, meanings, rules)
    if extension == "" and source.head.lstrip()[:1] in (b"{", b"["):
        return _read_json(source, meanings, rules)
    if not source.head.strip():
        raise VHEError(f"{source.shown} is empty; its first line must name the columns.")
    return read_delimited(source, meanings, known, rules)


def write_table(path: Path, columns: Mapping[str, Sequence[Any]]) -> None:
    """Write columns to a CSV, TSV, JSONL or Parquet file, atomically."""
    extension = checked_extension(path, EXTENSIONS)
    with atomic_write(path) as temporary:
        if extension == ".parquet":
            import pyarrow
            from pyarrow import parquet

            arrays = {name: arrow_array(values) for name, values in columns.items()}
            parquet.write_table(pyarrow.table(arrays), temporary)
            return
        with temporary.open("w", encoding="utf-8", newline="") as file:
            rows = zip(*columns.values(), strict=True)
            if extension == ".jsonl":
                for row in rows:
                    document = dict(zip(columns, row, strict=True))
                    file.write(json.dumps(document, ensure_ascii=False, default=str) + "\n")
                return
            delimiter = "\t" if extension == ".tsv" else ","
            writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(rows)


def checked_extension(path: Path, extensions: Sequence[str], name: str | None = None) -> str:
    """Return the extension of `path` in lower case, if it is one of `extensions`."""
    if path.suffix.lower() not in extensions:
        found = f"unknown extension {path.suffix!r}" if path.suffix else "no extension"
        raise VHEError(f"{name or path}: {found}; use one of {', '.join(extensions)}.")
    return path.suffix.lower()


def _read_json(source: Input, meanings: Sequence[str], rules: Rules) -> Table:
    documents = Documents(source)
    wanted = {normalised(name) for meaning in meanings for name in possible_names(meaning, rules)}
    rows: list[dict[str, Any]] = []  # with the keys that could be wanted
    positions = array("q")
    names: dict[str, None] = {}
    wanted_keys: set[str] = set()
    for position, document in documents:
        for key in document:
            if key not in names:
                names[key] = None
                if normalised(key) in wanted:
                    wanted_keys.add(key)
        rows.append({key: document[key] for key in document.keys() & wanted_keys})
        positions.append(position)
    if not rows:
        empty: dict[str, list[Any]] = {m: [] for m in meanings}
        return Table(source.shown, source.name, empty, {}, positions, tuple(documents.notes))
    where = documents.where(positions[0]) if documents.by_line else source.shown
    found = find_columns(list(names), meanings, where, rules)
    columns: dict[str, list[Any]] = {}
    for meaning, own in found.items():
        if meaning not in OPTIONAL:
            for row, position in zip(rows, positions, strict=True):
                if not any(name in row for name in own):
                    keys = listed(next(d for p, d in Documents(source) if p == position))
                    raise VHEError(
                        f"{documents.where(position)}: no key {own[0]!r} (keys found: {keys})."
                    )
        columns[meaning] = [combined([row.get(name) for name in own], meaning) for row in rows]
    notes = (*documents.notes, *column_notes(source.name, names, found))
    lines = positions if documents.by_line else None
    return Table(source.shown, source.name, columns, found, lines, notes)


def _read_parquet(source: Input, meanings: Sequence[str], rules: Rules) -> Table:
    raw = source.read()
    if not raw:
        raise VHEError(f"{source.shown} is empty; export it again.")
    with readable_parquet(source.shown):
        file = open_parquet(raw)
        names = file.schema_arrow.names
        found = find_columns(names, meanings, source.shown, rules)
        columns = parquet_table(file, list({n for own in found.values() for n in own}))
        vectors = found.get("vector", ())
        values = {
            name: parquet_vectors(column) if name in vectors else parquet_values(column)
            for name, column in columns.items()
        }
    return table_of(source, names, found, values)
