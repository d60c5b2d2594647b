"""Counts, values and names as parts of messages, of bounded length."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

# Control characters become visible symbols: ␀ to ␟, ␡, and � for those of ISO 6429 (C1).
CONTROLS = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"}
CONTROLS |= {127: 0x2421} | dict.fromkeys(range(128, 160), 0xFFFD)


def counted(count: int, singular: str, plural: str | None = None) -> str:
    """Return a count with its noun.

    >>> counted(1, "link"), counted(4771, "link"), counted(2, "vertex", "vertices")
    ('1 link', '4,771 links', '2 vertices')
    """
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def shortened(text: str, length: int = 80) -> str:
    """Truncate a text to `length` characters.

    >>> shortened("a" * 1000, length=6)
    'aaaaa…'
    """
    return text if len(text) <= length else text[: length - 1] + "…"


def printable(text: str) -> str:
    """Replace control characters, except for tabs and line ends, by visible symbols.

    >>> printable("\\x1b[2J")
    '␛[2J'
    """
    return text.translate(CONTROLS)


def shown(value: object) -> str:
    """Return the representation of a value from user data, truncated to 80 characters."""
    return shortened(repr(value[:100] if isinstance(value, str) else value))


def listed(names: Iterable[str]) -> str:
    """Return quoted names separated by commas, at most 20 names and 200 characters."""
    return shortened(", ".join(map(shown, islice(names, 20))) or "none", 200)


def spreadsheet_cells(values: Sequence[Any]) -> list[Any]:
    """Prefix texts that a spreadsheet would run as formulas with an apostrophe.

    Numbers stay numbers. A carriage return becomes a line feed, since it would end the row.
    """
    return [_spreadsheet_cell(value) if isinstance(value, str) else value for value in values]


def _spreadsheet_cell(text: str) -> str:
    with contextlib.suppress(ValueError):
        if math.isfinite(float(text)):
            return text
    formula = text.startswith(("=", "+", "-", "@", "\t", "\r"))
    return ("'" + text if formula else text).replace("\r", "\n")


def markdown_code(value: object) -> str:
    """Return a value as code in Markdown, in which no character has a meaning."""
    return "`" + " ".join(str(value).replace("`", "'").split()) + "`"
