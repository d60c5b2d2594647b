"""A folder of linked pages in Markdown (Obsidian, MkDocs, Hugo, ...), reStructuredText or HTML.

Vertices are pages; the id is the path in the folder without its extension. The text is the title
(front matter, first heading or file name) and the visible words: code blocks, comments and markup
are dropped, the words of a link and inline code are kept. The label is the category in the front
matter, or else the most common of the page's tags (not one that all pages have); if no page has
either, the first folder in which the pages differ.

Edges are links to other pages: `[[note]]`, `[[note#part|words]]`, `[words](path.md#part)`,
`[words][reference]`, Hugo's `ref`; `:doc:`, `:ref:`, `toctree` and `` `words <path>`_ `` of
reStructuredText; `<a href>` outside of navigation in HTML. Paths are relative to the page, or to
the folder after a slash, with or without extension, `index` and `README` standing for their folder;
wikilinks are found by path, end of the path, name, alias or title, without regard to case. Links of
Docusaurus are found by `slug` and `id` of the front matter, and without the numbers of file names.

Hidden files and folders, `node_modules` and other file types are ignored; symbolic links are not
followed. Markdown and reStructuredText are read together, HTML only if there is neither.
Links to missing pages are counted, as are links that leave the folder.
"""

from __future__ import annotations

import os
import posixpath
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote

from vhe.data.parts import NetworkParts
from vhe.data.readers.html import read_html
from vhe.data.readers.inputs import Input
from vhe.data.readers.markdown import MARKDOWN, read_markdown
from vhe.data.readers.page import Page, strings
from vhe.data.readers.records import DEFAULTS, EXAMPLES, Records, Rules, common_labels, joined
from vhe.data.readers.restructuredtext import read_rst
from vhe.errors import VHEError
from vhe.runtime.messages import counted, shown

KINDS = {**dict.fromkeys(MARKDOWN, "Markdown"), ".rst": "reStructuredText"}
KINDS |= {".html": "HTML", ".htm": "HTML"}
IGNORED_FOLDERS = frozenset({"node_modules", "__pycache__"})
NUMBERED = re.compile(r"(?:(?<=/)|^)\d+[-_. ]+(?=[^/\d])")  # 01-intro.md, which sites shorten
INDEX_NAMES = ("index", "_index", "readme")
# A link with one of these endings leads to a file that is not a page.
ATTACHMENT = re.compile(
    r"\.(?:png|jpe?g|gif|svg|webp|bmp|ico|pdf|docx?|xlsx?|pptx?|odt|ods|csv|tsv|json|ya?ml|toml|"
    r"txt|zip|gz|mp[34]|m4a|ogg|wav|mov|webm|mkv|py|ipynb|js|ts|css|c|h|cpp|rs|go|java|sh|canvas|"
    r"excalidraw|base)$",
    re.I,
)


def has_pages(folder: Path) -> bool:
    """Return whether a folder contains a page."""
    return any(Path(path).suffix.lower() in KINDS for path in _files(folder, Counter()))


