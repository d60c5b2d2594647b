"""Parse a written page."""

import json
from html.parser import HTMLParser
from typing import Any

VOID = {"meta", "link", "input", "br", "wbr", "img", "hr"}


class Page(HTMLParser):
    """The elements of a page; fails if tags are not properly nested."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, text: str) -> None:
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(text)

    @property
    def network(self) -> dict[str, list[Any]]:
        """The JSON that the page's script reads."""
        return json.loads(self.texts["script"][0])  # type: ignore[no-any-return]
