"""Entries of BibTeX files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from vhe.data.readers.inputs import Input
from vhe.errors import VHEError
from vhe.runtime.messages import shown

ENTRY = re.compile(r"@\s*([A-Za-z]+)\s*[{(]")
NAME = re.compile(r"[^\s=,{}()\"#%]+")
MAX_DEPTH = 1000


def bibtex_entries(source: Input) -> Iterator[tuple[int, dict[str, list[str]]]]:
    """Yield the line and the fields of each entry; text between entries is a comment."""
    text = source.text()
    line, counted_to = 1, 0
    macros: dict[str, str] = {}
    at = 0
    while match := ENTRY.search(text, at):
        line += text.count("\n", counted_to, match.start())
        counted_to = match.start()
        kind, at = match[1].lower(), match.end()
        where = f"{source.shown}:{line}"
        if kind in ("comment", "preamble"):
            at = _closing(text, at - 1, where)
            continue
        end = "}" if text[at - 1] == "{" else ")"
        entry: dict[str, list[str]] = {}
        if kind != "string":
            comma = re.compile(rf"\s*+([^,{end}\n]*+)\s*+([,{end}])").match(text, at)
            if comma is None or not comma[1]:
                raise VHEError(
                    f"{where}: the entry has no citation key; write @{kind}{{key, ...}}."
                )
            entry["=key"], at = [comma[1].rstrip()], comma.end()
            if comma[2] == end:
                yield line, entry
                continue
        while True:
            at = _skip(text, at)
            if at >= len(text):
                raise VHEError(f"{where}: the entry is not closed; the file may be truncated.")
            if text[at] == end:
                at += 1
                break
            name = NAME.match(text, at)
            equals = _skip(text, name.end()) if name else at
            if name is None or text[equals : equals + 1] != "=":
                here = line + text.count("\n", counted_to, at)
                raise VHEError(
                    f"{source.shown}:{here}: {shown(text[at : at + 20])} instead of a field "
                    "(name = {value})."
                )
            value, at = _value(text, equals + 1, macros, where)
            if kind == "string":
                macros[name[0].lower()] = value
            else:
                entry.setdefault(name[0].lower(), []).append(value)
            at = _skip(text, at)
            if text[at : at + 1] == ",":
                at += 1
        if kind != "string":
            yield line, entry


def _value(text: str, at: int, macros: Mapping[str, str], where: str) -> tuple[str, int]:
    """Return the value of a field, parts joined by # included, and where it ends."""
    parts = []
    while True:
        at = _skip(text, at)
        character = text[at : at + 1]
        if character in ("{", '"'):
            end = _closing(text, at, where)
            parts.append(text[at + 1 : end - 1])
            at = end
        elif name := NAME.match(text, at):
            parts.append(macros.get(name[0].lower(), name[0]))
            at = name.end()
        else:
            raise VHEError(f"{where}: a field of the entry has no value.")
        at = _skip(text, at)
        if text[at : at + 1] != "#":
            return "".join(parts), at
        at += 1


def _closing(text: str, at: int, where: str) -> int:
    """Return the position after the delimiter that closes the one at `at`."""
    opening, depth = text[at], 0
    close = {"{": "}", '"': '"', "(": ")"}[opening]
    for match in re.compile(r"\\.|[{}()\"]", re.S).finditer(text, at + 1):
        character = match[0]
        if character == close and depth == 0:
            return match.end()
        depth += (character == "{") - (character == "}")
        if depth < 0 or depth > MAX_DEPTH:
            break
    raise VHEError(f"{where}: {opening} is not closed; check the braces and quotation marks.")


def _skip(text: str, at: int) -> int:
    """Return the position of the next character that is not white space or in a % comment."""
    while at < len(text):
        if text[at].isspace():
            at += 1
        elif text[at] == "%":
            at = text.find("\n", at) + 1 or len(text)
        else:
            break
    return at
