"""Pages in reStructuredText.

Links are `:doc:`, `:ref:`, `:numref:`, the entries of `toctree`, `` `words <path>`_ `` and
`` `words`_ `` with `.. _words: path`. Code, comments, options of directives and markup are dropped.
"""

from __future__ import annotations

import re

from vhe.data.readers.page import Page, line_of, normalised_name, tidy
from vhe.data.readers.records import split_tags

UNDERLINE = re.compile(
    r"^(?:([=\-~^\"'#*+.:`_])\1{2,}[ \t]*\n)?(\S[^\n]*)\n([=\-~^\"'#*+.:`_])\3{2,}[ \t]*$", re.M
)
RST_LABEL = re.compile(r"^[ \t]*\.\. _([^:\n]+|`[^`\n]+`):[ \t]*(\S*)[ \t]*$", re.M)
ROLE = re.compile(r":(?P<role>[\w:+.-]{1,80}):`(?P<body>[^`]+)`")
EMBEDDED = re.compile(r"`([^`<]*)<([^`>]+)>`__?")
DIRECTIVE = re.compile(r"^([ \t]*)\.\.[ \t]+([\w:-]+)::[ \t]*(.*)$")
CODE_DIRECTIVES = frozenset(
    {"code", "code-block", "sourcecode", "literalinclude", "raw", "math", "plot", "ipython"}
    | {"doctest", "testcode", "testoutput", "highlight", "image", "figure", "csv-table", "index"}
)


def read_rst(text: str, where: str) -> Page:
    """Return the content of a page in reStructuredText."""
    page = Page()
    text = _rst_blocks(text, page)
    line = line_of(text)
    external: dict[str, str] = {}
    for match in RST_LABEL.finditer(text):
        name = match[1].strip("`")
        if match[2]:
            external[normalised_name(name)] = match[2]
        else:
            page.labels.append(name)
    text = RST_LABEL.sub("", text)
    line = line_of(text)

    def role(match: re.Match[str]) -> str:
        name = match["role"].rpartition(":")[2]
        words, target = _rst_target(match["body"])
        if name in ("doc", "ref", "numref"):
            kind = "doc" if name == "doc" else "ref"
            page.links.append((kind, target, line(match.start())))
        return words

    def embedded(match: re.Match[str]) -> str:
        page.links.append(("path", match[2].strip(), line(match.start())))
        return match[1].strip()

    def named(match: re.Match[str]) -> str:
        target = external.get(normalised_name(match[1]))
        if target:
            page.links.append(("path", target, line(match.start())))
        return match[1]

    text = ROLE.sub(role, text)
    line = line_of(text)
    text = EMBEDDED.sub(embedded, text)
    line = line_of(text)
    text = re.sub(r"`([^`\n]+)`_\b", named, text)
    title = UNDERLINE.search(text)
    if title:
        page.title = re.sub(r"[`*]", "", title[2]).strip()
    text = re.sub(r"^[ \t]*[=\-~^\"'#*+.:`_]{3,}[ \t]*$", "", text, flags=re.M)
    page.text = tidy(
        re.sub(
            r"``?|\*\*?|^[ \t]*(?:[-*+]|\d+\.|#\.)[ \t]+|^[ \t]*:[\w -]+:|\|", " ", text, flags=re.M
        )
    )
    return page


def _rst_target(body: str) -> tuple[str, str]:
    """Return the words and the target of a role: `words <target>`, `~target` or `target`."""
    match = re.fullmatch(r"(.*?)\s*<([^<>]+)>", body, re.S)
    if match:
        return match[1], match[2].strip()
    return body.lstrip("~!"), body.lstrip("~!").strip()


def _rst_blocks(text: str, page: Page) -> str:
    """Blank comments, code and options of directives; collect the entries of toctrees."""
    kept: list[str] = []
    skip_deeper: int | None = None  # lines indented more than this are not text
    tree: int | None = None
    for number, line in enumerate(text.split("\n"), start=1):
        indent = len(line) - len(line.lstrip())
        if line.strip():
            if skip_deeper is not None and indent <= skip_deeper:
                skip_deeper = None
            if tree is not None and indent <= tree:
                tree = None
        if tree is not None:
            entry = line.strip()
            if entry and not entry.startswith(":") and "*" not in entry:
                target = _rst_target(entry)[1]
                if target != "self":
                    page.links.append(("doc", target, number))
            kept.append("")
            continue
        if skip_deeper is not None:
            kept.append("")
            continue
        directive = DIRECTIVE.match(line)
        if directive:
            name = directive[2].rpartition(":")[2]
            if name == "toctree":
                tree = indent
            elif name in CODE_DIRECTIVES:
                skip_deeper = indent
            elif name == "meta" or name == "tags":
                page.tags += split_tags(directive[3])
            kept.append(directive[3] if name not in CODE_DIRECTIVES | {"toctree", "tags"} else "")
        elif re.match(r"\s*\.\.(\s+(?!_|\[|\|)|$)", line):  # a comment
            skip_deeper = indent
            kept.append("")
        elif line.rstrip().endswith("::"):
            skip_deeper = indent
            kept.append(line.rstrip()[:-1])
        else:
            kept.append(line)
    return "\n".join(kept)