def read_pages(folder: Path, rules: Rules = DEFAULTS) -> NetworkParts:
    """Read the pages of a folder and their links."""
    ignored: Counter[str] = Counter()
    files = sorted(_files(folder, ignored))
    kinds = Counter(KINDS.get(Path(path).suffix.lower(), "other") for path in files)
    chosen = {"Markdown", "reStructuredText"} & set(kinds) or {"HTML"} & set(kinds)
    if not chosen:
        raise VHEError(f"{folder} contains no Markdown, reStructuredText or HTML pages.")
    names = {path: KINDS.get(Path(path).suffix.lower(), "other") for path in files}
    paths = [path for path in files if names[path] in chosen]
    resolver = Resolver(paths, files)
    pages: list[Page] = []
    notes: Counter[str] = Counter()
    for path in paths:
        source = Input(folder / path)
        text = source.text()
        pages.append(READERS[names[path]](text, source.shown))
        notes.update(note.partition(": ")[2] for note in source.notes)
    for page, vertex in zip(pages, resolver.ids, strict=True):
        page.title = page.title or posixpath.basename(vertex)
        resolver.add_names(vertex, page)

    records = Records(rules, lambda row: str(folder / paths[row]))
    count = ", ".join(f"{kinds[kind]:,} {kind}" for kind in sorted(chosen))
    records.notes.append(f"{count} {'page' if len(paths) == 1 else 'pages'}")
    labels, label_note = _labels(pages, resolver.ids, rules.label)
    records.notes += label_note
    for row, (vertex, page) in enumerate(zip(resolver.ids, pages, strict=True)):
        body = page.text.strip()
        text = body if body.startswith(page.title) else joined(page.title, body)
        records.add(vertex, text, labels[row], row)
    outside: list[str] = []
    places: list[str] = []
    records.begin_edges(places.__getitem__)
    for path, vertex, page in zip(paths, resolver.ids, pages, strict=True):
        for kind, target, line in page.links:
            found = resolver.find(kind, target, path)
            if found is None:
                continue
            where = f"{folder / path}:{line}"
            if found == OUTSIDE:
                outside.append(f"{shown(target)} at {where}")
            elif found != vertex:
                places.append(where)
                records.link(vertex, found, len(places) - 1)
    if outside:
        first = ", ".join(outside[:EXAMPLES])
        left = counted(len(outside), "link")
        records.notes.append(f"{left} out of the folder ignored (first: {first})")
    records.notes += [f"{what}: {counted(n, 'page')}" for what, n in notes.items()]
    other = len(files) - len(paths)
    if other:
        ignored["other file"] = other
    if ignored:
        counts = ", ".join(counted(n, what) for what, n in sorted(ignored.items()))
        records.notes.append(f"ignored: {counts}")
    return records.parts(folder.resolve().name, edges="link", unknown_ids="to missing pages")


def _files(folder: Path, ignored: Counter[str]) -> Iterator[str]:
    """Yield the relative paths of files; symbolic links are counted and not followed."""
    pending = [""]
    while pending:
        at = pending.pop()
        try:
            with os.scandir(folder / at) as entries:
                for entry in entries:
                    if entry.name.startswith(".") or entry.name in IGNORED_FOLDERS:
                        continue
                    path = posixpath.join(at, entry.name)
                    if entry.is_symlink():
                        ignored["symbolic link"] += 1
                    elif entry.is_dir():
                        pending.append(path)
                    elif entry.is_file():
                        yield path
        except OSError as error:
            raise VHEError(f"{folder / at} cannot be read: {error.strerror}.") from error


def _labels(
    pages: Sequence[Page], ids: Sequence[str], key: str | None
) -> tuple[list[str | None], list[str]]:
    """Return the labels and a note on what they are."""
    keys = (key,) if key else ("category", "categories")
    named = [next((v for k in keys for v in strings(page.front.get(k))), None) for page in pages]
    if any(named) or key:
        return named, [f"label: {key or 'category'}"]
    tags = common_labels([page.tags for page in pages])
    if any(tags):
        return tags, ["label: most common tag"]
    shared = posixpath.commonpath([posixpath.dirname(vertex) for vertex in ids])
    below = [posixpath.dirname(vertex)[len(shared) :].strip("/") for vertex in ids]
    folders = [path.partition("/")[0] or None for path in below]
    if len(set(folders) - {None}) > 1:
        return folders, ["label: folder"]
    return [None] * len(pages), []


# --- links

OUTSIDE = "\0outside"


