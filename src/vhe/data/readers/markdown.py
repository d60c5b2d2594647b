"""Pages in Markdown, with front matter in YAML or TOML.

Links are `[[note]]`, `[[note#part|words]]`, `![[note]]`, `[words](path.md#part)`, `[words][name]`
with `[name]: path`, and Hugo's `ref` and `relref`. Fenced code and comments (`<!-- -->`, `%% %%`)
are dropped with the links in them, markup is dropped, as are imports of MDX and the marks of
admonitions (`!!! note`, `:::tip`, `> [!info]`); inline code and the words of links are kept.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any

from vhe.data.readers.page import Page, line_of, normalised_name, strings, tidy, without_comments
from vhe.data.readers.records import split_tags
from vhe.errors import VHEError

MARKDOWN = (".md", ".markdown", ".mdown", ".mdx", ".qmd")
FRONT = re.compile(
    r"\A(?:---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*$|\+\+\+[ \t]*\n(.*?)^\+\+\+[ \t]*$)", re.S | re.M
)
FENCE = re.compile(r"^[ >\t]*(`{3,}|~{3,})")
INLINE_CODE = re.compile(r"(?<!`)(`+)(?!`)((?:[^\n]|\n(?![ \t]*\n))+?)(?<!`)\1(?!`)")
WIKI = re.compile(r"(!?)\[\[([^\[\]\n]+)\]\]")
DESTINATION = (
    r"\(\s*+(?:<([^<>\n]*)>|((?:[^\s()\\]|\\.|\([^\s()]*\))*+))"  # <path> or path
    r"(?:\s++(?:\"[^\"]*\"|'[^']*'|\([^()]*\)))?+\s*+\)"  # title
)
INLINE = re.compile(r"(!?)\[((?:[^\[\]\\]|\\.|\[[^\[\]]*\])*)\]" + DESTINATION)
REFERENCE = re.compile(r"(!?)\[((?:[^\[\]\\]|\\.)+)\](?:\[([^\[\]]*)\])?")
DEFINITION = re.compile(r"^ {0,3}\[([^\[\]^]+)\]:[ \t]*<?([^\s>]+)>?.*$", re.M)
HUGO = re.compile(r"\{\{[<%]\s*(?:rel)?ref\s+\"?([^\"\s>%]+)\"?\s*[>%]\}\}")
TAG = re.compile(r"(?:^|(?<=\s))#([^\W\d][\w/-]*)")
HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.*)$", re.M)
MDX = re.compile(r"^(?:import|export)\s[^\n]*?(?:['\"];?|=>?[^\n]*|[{};])[ \t]*$", re.M)
ADMONITION = re.compile(
    r"^[ \t]*(?:(?:!!!|\?\?\?\+?)[ \t]+[\w-]+(?:[ \t]+\w+)*|:::+[ \t]*\w*|>[ \t]*\[![\w-]+\][+-]?)",
    re.M,
)
HTML_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
MARKS = re.compile(
    r"^[ \t]*(?:[-*+>]|\d+[.)]|#{1,6}|\|)[ \t]+|(?<![ \t])[ \t]+#+[ \t]*$|[*_~]{2,}"
    r"|^[-=*_|: \t]{3,}$",
    re.M,
)


def read_markdown(text: str, where: str) -> Page:
    """Return the content of a Markdown page."""
    page = Page()
    front = FRONT.match(text)
    if front:
        values = _yaml(front[1]) if front[1] is not None else _toml(front[2], where)
        page.front = values
        page.title = str(values.get("title") or "")
        tags = values.get("tags") or values.get("tag")
        tags = split_tags(tags) if isinstance(tags, str) else strings(tags)
        page.tags = [tag.lstrip("#") for tag in tags]
        for key in ("aliases", "alias", "slug", "id"):
            page.aliases += strings(values.get(key))
        text = "\n" * front[0].count("\n") + text[front.end() :]
    text = ADMONITION.sub("", _without_fences(text))
    if where.lower().endswith(".mdx"):
        text = MDX.sub("", text)
    text = without_comments(without_comments(text, "<!--", "-->"), "%%", "%%")
    codes: list[str] = []

    def hide(match: re.Match[str]) -> str:
        codes.append(match[2])
        return f"\x01{len(codes) - 1}\x01" + "\n" * match[0].count("\n")

    text = INLINE_CODE.sub(hide, text.replace("\x01", " "))
    line = line_of(text)
    definitions = {normalised_name(m[1]): m[2] for m in DEFINITION.finditer(text)}
    text = DEFINITION.sub("", text)

    def wiki(match: re.Match[str]) -> str:
        target, _, words = match[2].replace("\\|", "|").partition("|")
        page.links.append(("wiki", target, line(match.start())))
        return words if words and not match[1] else target.partition("#")[0]

    def inline(match: re.Match[str]) -> str:
        target = match[3] if match[3] is not None else match[4]
        if not match[1]:
            page.links.append(("path", re.sub(r"\\(.)", r"\1", target), line(match.start())))
        return match[2]

    def reference(match: re.Match[str]) -> str:
        target = definitions.get(normalised_name(match[3] or match[2]))
        if target is None:
            return match[0]
        if not match[1]:
            page.links.append(("path", target, line(match.start())))
        return match[2]

    def hugo(match: re.Match[str]) -> str:
        return match[1]

    text = HUGO.sub(hugo, text)
    line = line_of(text)
    text = WIKI.sub(wiki, text)
    for _ in range(2):  # an image inside a link
        line = line_of(text)
        text = INLINE.sub(inline, text)
    line = line_of(text)
    text = REFERENCE.sub(reference, text)
    page.tags += [tag.rstrip("/-") for tag in TAG.findall(text)]
    heading = HEADING.search(text)
    body = MARKS.sub("", HTML_TAG.sub(" ", TAG.sub(r"\1", text)))
    restore = re.compile(r"\x01(\d+)\x01")

    def show(match: re.Match[str]) -> str:
        return codes[int(match[1])]

    if not page.title and heading:
        title = heading[1].rstrip().rstrip("#")
        page.title = MARKS.sub("", restore.sub(show, title)).strip()
    page.text = tidy(restore.sub(show, body))
    return page


def _without_fences(text: str) -> str:
    """Blank the lines of fenced code blocks; an unclosed one extends to the end."""
    kept, fence = [], ""
    for line in text.split("\n"):
        match = FENCE.match(line)
        if fence:
            closing = match and match[1][0] == fence[0] and len(match[1]) >= len(fence)
            if closing and not line.strip(" >\t`~"):
                fence = ""
            kept.append("")
        elif match:
            fence = match[1]
            kept.append("")
        else:
            kept.append(line)
    return "\n".join(kept)


def _yaml(text: str) -> dict[str, Any]:
    """Return the top-level scalars and lists of a front matter in YAML, without other values."""
    values: dict[str, Any] = {}
    key = ""
    for line in text.split("\n"):
        item = re.match(r"\s*-\s+(.*)$", line)
        entry = re.match(r"([\w-]+)\s*:(?:\s+(.*))?$", line)
        if entry:
            key, value = entry[1].lower(), (entry[2] or "").strip()
            if value[:1] in (">", "|", "{"):  # texts of several lines, mappings
                value = ""
            if value.startswith("[") and value.endswith("]"):
                values[key] = [_scalar(part) for part in value[1:-1].split(",")]
            else:
                values[key] = _scalar(value)
        elif item and key and not isinstance(values[key], dict):
            values[key] = [
                *(values[key] if isinstance(values[key], list) else []),
                _scalar(item[1]),
            ]
    return values


def _scalar(value: str) -> str:
    value = value.strip()
    if value[:1] in ("'", '"') and value.endswith(value[0]) and len(value) > 1:
        return value[1:-1]
    return re.sub(r"\s+#.*$", "", value)


def _toml(text: str, where: str) -> dict[str, Any]:
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise VHEError(f"{where}:1: the front matter is not TOML ({error}).") from None
    taxonomies = values.get("taxonomies")  # of Zola
    return {**values, **(taxonomies if isinstance(taxonomies, dict) else {})}
