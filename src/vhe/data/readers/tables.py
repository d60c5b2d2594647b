"""Tables in files: columns by their meaning, rows by their line.

CSV and TSV (delimiter `,` `;` or tab, with or without quotation marks), JSON and JSONL, Parquet,
Excel and OpenDocument spreadsheets. A column is chosen by the user, or by its name: case, spaces
and punctuation do not count, and the first synonym that exists is taken (synonyms.py). Texts are
the column `text`, or else a title joined with an abstract. What was chosen and ignored is noted.
"""

from __future__ import annotations

import csv
import io
import json
import math
import zipfile
from array import array
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from vhe.data.readers.inputs import MAX_RATIO, SMALL, Input
from vhe.data.readers.json_documents import Documents
from vhe.data.readers.parquet import (
    arrow_array,
    open_parquet,
    parquet_columns,
    readable_parquet,
)
from vhe.data.readers.records import DEFAULTS, Rules, joined
from vhe.data.readers.synonyms import SYNONYMS
from vhe.errors import VHEError
from vhe.runtime.files import atomic_write, physical_memory
from vhe.runtime.messages import counted, listed, shortened, shown

OPTIONAL = frozenset({"label", "references"})
MAX_COLUMNS = 10_000
EXTENSIONS = (".csv", ".tsv", ".jsonl", ".parquet")  # that can be written
SPREADSHEETS = (".xlsx", ".xlsm", ".ods")
READABLE = (*EXTENSIONS, ".json", ".ndjson", ".txt", ".tab", *SPREADSHEETS)
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab"}

Columns = Mapping[str, Sequence[str]]  # meaning -> names of the columns; several are joined


@dataclass(frozen=True)
class Table:
    """The requested columns by meaning; an optional column may be absent."""

    shown: str  # name in error messages
    name: str  # name in notes
    columns: dict[str, list[Any]]
    names: Columns
    lines: Sequence[int] | None  # first line of each row; None for formats without lines
    notes: tuple[str, ...]
    first_row: int = 1

    def where(self, row: int) -> str:
        """Return the position of a row for an error message: `edges.csv:12`."""
        if self.lines is None:
            return f"{self.shown} (row {row + self.first_row})"
        return f"{self.shown}:{self.lines[row]}"


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
        return _read_spreadsheet(source, meanings, rules, sheets)
    if extension in (".json", ".jsonl", ".ndjson"):
        return _read_json(source, meanings, rules)
    if extension == "" and source.head.lstrip()[:1] in (b"{", b"["):
        return _read_json(source, meanings, rules)
    if not source.head.strip():
        raise VHEError(f"{source.shown} is empty; its first line must name the columns.")
    return _read_delimited(source, meanings, known, rules)


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


def normalised(name: str) -> str:
    """Return a column name without case, spaces and punctuation.

    >>> normalised("Abstract Note"), normalised("abstract_note")
    ('abstractnote', 'abstractnote')
    """
    return "".join(c for c in name.lower() if c.isalnum()) or name.strip().lower()


def find_columns(
    names: Sequence[str], meanings: Sequence[str], where: str, rules: Rules = DEFAULTS
) -> dict[str, list[str]]:
    """Return the names of the columns for each meaning; only `text` can have several."""
    same: dict[str, list[str]] = {}
    for name in names:
        same.setdefault(normalised(name), []).append(name)

    def by_synonym(meaning: str) -> list[str]:
        for synonym in SYNONYMS[meaning]:
            columns = same.get(normalised(synonym), [])
            if len(columns) > 1:
                raise VHEError(f"{where}: duplicate column {synonym!r}; rename one of them.")
            if columns:
                return columns
        return []

    found = {}
    for meaning in meanings:
        chosen = getattr(rules, meaning)
        if chosen:
            wanted = [chosen] if isinstance(chosen, str) else list(chosen)
            found[meaning] = [_named(names, same, name, meaning, where) for name in wanted]
            continue
        columns = by_synonym(meaning)
        if meaning == "text" and not columns:
            columns = by_synonym("title") + by_synonym("abstract")
        if columns:
            found[meaning] = columns
        elif meaning not in OPTIONAL:
            synonyms = SYNONYMS[meaning]
            if meaning == "text":
                synonyms += SYNONYMS["title"] + SYNONYMS["abstract"]
            raise VHEError(
                f"{where}: no column for the {meaning}; pass --{meaning} COLUMN, or name it one of "
                f"{', '.join(synonyms)} (columns found: {listed(names)})."
            )
    return found


