"""Pages in HTML.

The words and links of `<main>` or `<article>` are read, or else of the whole body, without scripts,
preformatted code and navigation (`nav`, `header`, `footer`, `aside`, `form`).
"""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser

from vhe.data.readers.page import Page, tidy, without_comments
from vhe.data.readers.records import split_tags

MARKED_SECTION = re.compile(r"<!\[[^>]*>?")  # HTMLParser raises errors in malformed ones
SILENT = frozenset({"script", "style", "template", "noscript", "svg", "head", "pre", "textarea"})
NAVIGATION = frozenset({"nav", "header", "footer", "aside", "form"})
BLOCKS = frozenset(
    {"p", "div", "li", "tr", "br", "h1", "h2", "h3", "h4", "h5", "h6", "section", "dt", "dd"}
)
VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"}
)


class _HTMLPage(HTMLParser):
    """Title, visible words and links of a page, and whether they are in its main part."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.page = Page()
        self.words: list[tuple[str, bool]] = []  # and whether in the main part
        self.links: list[tuple[str, int, bool]] = []
        self.title: list[str] = []
        self.heading: list[str] = []
        self.open: Counter[str] = Counter()

    @property
    def _in_main(self) -> bool:
        return bool(self.open["main"] or self.open["article"])

    @property
    def _is_hidden(self) -> bool:
        return any(self.open[tag] > 0 for tag in (*SILENT, *NAVIGATION))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "meta" and values.get("name", "").lower() == "keywords":
            self.page.tags += split_tags(values.get("content", ""))
        if tag not in VOID:
            self.open[tag] += 1
        if tag in BLOCKS:
            self.words.append(("\n", self._in_main))
        if tag == "a" and values.get("href") and not self._is_hidden:
            self.links.append((values["href"], self.getpos()[0], self._in_main))

    def handle_endtag(self, tag: str) -> None:
        if self.open[tag] > 0:
            self.open[tag] -= 1

    def handle_data(self, data: str) -> None:
        if self.open["title"] and not self.open["svg"] and not self.open["body"]:
            self.title.append(data)
        elif not self._is_hidden:
            if self.open["h1"] and "¶" not in data:
                self.heading.append(data)
            if data.strip() != "¶":  # Sphinx's link to a heading
                self.words.append((data, self._in_main))


def read_html(text: str, where: str) -> Page:
    """Return the content of an HTML page."""
    parser = _HTMLPage()
    text = without_comments(text, "<!--", "-->").partition("<!--")[0]
    # tags that never end: HTMLParser looks for the end of each of them in the rest of the page
    complete = text.rfind(">") + 1
    text = text[:complete] + text[complete:].replace("<", " ")
    parser.feed(MARKED_SECTION.sub(" ", text))
    parser.close()
    page = parser.page
    has_main = any(inside for _, inside in parser.words)
    page.title = " ".join("".join(parser.heading or parser.title).split())
    page.text = tidy("".join(word for word, inside in parser.words if inside or not has_main))
    page.links = [
        ("path", href.strip(), line)
        for href, line, inside in parser.links
        if inside or not has_main
    ]
    return page
