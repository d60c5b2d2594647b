"""JSON objects of a file: one per line (JSONL), a list of them, or a list in an object.

A list in an object is what web APIs return: `{"results": [...]}`; the longest list of objects is
taken. JSONL is read line by line; other JSON must fit into the memory.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from vhe.data.readers.inputs import Input
from vhe.errors import VHEError
from vhe.runtime.messages import counted, shown


class Documents:
    """The JSON objects of an input, in order; after iteration `notes` say what was ignored."""

    def __init__(self, source: Input) -> None:
        self.source = source
        self.notes: list[str] = []
        self.by_line = source.extension in (".jsonl", ".ndjson") or _is_jsonl(source)
        self._repeated: list[tuple[int, str]] = []  # position and key

    def where(self, position: int) -> str:
        """Return the position of a document in an error message."""
        if self.by_line:
            return f"{self.source.shown}:{position}"
        return f"{self.source.shown} (record {position})"

    def __iter__(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield each document with its line, or its number from 1."""
        yield from self._lines() if self.by_line else self._list()
        self.notes += self.source.notes
        if self._repeated:
            position, key = self._repeated[0]
            where = f"{self.source.name}:{position}" if self.by_line else self.source.name
            count = counted(len(self._repeated), "duplicate key")
            self.notes.append(f"{where}: {count} (first {shown(key)}); the last value is used")

    def _lines(self) -> Iterator[tuple[int, dict[str, Any]]]:
        blank = 0
        with self.source.lines() as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    value = self._parse(
                        line.removesuffix("\n"), number, "; write one object per line"
                    )
                    yield number, self._checked(value, number, "; write one object per line")
                else:
                    blank += 1
        if blank:
            note = f"{self.source.name}: {counted(blank, 'blank line')} skipped"
            self.notes.append(note)

    def _list(self) -> Iterator[tuple[int, dict[str, Any]]]:
        value = self._parse(self.source.text(), 0, "")
        if isinstance(value, dict):
            if "nodes" in value and ("links" in value or "edges" in value):
                raise VHEError(
                    f"{self.source.shown} is a graph in node-link JSON; write it as GraphML "
                    "(networkx.node_link_graph and networkx.write_graphml), or as two tables."
                )
            lists = [v for v in value.values() if isinstance(v, list) and v and _objects(v)]
            value = max(lists, key=len) if lists and not _is_record(value) else [value]
        if not isinstance(value, list):
            kind = type(value).__name__
            raise VHEError(
                f"{self.source.shown}: a value of type {kind} instead of a list of objects."
            )
        for number, document in enumerate(value, start=1):
            yield number, self._checked(document, number, "")

    def _parse(self, text: str, position: int, hint: str) -> Any:
        """Parse JSON; unpaired surrogates, which cannot be encoded as UTF-8, are replaced."""

        def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            document = dict(pairs)
            if len(document) < len(pairs):
                counts = Counter(key for key, _ in pairs)
                self._repeated += [(position, key) for key, n in counts.items() if n > 1]
            return document

        where = self.where(position) if self.by_line else self.source.shown
        try:
            value = json.loads(text, object_pairs_hook=unique)
        except json.JSONDecodeError as error:
            if not self.by_line:
                where += f":{error.lineno}"
            reason = f"{error.msg}, column {error.colno}"
            raise VHEError(f"{where}: not JSON ({reason}){hint}.") from None
        except (ValueError, RecursionError) as error:
            raise VHEError(f"{where}: JSON that cannot be read ({error}).") from None
        return _without_surrogates(value) if "\\ud" in text.lower() else value

    def _checked(self, value: Any, position: int, hint: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            kind = type(value).__name__
            raise VHEError(f"{self.where(position)}: a {kind} instead of an object{hint}.")
        return value


def _is_jsonl(source: Input) -> bool:
    """Return whether the first line is an object and is not the whole text."""
    if not source.head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return False
    with source.lines() as lines:
        first = next((line for line in lines if line.strip()), "")
        try:
            whole = isinstance(json.loads(first), dict)
        except (ValueError, RecursionError):
            return False
        return whole and any(line.strip() for line in lines)


def _objects(values: list[Any]) -> bool:
    return all(isinstance(value, dict) for value in values)


def _is_record(value: dict[str, Any]) -> bool:
    """Return whether an object is itself a record: it has an id of its own."""
    return any(key.lower() in ("id", "paperid", "corpusid", "key") for key in value)


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(k): _without_surrogates(v) for k, v in value.items()}
    return value