class Resolver:
    """The page that a link leads to."""

    def __init__(self, paths: Sequence[str], files: Sequence[str] = ()) -> None:
        self.files = set(map(_key, files))
        stems = [posixpath.splitext(path)[0] for path in paths]
        twice = {stem for stem, n in Counter(stems).items() if n > 1}
        self.ids = [p if s in twice else s for p, s in zip(paths, stems, strict=True)]
        self.by_path: dict[str, str] = {}
        self.by_name: dict[str, list[str]] = {}  # file name -> ids
        self.by_alias: dict[str, str] = {}
        self.by_label: dict[str, str] = {}
        self.missing: dict[str, str] = {}  # the first spelling of pages that do not exist
        for path, stem, vertex in zip(paths, stems, self.ids, strict=True):
            folder, name = posixpath.split(stem)
            keys = [path, stem]
            if name.lower() in INDEX_NAMES:
                keys.append(folder)
            for key in keys:
                self.by_path.setdefault(_key(key), vertex)
            self.by_name.setdefault(_key(name), []).append(vertex)
        for stem, vertex in zip(stems, self.ids, strict=True):
            self.by_path.setdefault(_key(NUMBERED.sub("", stem)), vertex)

    def add_names(self, vertex: str, page: Page) -> None:
        """Add the aliases, the title and the labels of a page."""
        for name in (*page.aliases, page.title):
            self.by_alias.setdefault(_key(name), vertex)
        folder = posixpath.dirname(vertex)
        for key in ("slug", "id"):
            for name in strings(page.front.get(key)):
                path = posixpath.normpath(posixpath.join(NUMBERED.sub("", folder), name))
                self.by_path.setdefault(_key(path.lstrip("/")), vertex)
        for label in page.labels:
            self.by_label.setdefault(label.lower(), vertex)

    def find(self, kind: str, target: str, path: str) -> str | None:
        """Return the id of a page, the wanted name if it does not exist, or None for no page."""
        if kind == "wiki":
            found = self._wiki(target, path)
        elif kind == "ref":
            found = self.by_label.get(target.lower(), target)
        else:
            found = self._relative(target, path, document=kind == "doc")
        return found and self.missing.setdefault(_key(found), found)

    def _wiki(self, target: str, path: str) -> str | None:
        name = re.split(r"[#^|]", target)[0].strip().strip("/")
        if not name:
            return None  # a part of the same page
        key = _key(name)
        stem = posixpath.splitext(key)[0] if key.endswith(MARKDOWN) else key
        if key in self.by_path or stem in self.by_path:
            return self.by_path.get(key, self.by_path.get(stem))
        folder = posixpath.dirname(path)
        same_name = self.by_name.get(posixpath.basename(stem), [])
        ends = [v for v in same_name if f"/{_key(posixpath.splitext(v)[0])}".endswith(f"/{stem}")]
        ends = ends or [v for v in same_name if f"/{_key(v)}".endswith(f"/{stem}")]
        if ends:
            return min(ends, key=lambda v: (posixpath.dirname(v) != folder, v.count("/"), v))
        if stem in self.by_alias:
            return self.by_alias[stem]
        return None if ATTACHMENT.search(name) else name

    def _relative(self, target: str, path: str, *, document: bool) -> str | None:
        if re.match(r"[a-zA-Z][\w+.-]*:|//|\{|#|$", target):
            return None  # a URL, a template, or a part of the same page
        target = unquote(re.split(r"[?#]", target)[0])
        if not target or (ATTACHMENT.search(target) and not document):
            return None
        absolute = target.startswith("/")
        folder = "" if absolute else posixpath.dirname(path)
        # Links between the pages of a site are relative to the folder that is named as the page.
        bases = [folder] if absolute else [folder, posixpath.splitext(path)[0]]
        wanted = ""
        for base in bases:
            full = posixpath.normpath(posixpath.join(base, target.lstrip("/")))
            if full == ".." or full.startswith("../"):
                wanted = wanted or OUTSIDE
                continue
            key = _key("" if full == "." else full)
            stem, extension = posixpath.splitext(key)
            for candidate in (key, stem) if extension in KINDS else (key,):
                if candidate in self.by_path:
                    return self.by_path[candidate]
            if absolute:  # the folder of the site may be a part of this folder, or the reverse
                for candidate in _site_paths(stem if extension in KINDS else key):
                    if candidate in self.by_path:
                        return self.by_path[candidate]
            if key in self.files:
                return None  # a file that is not a page
            wanted = wanted or (posixpath.splitext(full)[0] if extension in KINDS else full)
        return wanted


def _site_paths(key: str) -> Iterator[str]:
    """Yield paths in which the first folder of a site is left out or added."""
    yield key.partition("/")[2]
    for folder in ("docs", "content", "pages", "src", "source"):
        yield f"{folder}/{key}"


def _key(path: str) -> str:
    return unicodedata.normalize("NFC", path).casefold().rstrip("/")


READERS: dict[str, Callable[[str, str], Page]] = {
    "Markdown": read_markdown,
    "reStructuredText": read_rst,
    "HTML": read_html,
}
