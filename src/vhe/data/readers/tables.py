"""Tables in CSV, TSV, JSONL and Parquet files: columns by their meaning, rows by their line."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Container, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vhe.data.readers.parquet import (
    arrow_array,
    open_parquet,
    parquet_columns,
    readable_parquet,
)
from vhe.errors import VHEError
from vhe.runtime.files import Text, atomic_write, read_bytes, read_text
from vhe.runtime.messages import counted, listed, shown

SYNONYMS = {
    "id": ("id", "vertex", "node", "name", "key"),
    "text": ("text", "abstract", "description", "body", "content", "title"),
    "label": ("label", "class", "group", "category", "subject", "section"),
    "source": ("source", "from", "src", "head", "u", "citing"),
    "target": ("target", "to", "dst", "tail", "v", "cited"),
}
OPTIONAL = frozenset({"label"})
MAX_COLUMNS = 10_000
EXTENSIONS = (".csv", ".tsv", ".jsonl", ".parquet")


@dataclass(frozen=True)
class Table:
    """The requested columns by meaning; an optional column may be absent."""

    path: Path
    columns: dict[str, list[Any]]
    lines: Sequence[int] | None  # first line of each row; None for Parquet, which has no lines
    notes: tuple[str, ...]

    def where(self, row: int) -> str:
        """Return the position of a row for an error message: `edges.csv:12`."""
        if self.lines is None:
            return f"{self.path} (row {row + 1})"
        return f"{self.path}:{self.lines[row]}"


def read_table(
    path: Path, meanings: Sequence[str], known: Container[Hashable] | None = None
) -> Table:
    """Read the columns with these `meanings` (keys of SYNONYMS) from a file.

    A column is found by its case-insensitive name: the meaning itself or one of its synonyms, the
    first in SYNONYMS if there are several. `known` are existing ids: a CSV or TSV file with two
    columns whose first row consists of two of them has no header.
    """
    extension = checked_extension(path, EXTENSIONS)
    if extension == ".parquet":
        return _read_parquet(path, meanings)
    text = read_text(path)
    if extension == ".jsonl":
        return _read_jsonl(text, meanings)
    if not text.content.strip():
        raise VHEError(f"{path} is empty; its first line must name the columns.")
    if extension == ".csv":
        return _read_rows(path, meanings, known, *_split_rows(text, ",", quoted=True))
    try:
        return _read_rows(path, meanings, known, *_split_rows(text, "\t", quoted=True))
    except VHEError as error:
        error.__traceback__ = None  # it would keep all rows in memory
        # Many TSV files do not use quoting, and contain unpaired quotation marks.
        try:
            table = _read_rows(path, meanings, known, *_split_rows(text, "\t", quoted=False))
        except VHEError:
            raise error from None
        note = f"{path.name}: quotation marks read as ordinary characters"
        return replace(table, notes=(*table.notes, note))


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


def checked_extension(path: Path, extensions: Sequence[str]) -> str:
    """Return the extension of `path` in lower case, if it is one of `extensions`."""
    if path.suffix.lower() not in extensions:
        found = f"unknown extension {path.suffix!r}" if path.suffix else "no extension"
        raise VHEError(f"{path}: {found}; use one of {', '.join(extensions)}.")
    return path.suffix.lower()


def find_columns(names: Sequence[str], meanings: Sequence[str], where: str) -> dict[str, int]:
    """Return the position in `names` of the column for each meaning."""
    lower = [name.strip().lower() for name in names]
    found = {}
    for meaning in meanings:
        present = [synonym for synonym in SYNONYMS[meaning] if synonym in lower]
        if present:
            if lower.count(present[0]) > 1:
                raise VHEError(f"{where}: duplicate column {present[0]!r}; rename one of them.")
            found[meaning] = lower.index(present[0])
        elif meaning not in OPTIONAL:
            raise VHEError(
                f"{where}: no column for the {meaning}; name it one of "
                f"{', '.join(SYNONYMS[meaning])} (columns found: {listed(names)})."
            )
    return found


def blank_notes(path: Path, blank: int) -> tuple[str, ...]:
    """Return a note on the number of blank lines skipped, if any."""
    return (f"{path.name}: {counted(blank, 'blank line')} skipped",) if blank else ()


def column_notes(path: Path, names: Sequence[str], found: Mapping[str, int]) -> list[str]:
    """Return a note for each meaning with several candidate columns."""
    notes = []
    for meaning, k in found.items():
        others = [n for n in names if n.strip().lower() in SYNONYMS[meaning] and n != names[k]]
        if others:
            chosen = f"{meaning} read from column {names[k]!r}"
            notes.append(f"{path.name}: {chosen}; ignored: {listed(others)}")
    return notes


def _split_rows(
    text: Text, delimiter: str, quoted: bool
) -> tuple[list[list[str]], list[int], tuple[str, ...]]:
    """Return the rows of a delimited file, the first line of each row, and notes."""
    rows: list[list[str]] = []
    lines, start, blank = [], 1, 0
    limit = csv.field_size_limit(2**31 - 1)  # long texts are valid
    try:
        reader = csv.reader(
            io.StringIO(text.content, newline=""),
            delimiter=delimiter,
            quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
            strict=True,
        )
        for row in reader:
            if len(row) > MAX_COLUMNS:
                raise VHEError(
                    f"{text.path}:{start}: {len(row):,} cells in a row, more than {MAX_COLUMNS:,}; "
                    "check the delimiter."
                )
            if rows and row and len(row) != len(rows[0]):
                raise VHEError(
                    f"{text.path}:{start}: {counted(len(row), 'cell')}, but the first row has "
                    f"{len(rows[0])}; quote texts that contain the delimiter."
                )
            if row:  # csv returns [] for a blank line
                rows.append(row)
                lines.append(start)
            else:
                blank += 1
            start = reader.line_num + 1
    except csv.Error as error:
        raise VHEError(
            f"{text.path}:{start}: the row cannot be parsed ({error}); "
            'check its quotation marks (a " inside a quoted text is written "").'
        ) from None
    finally:
        csv.field_size_limit(limit)
    return rows, lines, text.notes + blank_notes(text.path, blank)


def _read_rows(
    path: Path,
    meanings: Sequence[str],
    known: Container[Hashable] | None,
    rows: list[list[str]],
    lines: list[int],
    notes: tuple[str, ...],
) -> Table:
    header, first = rows[0], [cell.strip() for cell in rows[0]]
    are_ids = known is not None and len(first) == 2 and all(cell in known for cell in first)
    if are_ids and first != list(meanings):
        found = dict(zip(meanings, (0, 1), strict=True))
        if all(c.lower() in SYNONYMS[m] for c, m in zip(first, meanings, strict=True)):
            pair = " and ".join(map(shown, first))
            notes += (f"{path.name}: first row {pair} read as an edge, because both are ids",)
    else:
        found = find_columns(header, meanings, f"{path}:{lines[0]}")
        notes += tuple(column_notes(path, header, found))
        rows, lines = rows[1:], lines[1:]
    columns = {meaning: [row[k] for row in rows] for meaning, k in found.items()}
    for meaning in columns.keys() - {"text"}:
        columns[meaning] = [cell.strip() for cell in columns[meaning]]
    return Table(path, columns, lines, notes)


def _read_jsonl(text: Text, meanings: Sequence[str]) -> Table:
    path = text.path
    documents, lines = [], []
    duplicates: list[tuple[int, str]] = []  # line and key
    for number, line in enumerate(text.lines, start=1):
        if line.strip():
            repeated: list[str] = []
            documents.append(_read_object(line, f"{path}:{number}", repeated))
            duplicates += [(number, key) for key in repeated]
            lines.append(number)
    notes = text.notes + blank_notes(path, len(text.lines) - len(lines))
    if duplicates:
        number, key = duplicates[0]
        count = counted(len(duplicates), "duplicate key")
        notes += (f"{path.name}:{number}: {count} (first {shown(key)}); the last value is used",)
    if not documents:
        return Table(path, {meaning: [] for meaning in meanings}, [], notes)
    names = list(dict.fromkeys(key for document in documents for key in document))
    found = find_columns(names, meanings, f"{path}:{lines[0]}")
    notes += tuple(column_notes(path, names, found))
    columns: dict[str, list[Any]] = {}
    for meaning, k in found.items():
        for document, number in zip(documents, lines, strict=True):
            if names[k] not in document and meaning not in OPTIONAL:
                keys = listed(document)
                raise VHEError(f"{path}:{number}: no key {names[k]!r} (keys found: {keys}).")
        columns[meaning] = [document.get(names[k]) for document in documents]
    if "\\ud" in text.content.lower():  # an unpaired surrogate cannot be encoded as UTF-8
        columns = {m: list(map(_without_surrogates, values)) for m, values in columns.items()}
    return Table(path, columns, lines, notes)


def _read_object(line: str, where: str, repeated: list[str]) -> dict[str, Any]:
    """Parse a JSON object; keys that occur more than once in an object are added to `repeated`."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        document = dict(pairs)
        if len(document) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            repeated.extend(key for key, count in counts.items() if count > 1)
        return document

    try:
        document = json.loads(line, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        reason = f"{error.msg}, column {error.colno}"
        raise VHEError(f"{where}: not JSON ({reason}); write one object per line.") from None
    except (ValueError, RecursionError) as error:
        raise VHEError(f"{where}: JSON that cannot be read ({error}).") from None
    if not isinstance(document, dict):
        kind = type(document).__name__
        raise VHEError(f"{where}: a {kind} instead of an object; write one object per line.")
    return document


def _without_surrogates(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _read_parquet(path: Path, meanings: Sequence[str]) -> Table:
    raw = read_bytes(path)
    if not raw:
        raise VHEError(f"{path} is empty; write it again.")
    with readable_parquet(str(path)):
        file = open_parquet(raw)
        names = file.schema_arrow.names
        found = find_columns(names, meanings, str(path))
        values = parquet_columns(file, [names[k] for k in found.values()])
    columns = {meaning: values[names[k]] for meaning, k in found.items()}
    return Table(path, columns, None, tuple(column_notes(path, names, found)))
