"""What the readers of Markdown, reStructuredText and HTML find in a page."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Page:
    """The content of a page.

    Attributes
    ----------
    links : list of (kind, target, line)
        The kind is `wiki` (a name), `path` (a relative path or URL), `doc` (a path without
        extension) or `ref` (a label of reStructuredText).
    aliases : list of str
        Other names for wikilinks.
    labels : list of str
        Targets of links of the kind `ref`.
    """

    title: str = ""
    text: str = ""
    front: dict[str, Any] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)
    aliases: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    links: list[tuple[str, str, int]] = field(default_factory=list)


def line_of(text: str) -> Callable[[int], int]:
    """Return a function from an offset in a text to its line."""
    ends = [k for k, character in enumerate(text) if character == "\n"]
    return lambda offset: bisect_left(ends, offset) + 1


def tidy(text: str) -> str:
    """Return a text with single spaces and without blank lines."""
    return "\n".join(words for line in text.split("\n") if (words := " ".join(line.split())))


def normalised_name(name: str) -> str:
    """Return the name of a reference without regard to case and spaces."""
    return " ".join(name.split()).casefold()


def strings(value: Any) -> list[str]:
    """Return a value of a front matter as a list of strings."""
    if isinstance(value, list):
        return [str(item) for item in value if item or item == 0]
    return [] if value is None or value == "" or isinstance(value, dict) else [str(value)]


def without_comments(text: str, opening: str, closing: str) -> str:
    """Blank comments; one that is not closed is text."""
    kept, at = [], 0
    while (start := text.find(opening, at)) >= 0:
        end = text.find(closing, start + len(opening))
        if end < 0:
            break
        kept += [text[at:start], "\n" * text.count("\n", start, end)]
        at = end + len(closing)
    return "".join([*kept, text[at:]])
