"""Columns of tables, chosen by their meaning.

A column is chosen by the user, or by its name: case, spaces and punctuation do not count, and the
first synonym that exists is taken (synonyms.py). Texts are the column `text`, or else a title
joined with an abstract. What was chosen and ignored is noted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vhe.data.readers.inputs import Input
from vhe.data.readers.records import DEFAULTS, Rules, joined
from vhe.data.readers.synonyms import SYNONYMS
from vhe.errors import VHEError
from vhe.runtime.messages import counted, listed, shortened, shown

OPTIONAL = frozenset({"label", "references", "vector", "weight"})

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


def normalised(name: str) -> str:
    """Return a column name without case, spaces and punctuation.

    >>> normalised("Abstract Note"), normalised("abstract_note")
    ('abstractnote', 'abstractnote')
    """
    return "".join(c for c in name.lower() if c.isalnum()) or name.strip().lower()


def find_columns(
    names: Sequence[str], meanings: Sequence[str], where: str, rules: Rules = DEFAULTS
) -> dict[str, list[str]]:
    """Return the names of the columns for each meaning; `text` and `vector` can have several.

    A text is not required where a column of vectors, which is looked for first, was found.
    """
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
        elif meaning == "text" and ("vector" in found or rules.text_optional):
            continue
        elif meaning not in OPTIONAL:
            synonyms = SYNONYMS[meaning]
            if meaning == "text":
                synonyms += SYNONYMS["title"] + SYNONYMS["abstract"]
            raise VHEError(
                f"{where}: no column for the {meaning}; name it one of {', '.join(synonyms)}, or, "
                f"in a command with this option, pass --{meaning} COLUMN (columns found: "
                f"{listed(names)})."
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
    remarks = [
        f"{meaning}: {' + '.join(name.strip() for name in columns)}"
        for meaning, columns in found.items()
        if [name.strip().lower() for name in columns] != [meaning]
    ]
    ignored = [name for name in dict.fromkeys(names) if name not in chosen]
    if ignored:
        count = counted(len(ignored), "column")
        listing = ", ".join(map(_plain, ignored))
        remarks.append(f"ignored: {count if len(ignored) > 5 else listing}")
    return [f"{file}: {'; '.join(remarks)}"] if remarks else []


def _plain(name: str) -> str:
    return shortened(name.strip() or repr(name), 40)


def possible_names(meaning: str, rules: Rules) -> tuple[str, ...]:
    """Return the names that a column may have."""
    chosen = getattr(rules, meaning)
    if chosen:
        return (chosen,) if isinstance(chosen, str) else tuple(chosen)
    if meaning == "text":
        return SYNONYMS["text"] + SYNONYMS["title"] + SYNONYMS["abstract"]
    return SYNONYMS[meaning]


def combined(values: Sequence[Any], meaning: str = "text") -> Any:
    """Return one value, several texts joined, or a vector of several numbers.

    A text of another type is returned as it is.
    """
    if len(values) == 1:
        return values[0]
    if meaning == "vector":
        return list(values)
    wrong = next((v for v in values if v is not None and not isinstance(v, str)), None)
    return joined(*values) if wrong is None else wrong


def table_of(
    source: Input, names: Sequence[str], found: Columns, values: Mapping[str, list[Any]]
) -> Table:
    columns = {
        meaning: values[own[0]]
        if len(own) == 1
        else [combined(row, meaning) for row in zip(*(values[name] for name in own), strict=True)]
        for meaning, own in found.items()
    }
    notes = tuple(column_notes(source.name, names, found))
    return Table(source.shown, source.name, columns, found, None, notes)
