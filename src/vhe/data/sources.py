"""`read`: read a network from a file, a folder or a database, whose format is recognised.

In this order: a reader of another package (entry points `vhe.readers`); a database URL; a folder
(CANE's format, tables named vertices and edges, or pages); a file by its first bytes (SQLite,
Parquet, XML, pickles, which are refused) and its extension; JSON by its first record; text without
a known extension by its first line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from os import PathLike
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike

from vhe.data.network import TextNetwork
from vhe.data.parts import NetworkParts
from vhe.data.readers import openalex
from vhe.data.readers.bibliography import is_csl, read_bibliography
from vhe.data.readers.cane import read_cane_folder
from vhe.data.readers.graphml import read_graphml
from vhe.data.readers.inputs import STDIN, Input
from vhe.data.readers.json_documents import Documents
from vhe.data.readers.network_tables import add_edges, read_tables
from vhe.data.readers.pages import KINDS, has_pages, read_pages
from vhe.data.readers.records import OnDuplicate, OnUnknown, Records, Rules
from vhe.data.readers.sql import read_sql
from vhe.data.readers.tables import READABLE
from vhe.data.vector_files import with_vectors
from vhe.errors import VHEError
from vhe.runtime import plugins
from vhe.runtime.messages import shown

__all__ = ["read"]

BIBLIOGRAPHIES = {".bib": "BibTeX", ".bibtex": "BibTeX", ".ris": "RIS"}
PICKLES = (".pkl", ".pickle", ".gpickle", ".p")
ARCHIVES = (".zip", ".tar", ".tgz", ".7z", ".rar", ".bz2", ".xz")
DOCUMENTS = (".pdf", ".doc", ".docx", ".odt", ".rtf", ".epub")  # not read; pages are
URL = re.compile(r"[a-zA-Z][\w+]*://")
VERTEX_COLUMNS = ("id", "text", "label", "references", "vector")


def read(
    location: str | PathLike[str],
    /,
    edges: str | PathLike[str] | None = None,
    *,
    id: str | None = None,
    text: str | Sequence[str] = (),
    label: str | None = None,
    source: str | None = None,
    target: str | None = None,
    references: str | None = None,
    vector: str | Sequence[str] = (),
    weight: str | None = None,
    vectors: str | PathLike[str] | ArrayLike | None = None,
    on_unknown: OnUnknown | None = None,
    on_duplicate: OnDuplicate = "error",
    name: str | None = None,
    vertices_query: str | None = None,
    edges_query: str | None = None,
) -> TextNetwork:
    """Read a network from a file, a folder, standard input or a database.

    Parameters
    ----------
    location : str or path
        A folder of Markdown, reStructuredText or HTML pages, of tables named `vertices` and
        `edges`, or in CANE's format; a bibliography (BibTeX, RIS, CSL-JSON); works of OpenAlex or
        papers of Semantic Scholar; a table (CSV, TSV, JSON, JSONL, Parquet, Excel, OpenDocument);
        GraphML or GEXF; an SQLite file or the URL of a database. Files may be compressed by gzip or
        zstd; `-` is standard input. Installed packages can add formats (entry points
        `vhe.readers`).
    edges : str or path, optional
        A table with the columns source, target and, optionally, weight, or an edge list. Other
        columns, such as types and times of links, are noted and not used.
    id, label, source, target, references : str, optional
        Names of columns, keys, attributes or fields (default: recognised by name).
    text : str or sequence of str
        Names of columns that are joined; a string may separate them by commas. Not required where
        there are vectors.
    vector : str or sequence of str
        Name of a column of vectors: lists, or strings such as `[0.1, 0.2]` (default: `vector`); or
        names of several numeric columns. An empty cell is a vertex without vector.
    weight : str, optional
        Name of the column of edge weights (default: `weight`), which are positive.
    vectors : (n, k) array or path, optional
        Vectors in the order of the vertices, or a file that `numpy.save` wrote.
    on_unknown : {"error", "skip", "create"}, optional
        What to do with edges to unknown ids (default: error for tables of edges, skip for
        references and links).
    on_duplicate : {"error", "first", "merge"}
        What to do with duplicate ids.
    name : str, optional
        Name of the network (default: of the file, folder or database).
    vertices_query, edges_query : str, optional
        Queries of a database (default: all rows of the tables `vertices` and `edges`).

    Returns
    -------
    TextNetwork
        Its `notes` say what was chosen, skipped and ignored.
    """
    for option, value, known in (
        ("on_unknown", on_unknown, get_args(OnUnknown)),
        ("on_duplicate", on_duplicate, get_args(OnDuplicate)),
    ):
        if value is not None and value not in known:
            raise VHEError(f"{option} is {value!r}; choose one of {', '.join(known)}.")
    if str(location) in STDIN:
        location = "-"  # looking at /dev/stdin would consume it
    rules = Rules(
        id=id,
        text=_names(text),
        label=label,
        source=source,
        target=target,
        references=references,
        vector=_names(vector),
        weight=weight,
        on_unknown=on_unknown,
        on_duplicate=on_duplicate,
        name=name,
        text_optional=vectors is not None,
    )
    network = _read(location, edges, rules, (vertices_query, edges_query))
    return network if vectors is None else with_vectors(network, vectors)


def _names(columns: str | Sequence[str]) -> tuple[str, ...]:
    """Names of columns; a string may separate them by commas."""
    names = columns.split(",") if isinstance(columns, str) else columns
    return tuple(part for name in names if (part := name.strip()))


def _read(
    location: str | PathLike[str],
    edges: str | PathLike[str] | None,
    rules: Rules,
    queries: tuple[str | None, str | None],
) -> TextNetwork:
    if any(queries) and not _is_database(location):
        raise VHEError("queries need a database: give its URL, such as sqlite:///file.db (--sql).")
    if (reader := plugins.load("vhe.readers", _kind(location))) is not None:
        return TextNetwork.from_parts(_read_plugin(reader, location, edges, rules))
    if _is_database(location):
        if edges is not None:
            raise VHEError("edges of a database are read by a query: give --edges-query SQL.")
        return TextNetwork.from_parts(read_sql(_database_url(location), *queries, rules))
    return TextNetwork.from_parts(_read_path(location, edges, rules))


def _kind(location: str | PathLike[str]) -> str:
    """The scheme of a URL, or the extension of a file or folder: the name of a reader."""
    if isinstance(location, str) and (url := URL.match(location)):
        return url[0].removesuffix("://").lower()
    return Path(location).suffix[1:].lower()


def _read_plugin(
    reader: Callable[[str], TextNetwork],
    location: str | PathLike[str],
    edges: str | PathLike[str] | None,
    rules: Rules,
) -> NetworkParts:
    kind = _kind(location)
    _refuse_columns(rules, f"{location} is read by the installed reader of {kind}")
    network = reader(str(location))
    if not isinstance(network, TextNetwork):
        raise VHEError(
            f"{location}: the installed reader of {kind} returned {type(network).__name__}, not a "
            "TextNetwork"
        )
    parts = NetworkParts(**{f.name: getattr(network, f.name) for f in fields(NetworkParts)})
    return _with_edges(replace(parts, name=rules.name or parts.name), edges, rules)


def _is_database(location: str | PathLike[str]) -> bool:
    text = str(location)
    if isinstance(location, str) and URL.match(text):
        return not text.startswith(("http://", "https://", "file://", "s3://"))
    try:
        with Path(location).open("rb") as file:
            return file.read(16) == b"SQLite format 3\0"
    except OSError:  # a folder, or a file that its reader reports
        return False


def _database_url(location: str | PathLike[str]) -> str:
    if isinstance(location, str) and URL.match(location):
        return location
    return f"sqlite:///{Path(location)}"


def _read_path(
    location: str | PathLike[str], edges: str | PathLike[str] | None, rules: Rules
) -> NetworkParts:
    path = Path(location)
    if URL.match(str(location)):
        raise VHEError("downloads are not supported; save the file and give its path.")
    if path.is_dir():
        return _read_folder(path, edges, rules)
    if {str(edges), str(location)} <= set(STDIN):
        raise VHEError("vertices and edges cannot both be standard input; save one of them.")
    source = Input(location)
    parts_of = _reader(source, rules, alone=edges is None)
    if parts_of is None:
        return read_tables(source, edges, rules)
    return _with_edges(parts_of, edges, rules)


def _read_folder(path: Path, edges: str | PathLike[str] | None, rules: Rules) -> NetworkParts:
    if (path / "data.txt").exists() and (path / "graph.txt").exists():
        _refuse_columns(rules, f"{path} is in CANE's format")
        parts = read_cane_folder(path)
        return _with_edges(replace(parts, name=rules.name or parts.name), edges, rules)
    tables = {
        stem: file
        for file in sorted(path.iterdir())
        if (stem := file.name.split(".")[0].lower()) in ("vertices", "nodes", "edges", "links")
        and file.name.split(".")[1:2]
        and f".{file.name.split('.')[1].lower()}" in READABLE
    }
    vertices = tables.get("vertices", tables.get("nodes"))
    if vertices is not None:
        return read_tables(vertices, edges or tables.get("edges", tables.get("links")), rules)
    if has_pages(path):
        _refuse_columns(rules, f"{path} is a folder of pages", allowed=("label",))
        return _with_edges(read_pages(path, rules), edges, rules)
    extensions = {file.suffix.lower() for file in path.iterdir()}
    documents = ", ".join(sorted(extensions & set(DOCUMENTS)))
    raise VHEError(
        f"{path} is a folder without pages (.md, .rst, .html), without tables named vertices and "
        "edges, and without CANE's data.txt and graph.txt; "
        + (f"convert its {documents} files to one of these." if documents else "give one of these.")
    )


def _refuse_columns(rules: Rules, reason: str, allowed: Sequence[str] = ()) -> None:
    """Raise an error for a choice of columns that would have no effect."""
    given = [name for name in VERTEX_COLUMNS if getattr(rules, name) and name not in allowed]
    if given:
        raise VHEError(f"--{given[0]}: {reason}, where this cannot be chosen; omit the option.")


def _reader(source: Input, rules: Rules, *, alone: bool) -> NetworkParts | None:
    """Read a file that is not a table; return None for a table.

    A file that is read alone has no file of edges beside it.
    """
    extension, head = source.extension, source.head
    if not head:
        raise VHEError(f"{source.shown} is empty; a network needs at least one vertex.")
    if extension in DOCUMENTS:
        raise VHEError(
            f"{source.shown} is a {extension} file, which vhe does not read; convert such files to "
            "pages (.md, .rst, .html) in a folder, or to a table."
        )
    if extension in PICKLES or re.match(rb"\x80[\x02-\x05]", head):
        raise VHEError(
            f"{source.shown} is a pickle, which can run any program when it is read; write GraphML "
            "instead: networkx.write_graphml(graph, 'network.graphml')."
        )
    if extension in ARCHIVES or (head.startswith(b"PK\3\4") and extension not in READABLE):
        raise VHEError(f"{source.shown} is an archive; unpack it and give the file or folder.")
    if extension in (".graphml", ".gexf", ".xml") or _starts(head, rb"<\?xml|<graphml|<gexf"):
        _refuse_columns(rules, f"{source.shown} is XML", allowed=("text", "label", "vector"))
        return read_graphml(source, rules)
    if extension in BIBLIOGRAPHIES:
        return read_bibliography(source, BIBLIOGRAPHIES[extension], rules, needs_references=alone)
    if extension in KINDS:
        raise VHEError(f"{source.shown} is one page; give the folder of the pages.")
    if extension in (".edgelist", ".edges"):
        raise VHEError(
            f"{source.shown} contains edges without texts; give the texts, too: "
            f"--vertices FILE --edges {source.shown}."
        )
    if extension in ("", ".json", ".jsonl", ".ndjson", ".txt") and _starts(head, rb"[{\[]"):
        return _read_json(source, rules, alone=alone)
    if extension in ("", ".txt"):
        if _starts(head, rb"@\s*\w+\s*[{(]"):
            return read_bibliography(source, "BibTeX", rules, needs_references=alone)
        if _starts(head, rb"TY  ?- "):
            return read_bibliography(source, "RIS", rules, needs_references=alone)
    return None


def _starts(head: bytes, pattern: bytes) -> bool:
    return re.match(rb"(?:\xef\xbb\xbf)?\s*(?:" + pattern + rb")", head) is not None


def _read_json(source: Input, rules: Rules, *, alone: bool) -> NetworkParts | None:
    """Read JSON by its first record, unless the columns are named."""
    if rules.names_columns:
        return None
    first: dict[str, Any] = next((document for _, document in Documents(source)), {})
    if openalex.is_record(first):
        return openalex.read_works(source, rules)
    if is_csl(first):
        return read_bibliography(source, "CSL-JSON", rules, needs_references=alone)
    return None


def _with_edges(
    parts: NetworkParts, edges: str | PathLike[str] | None, rules: Rules
) -> NetworkParts:
    """Return a network with the edges of a file in addition."""
    if edges is None:
        return parts
    records = Records(rules, lambda row: f"vertex {shown(parts.ids[row])}")
    records.notes += parts.notes
    labels = parts.labels or [None] * len(parts.ids)
    vectors = [None] * len(parts.ids) if parts.vectors is None else parts.vectors
    vertices = zip(parts.ids, parts.texts, labels, vectors, strict=True)
    for row, (vertex, text, label, vector) in enumerate(vertices):
        records.add(vertex, text, label, row, vector)
    weights = np.ones(len(parts.edges)) if parts.edge_weights is None else parts.edge_weights
    for (i, j), weight in zip(parts.edges.tolist(), weights.tolist(), strict=True):
        records.link(parts.ids[i], parts.ids[j], weight=weight)
    return add_edges(records, edges, parts.name, parts.name)