def _named(
    names: Sequence[str], same: Mapping[str, list[str]], name: str, meaning: str, where: str
) -> str:
    """Return the column that the user has named: exactly, or without case and punctuation."""
    if name in names:
        return name
    columns = same.get(normalised(name), [])
    if len(columns) != 1:
        problem = "several columns" if columns else "no column"
        raise VHEError(
            f"{where}: {problem} {shown(name)} for --{meaning} (columns found: {listed(names)})."
        )
    return columns[0]


def column_notes(file: str, names: Iterable[str], found: Columns) -> list[str]:
    """Return a note on the columns that were chosen, unless they have the name of their meaning."""
    chosen = {name for columns in found.values() for name in columns}
    said = [
        f"{meaning}: {' + '.join(name.strip() for name in columns)}"
        for meaning, columns in found.items()
        if [name.strip().lower() for name in columns] != [meaning]
    ]
    ignored = [name for name in dict.fromkeys(names) if name not in chosen]
    if ignored:
        count = counted(len(ignored), "column")
        said.append("ignored: " + (count if len(ignored) > 5 else ", ".join(map(_plain, ignored))))
    return [f"{file}: {'; '.join(said)}"] if said else []


def _plain(name: str) -> str:
    return shortened(name.strip() or repr(name), 40)


def blank_notes(path: Path, blank: int) -> tuple[str, ...]:
    """Return a note on the number of blank lines skipped, if any."""
    return (f"{path.name}: {counted(blank, 'blank line')} skipped",) if blank else ()


# --- delimited text


