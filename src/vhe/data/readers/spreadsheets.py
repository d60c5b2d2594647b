"""Tables in Excel and OpenDocument spreadsheets, by pandas."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from typing import Any

from vhe.data.readers.columns import Table, find_columns, table_of
from vhe.data.readers.inputs import MAX_RATIO, SMALL, Input
from vhe.data.readers.records import Rules
from vhe.errors import VHEError
from vhe.runtime.files import physical_memory
from vhe.runtime.messages import shortened, shown

SPREADSHEETS = (".xlsx", ".xlsm", ".ods")


def read_spreadsheet(
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
    table = table_of(source, [n for n in names if n], found, values)
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
        with (
            redirect_stdout(io.StringIO()),  # odfpy prints a part that it cannot parse
            pandas.ExcelFile(io.BytesIO(raw), engine=engine) as book,  # type: ignore[arg-type]
        ):
            yield book
    except ImportError:
        raise VHEError(
            f"{source.shown}: reading {extension} needs {package}; install vhe[excel], or save the "
            "sheet as CSV."
        ) from None
    except VHEError:
        raise
    except Exception as error:  # the libraries raise errors of many types
        text = " ".join(str(error).split()).rstrip(".")
        reason = shortened(text or type(error).__name__, 200)
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
