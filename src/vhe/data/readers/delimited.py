"""Tables in CSV and TSV files: delimiter `,` `;` or tab, with or without quotation marks."""

from __future__ import annotations

import csv
from array import array
from collections.abc import Container, Hashable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from vhe.data.readers.columns import (
    Columns,
    Table,
    column_notes,
    combined,
    find_columns,
    normalised,
    possible_names,
)
from vhe.data.readers.inputs import Input
from vhe.data.readers.records import Rules
from vhe.data.readers.synonyms import SYNONYMS
from vhe.errors import VHEError
from vhe.runtime.messages import counted, shown

MAX_COLUMNS = 10_000
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab"}


def read_delimited(
    source: Input, meanings: Sequence[str], known: Container[Hashable] | None, rules: Rules
) -> Table:
    delimiter = _delimiter(source, meanings, rules)
    try:
        return _read_rows(source, meanings, known, rules, delimiter, quoted=True)
    except VHEError as error:
        error.__traceback__ = None  # it would keep all rows in memory
        if delimiter != "\t":
            raise
        # Many TSV files do not use quoting, and contain unpaired quotation marks.
        try:
            table = _read_rows(source, meanings, known, rules, delimiter, quoted=False)
        except VHEError:
            raise error from None
        note = f"{source.name}: quotation marks read as ordinary characters"
        return replace(table, notes=(*table.notes, note))


def _delimiter(source: Input, meanings: Sequence[str], rules: Rules) -> str:
    """Return the delimiter under which the first line names most of the wanted columns.

    If it names none, the delimiter of the extension is taken, or the most frequent one of a file
    without one of these extensions.
    """
    with source.lines() as lines:
        first = next((line for line in lines if line.strip()), "")[:100_000]
    usual = {".csv": ",", ".tsv": "\t", ".tab": "\t"}.get(source.extension)
    best, score = usual or ",", (0, 0)
    for delimiter in sorted(DELIMITERS, key=lambda d: d != usual):
        names = set(map(normalised, next(csv.reader([first], delimiter=delimiter), [])))
        wanted = sum(
            any(normalised(name) in names for name in possible_names(meaning, rules))
            for meaning in meanings
        )
        # A line with one cell has no delimiter.
        own = (wanted if len(names) > 1 else 0, len(names) if usual is None else 0)
        if own > score:
            best, score = delimiter, own
    return best


def _read_rows(
    source: Input,
    meanings: Sequence[str],
    known: Container[Hashable] | None,
    rules: Rules,
    delimiter: str,
    *,
    quoted: bool,
) -> Table:
    notes: list[str] = []
    lines, start, blank, width = array("q"), 1, 0, 0
    names: Columns = {}
    columns: dict[str, list[Any]] = {}
    positions: list[tuple[list[Any], list[int], str]] = []
    limit = csv.field_size_limit(2**31 - 1)  # long texts are valid
    try:
        with source.lines() as text:
            reader = csv.reader(
                text,
                delimiter=delimiter,
                quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
                strict=True,
            )
            for row in reader:
                line, start = start, reader.line_num + 1
                if not row:  # a blank line
                    blank += 1
                    continue
                if len(row) > MAX_COLUMNS:
                    raise VHEError(
                        f"{source.shown}:{line}: {len(row):,} cells in a row, more than "
                        f"{MAX_COLUMNS:,}; check the delimiter."
                    )
                if width and len(row) != width:
                    raise VHEError(
                        f"{source.shown}:{line}: {counted(len(row), 'cell')}, but the first row "
                        f"has {width}; quote texts that contain the delimiter."
                    )
                if not width:
                    width = len(row)
                    header = _is_header(row, meanings, known)
                    if header:
                        names = find_columns(row, meanings, f"{source.shown}:{line}", rules)
                        notes += column_notes(source.name, row, names)
                        places = {m: [row.index(n) for n in own] for m, own in names.items()}
                    else:
                        names = {meaning: [meaning] for meaning in meanings[:2]}
                        places = {meaning: [k] for k, meaning in enumerate(names)}
                        if all(_is_synonym(c, m) for c, m in zip(row, names, strict=True)):
                            pair = " and ".join(shown(cell.strip()) for cell in row)
                            notes.append(
                                f"{source.name}: first row {pair} read as an edge, "
                                "because both are ids"
                            )
                    columns = {meaning: [] for meaning in places}
                    positions = [(columns[m], own, m) for m, own in places.items()]
                    if header:
                        continue
                for column, own, meaning in positions:
                    cell = combined([row[k] for k in own], meaning)
                    column.append(cell if meaning in ("text", "vector") else cell.strip())
                lines.append(line)
    except csv.Error as error:
        raise VHEError(
            f"{source.shown}:{start}: the row cannot be parsed ({error}); "
            'check its quotation marks (a " inside a quoted text is written "").'
        ) from None
    finally:
        csv.field_size_limit(limit)
    if not width:
        raise VHEError(f"{source.shown} is empty; its first line must name the columns.")
    if delimiter != ("\t" if source.extension in (".tsv", ".tab") else ","):
        notes.append(f"{source.name}: delimiter {DELIMITERS[delimiter]}")
    blanks = blank_notes(Path(source.name), blank)
    return Table(source.shown, source.name, columns, names, lines, (*source.notes, *notes, *blanks))


def _is_header(
    row: Sequence[str], meanings: Sequence[str], known: Container[Hashable] | None
) -> bool:
    first = [cell.strip() for cell in row]
    are_ids = known is not None and len(first) == 2 and all(cell in known for cell in first)
    return not are_ids or first == list(meanings[:2])


def _is_synonym(cell: str, meaning: str) -> bool:
    return normalised(cell) in map(normalised, SYNONYMS[meaning])


def blank_notes(path: Path, blank: int) -> tuple[str, ...]:
    """Return a note on the number of blank lines skipped, if any."""
    return (f"{path.name}: {counted(blank, 'blank line')} skipped",) if blank else ()