def _read_delimited(
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
            any(normalised(name) in names for name in _candidates(meaning, rules))
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
    positions: list[tuple[list[Any], list[int], bool]] = []
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
                        names = {meaning: [meaning] for meaning in meanings}
                        places = {meaning: [k] for k, meaning in enumerate(meanings)}
                        if all(_is_synonym(c, m) for c, m in zip(row, meanings, strict=True)):
                            pair = " and ".join(shown(cell.strip()) for cell in row)
                            notes.append(
                                f"{source.name}: first row {pair} read as an edge, "
                                "because both are ids"
                            )
                    columns = {meaning: [] for meaning in places}
                    positions = [(columns[m], own, m != "text") for m, own in places.items()]
                    if header:
                        continue
                for column, own, strip in positions:
                    cell = row[own[0]] if len(own) == 1 else joined(*(row[k] for k in own))
                    column.append(cell.strip() if strip else cell)
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
    return not are_ids or first == list(meanings)


def _is_synonym(cell: str, meaning: str) -> bool:
    return normalised(cell) in map(normalised, SYNONYMS[meaning])


# --- JSON, Parquet and spreadsheets


def _read_json(source: Input, meanings: Sequence[str], rules: Rules) -> Table:
    documents = Documents(source)
    wanted = {normalised(name) for meaning in meanings for name in _candidates(meaning, rules)}
    rows: list[dict[str, Any]] = []  # with the keys that could be wanted
    positions = array("q")
    names: dict[str, None] = {}
    candidates: set[str] = set()
    for position, document in documents:
        for key in document:
            if key not in names:
                names[key] = None
                if normalised(key) in wanted:
                    candidates.add(key)
        rows.append({key: document[key] for key in document.keys() & candidates})
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
        columns[meaning] = [combined([row.get(name) for name in own]) for row in rows]
    notes = (*documents.notes, *column_notes(source.name, names, found))
    lines = positions if documents.by_line else None
    return Table(source.shown, source.name, columns, found, lines, notes)


def _candidates(meaning: str, rules: Rules) -> tuple[str, ...]:
    """Return the names that a column may have."""
    chosen = getattr(rules, meaning)
    if chosen:
        return (chosen,) if isinstance(chosen, str) else tuple(chosen)
    if meaning == "text":
        return SYNONYMS["text"] + SYNONYMS["title"] + SYNONYMS["abstract"]
    return SYNONYMS[meaning]


def combined(values: Sequence[Any]) -> Any:
    """Return one value, or several texts joined; a value of another type is returned as it is."""
    if len(values) == 1:
        return values[0]
    wrong = next((v for v in values if v is not None and not isinstance(v, str)), None)
    return joined(*values) if wrong is None else wrong


def _read_parquet(source: Input, meanings: Sequence[str], rules: Rules) -> Table:
    raw = source.read()
    if not raw:
        raise VHEError(f"{source.shown} is empty; write it again.")
    with readable_parquet(source.shown):
        file = open_parquet(raw)
        names = file.schema_arrow.names
        found = find_columns(names, meanings, source.shown, rules)
        values = parquet_columns(file, list({n for own in found.values() for n in own}))
    return _from_columns(source, names, found, values)


def _from_columns(
    source: Input, names: Sequence[str], found: Columns, values: Mapping[str, list[Any]]
) -> Table:
    columns = {
        meaning: values[own[0]]
        if len(own) == 1
        else [combined(row) for row in zip(*(values[name] for name in own), strict=True)]
        for meaning, own in found.items()
    }
    notes = tuple(column_notes(source.name, names, found))
    return Table(source.shown, source.name, columns, found, None, notes)


def _read_spreadsheet(
    source: Input, meanings: Sequence[str], rules: Rules, sheets: Sequence[str]
) -> Table:
    """Read a sheet by pandas; its first row names the columns."""
    import pandas

    with _workbook(source) as book:
        all_sheets = book.sheet_names
        by_name = {str(name).strip().lower(): name for name in all_sheets}
        chosen = next((by_name[s] for s in sheets if s in by_name), all_sheets[0])
        frame = pandas.read_excel(book, sheet_name=chosen, dtype=object, header=None)
    if frame.empty:
        raise VHEError(f"{source.shown}: the sheet {shown(chosen)} is empty.")
    names = ["" if _missing(name) else str(name) for name in frame.iloc[0]]
    found = find_columns(names, meanings, f"{source.shown} (row 1)", rules)
    values = {
        name: [_cell(cell, meaning) for cell in frame[names.index(name)].tolist()[1:]]
        for meaning, own in found.items()
        for name in own
    }
    table = _from_columns(source, [n for n in names if n], found, values)
    notes = table.notes
    if len(all_sheets) > 1:
        notes += (f"{source.name}: {' and '.join(found)} read from sheet {shown(chosen)}",)
    return replace(table, notes=notes, first_row=2)


def has_sheet(source: Input, names: Sequence[str]) -> bool:
    """Return whether a spreadsheet has a sheet with one of these names."""
    with _workbook(source) as book:
        return any(str(sheet).strip().lower() in names for sheet in book.sheet_names)


@contextmanager
def _workbook(source: Input) -> Iterator[Any]:
    """Yield a pandas.ExcelFile; errors of the libraries that read it become `VHEError`."""
    import pandas

    extension, raw = source.extension, source.read()
    engine, package = ("odf", "odfpy") if extension == ".ods" else ("openpyxl", "openpyxl")
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            size = sum(file.file_size for file in archive.infolist())
        if size > min(physical_memory() // 10, max(MAX_RATIO * len(raw), SMALL)):
            raise VHEError(
                f"{source.shown} unpacks to {size:,} bytes, too many for its size or for the "
                "memory of this machine; save the sheet as CSV."
            )
        with pandas.ExcelFile(io.BytesIO(raw), engine=engine) as book:  # type: ignore[arg-type]
            yield book
    except ImportError:
        raise VHEError(
            f"{source.shown}: reading {extension} needs {package}; install vhe[excel], or save the "
            "sheet as CSV."
        ) from None
    except VHEError:
        raise
    except Exception as error:  # the libraries raise errors of many types
        reason = shortened(str(error).strip().rstrip(".") or type(error).__name__, 200)
        raise VHEError(f"{source.shown} is not a readable spreadsheet: {reason}.") from None


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _cell(value: Any, meaning: str) -> Any:
    """Return a cell as None, a string, or, for an id, a number."""
    if _missing(value):
        return None
    if meaning in ("id", "source", "target") and type(value) in (int, float):
        return value
    return str(value) if meaning == "text" else str(value).strip()
