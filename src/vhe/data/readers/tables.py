"""Tables in files: CSV, TSV, JSONL and Parquet, read by what a column means and where a row is."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Container, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vhe.data.checks import counted, listed, shortened, shown
from vhe.errors import VHEError
from vhe.runtime.files import Text, atomic_write, physical_memory, read_bytes, read_text

SYNONYMS = {
    "id": ("id", "vertex", "node", "name", "key"),
    "text": ("text", "abstract", "description", "body", "content", "title"),
    "label": ("label", "class", "group", "category", "subject", "section"),
    "source": ("source", "from", "src", "head", "u", "citing"),
    "target": ("target", "to", "dst", "tail", "v", "cited"),
}
OPTIONAL = frozenset({"label"})
MOST_COLUMNS = 10_000
EXTENSIONS = (".csv", ".tsv", ".jsonl", ".parquet")


@dataclass(frozen=True)
class Table:
    """The columns that were asked for, by their meaning; an optional one may not be there."""

    path: Path
    columns: dict[str, list[Any]]
    lines: Sequence[int] | None  # where each row starts; None in Parquet, which has no lines
    notes: tuple[str, ...]

    def where(self, row: int) -> str:
        """Say where a row is: `edges.csv:12`."""
        if self.lines is None:
            return f"{self.path} (row {row + 1})"
        return f"{self.path}:{self.lines[row]}"


def read_table(
    path: Path, meanings: Sequence[str], known: Container[Hashable] | None = None
) -> Table:
    """Read the columns with these `meanings` (keys of SYNONYMS) from a file.

    A column is found by its name, in any case: the meaning itself or one of its synonyms, the
    earliest in SYNONYMS where there are several. `known` are ids: a CSV or TSV file with two
    columns whose first row is two of them has no header.
    """
    extension = checked_extension(path, EXTENSIONS)
    if extension == ".parquet":
        return _read_parquet(path, meanings)
    text = read_text(path)
    if extension == ".jsonl":
        return _read_jsonl(text, meanings)
    if not text.content.strip():
        raise VHEError(f"{path} is empty; its first line should name the columns.")
    if extension == ".csv":
        return _read_rows(path, meanings, known, *_split_rows(text, ",", quoted=True))
    try:
        return _read_rows(path, meanings, known, *_split_rows(text, "\t", quoted=True))
    except VHEError as error:
        error.__traceback__ = None  # it would keep all the rows
        # Many TSV files do not quote at all, and hold quotation marks that open nothing.
        try:
            table = _read_rows(path, meanings, known, *_split_rows(text, "\t", quoted=False))
        except VHEError:
            raise error from None
        said = (f"{path.name}: quotation marks are read as plain characters",)
        return Table(table.path, table.columns, table.lines, table.notes + said)


def write_table(path: Path, columns: Mapping[str, Sequence[Any]]) -> None:
    """Write columns to a CSV, TSV, JSONL or Parquet file, which is there whole or not at all."""
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


def arrow_array(values: Sequence[Any]) -> Any:
    """Return an Arrow array of integers or strings; whatever else an id can be becomes a string."""
    import pyarrow

    kinds = {type(value) for value in values} - {type(None)}
    if kinds in ({int}, {float}, {bool}, {str}):
        try:
            return pyarrow.array(list(values))
        except (OverflowError, pyarrow.ArrowInvalid):  # an integer beyond 64 bits
            pass
    strings = [None if value is None else str(value) for value in values]
    return pyarrow.array(strings, pyarrow.string())


def checked_extension(path: Path, extensions: Sequence[str]) -> str:
    """Return the extension of `path` in lower case, which has to be one of these."""
    if path.suffix.lower() not in extensions:
        found = f"the extension {path.suffix!r} is not known" if path.suffix else "no extension"
        raise VHEError(f"{path}: {found}; use one of {', '.join(extensions)}.")
    return path.suffix.lower()


def find_columns(names: Sequence[str], meanings: Sequence[str], where: str) -> dict[str, int]:
    """Return the place in `names` of the column for each meaning."""
    lower = [name.strip().lower() for name in names]
    found = {}
    for meaning in meanings:
        there = [synonym for synonym in SYNONYMS[meaning] if synonym in lower]
        if there:
            if lower.count(there[0]) > 1:
                raise VHEError(f"{where}: the column {there[0]!r} is there twice; rename one.")
            found[meaning] = lower.index(there[0])
        elif meaning not in OPTIONAL:
            raise VHEError(
                f"{where}: no column holds the {meaning} (named {', '.join(SYNONYMS[meaning])}); "
                f"the columns found are {listed(names)}."
            )
    return found


def blank_notes(path: Path, blank: int) -> tuple[str, ...]:
    """Say how many blank lines were skipped, if any."""
    return (f"{path.name}: {counted(blank, 'blank line')} skipped",) if blank else ()


def column_notes(path: Path, names: Sequence[str], found: Mapping[str, int]) -> list[str]:
    """Say which column was taken where several could have been meant."""
    notes = []
    for meaning, k in found.items():
        others = [n for n in names if n.strip().lower() in SYNONYMS[meaning] and n != names[k]]
        if others:
            unread = listed(others)
            notes.append(f"{path.name}: the {meaning} is column {names[k]!r}, not {unread}")
    return notes


def _split_rows(
    text: Text, delimiter: str, quoted: bool
) -> tuple[list[list[str]], list[int], tuple[str, ...]]:
    """Return the rows of a delimited file, the line on which each one starts, and notes."""
    rows: list[list[str]] = []
    lines, start, blank = [], 1, 0
    limit = csv.field_size_limit(2**31 - 1)  # a long text is no mistake
    try:
        reader = csv.reader(
            io.StringIO(text.content, newline=""),
            delimiter=delimiter,
            quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
            strict=True,
        )
        for row in reader:
            if len(row) > MOST_COLUMNS:
                raise VHEError(f"{text.path}:{start}: {len(row):,} cells in a row; is it a table?")
            if rows and row and len(row) != len(rows[0]):
                raise VHEError(
                    f"{text.path}:{start}: {counted(len(row), 'cell')} where the first row has "
                    f"{len(rows[0])}; quote a text that holds the delimiter."
                )
            if row:  # csv gives [] for a blank line
                rows.append(row)
                lines.append(start)
            else:
                blank += 1
            start = reader.line_num + 1
    except csv.Error as error:
        raise VHEError(
            f"{text.path}:{start}: the row cannot be taken apart ({error}); "
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
    ids = known is not None and len(first) == 2 and all(cell in known for cell in first)
    if ids and first != list(meanings):
        found = dict(zip(meanings, (0, 1), strict=True))
        if all(c.lower() in SYNONYMS[m] for c, m in zip(first, meanings, strict=True)):
            pair = " and ".join(map(shown, first))
            notes += (f"{path.name}: the first row, {pair}, is read as an edge: both are ids",)
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
    for number, line in enumerate(text.lines, start=1):
        if line.strip():
            documents.append(_read_object(line, f"{path}:{number}"))
            lines.append(number)
    notes = text.notes + blank_notes(path, len(text.lines) - len(lines))
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
                raise VHEError(f"{path}:{number}: no {names[k]!r}; the keys found are {keys}.")
        columns[meaning] = [document.get(names[k]) for document in documents]
    if "\\ud" in text.content.lower():  # half of an escaped pair can be no text, nor be written
        columns = {meaning: list(map(_whole, values)) for meaning, values in columns.items()}
    return Table(path, columns, lines, notes)


def _read_object(line: str, where: str) -> dict[str, Any]:
    try:
        document = json.loads(line)
    except json.JSONDecodeError as error:
        reason = f"{error.msg}, column {error.colno}"
        raise VHEError(f"{where}: not JSON ({reason}); write one object a line.") from None
    except (ValueError, RecursionError) as error:
        raise VHEError(f"{where}: JSON that cannot be read ({error}).") from None
    if not isinstance(document, dict):
        kind = type(document).__name__
        raise VHEError(f"{where}: a {kind} instead of an object; write one object a line.")
    return document


def _whole(value: Any) -> Any:
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


@contextmanager
def readable_parquet(where: str) -> Iterator[None]:
    """Inside, whatever is wrong with a Parquet file becomes one sentence."""
    import pyarrow

    try:
        yield
    except VHEError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError, ArithmeticError, LookupError) as error:
        reason = shortened((str(error).splitlines() or [""])[0].rstrip("."), 200)
        raise VHEError(f"{where} is not a readable Parquet file: {reason}.") from None


def open_parquet(raw: bytes) -> Any:
    """A Parquet file, of which equal texts are kept once, as they are in the file."""
    from pyarrow import parquet

    names = parquet.ParquetFile(io.BytesIO(raw)).schema_arrow.names
    return parquet.ParquetFile(io.BytesIO(raw), read_dictionary=names)


def parquet_columns(file: Any, names: Sequence[str]) -> dict[str, list[Any]]:
    """Some columns of a Parquet file.

    A few kilobytes can claim, and unfold to, more than any machine holds: that is refused.
    """
    about = file.metadata
    groups = [about.row_group(k).total_byte_size for k in range(about.num_row_groups)]
    claims = 8 * len(names) * about.num_rows + sum(groups)
    if claims > physical_memory():
        raise OverflowError(f"it claims {claims:,} bytes, more than the memory here")
    table = file.read(columns=list(names))
    return {name: _values(table[name]) for name in names}


def _values(column: Any) -> list[Any]:
    import pyarrow

    if not pyarrow.types.is_dictionary(column.type):
        return list(column.to_pylist())
    values: list[Any] = []
    for chunk in column.chunks:
        known = chunk.dictionary.to_pylist()
        values += [None if k is None else known[k] for k in chunk.indices.to_pylist()]
    return values
