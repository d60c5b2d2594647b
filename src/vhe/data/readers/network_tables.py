"""A network as a table of vertices (id, text, vector, label) and of edges (source, target, weight).

Without a table of edges, the vertices need a column of references: lists, JSON arrays, or ids
separated by the separator (`;` `|` `,` line end, white space) under which most of them are known.
Ids such as `1` and `1.0` are the same if their whole column is numeric.
"""

from __future__ import annotations

import json
from collections.abc import Container, Hashable, Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from vhe.data.attributes import Vectors, stacked_vectors
from vhe.data.checks import edge_indices
from vhe.data.convert import to_columns
from vhe.data.parts import NetworkLike, NetworkParts
from vhe.data.readers.columns import Table, normalised
from vhe.data.readers.inputs import Input
from vhe.data.readers.numbers import edge_weights, vector_rows
from vhe.data.readers.records import (
    DEFAULTS,
    Records,
    Rules,
    common_labels,
    integral_ids,
    split_tags,
)
from vhe.data.readers.spreadsheets import SPREADSHEETS, has_sheet
from vhe.data.readers.synonyms import SYNONYMS, TAGS
from vhe.data.readers.tables import read_table, write_table
from vhe.errors import VHEError
from vhe.runtime.messages import shown

StrPath = str | PathLike[str]
VERTEX_SHEETS, EDGE_SHEETS = ("vertices", "nodes"), ("edges", "links")
VERTEX_MEANINGS = ("id", "vector", "text", "label")  # vectors make texts optional
EDGE_MEANINGS = ("source", "target", "weight")
EDGE_LISTS = (".edgelist", ".edges", ".txt")
SEPARATORS = (";", "|", ",", "\n", None)  # None: white space


def read_tables(
    vertices: StrPath | Input, edges: StrPath | Input | None, rules: Rules = DEFAULTS
) -> NetworkParts:
    """Read a network from a table of vertices and, unless it has references, a table of edges."""
    source = vertices if isinstance(vertices, Input) else Input(vertices)
    if edges is None and source.extension in SPREADSHEETS and has_sheet(source, EDGE_SHEETS):
        edges = source
    meanings: tuple[str, ...] = VERTEX_MEANINGS
    if rules.references or edges is None:
        meanings += ("references",)
    table = read_table(source, meanings, rules=rules, sheets=VERTEX_SHEETS)
    if not table.columns["id"]:
        raise VHEError(f"{source.shown} contains no vertices; a network needs at least one.")
    if edges is None and "references" not in table.columns:
        raise VHEError(
            f"{source.shown} contains only vertices: give a file of edges, too (--edges FILE), or "
            "name a column of references (--references COLUMN)."
        )
    return network_of(table, edges, rules, _name(source))


def network_of(
    table: Table, edges: Table | StrPath | Input | None, rules: Rules, name: str
) -> NetworkParts:
    """Return the network of a table of vertices and of edges."""
    ids, notes = _integral(_present(table, "id"), table.name)
    table.columns["id"] = ids
    ids = _checked_ids(table, "id")
    records = Records(rules, table.where)
    vectors, remarks = vector_rows(table, bool(rules.vector))
    records.notes += [*table.notes, *notes, *remarks]
    labels = _labels(table)
    texts = _checked_texts(table, bool(vectors) or rules.text_optional)
    for row, (vertex, text) in enumerate(zip(ids, texts, strict=True)):
        records.add(vertex, text, labels[row], row, vectors[row] if vectors else None)
    if "references" in table.columns:
        _add_references(records, table, ids)
    if edges is None:
        return records.parts(name)
    return add_edges(records, edges, name, table.name)


def add_edges(
    records: Records, edges: Table | StrPath | Input, name: str, vertices: str
) -> NetworkParts:
    """Add the edges of a table or an edge list to vertices; return the network."""
    ids = records.ids
    names = {str(i) for i in ids}
    references = records.has_edges
    table = edges if isinstance(edges, Table) else read_edges(edges, names, records.rules)
    ends = [_present(table, end) for end in ("source", "target")]
    if not names.issuperset(str(end) for side in ends for end in side):
        changed = [_integral(side, table.name) for side in ends]
        ends = [side for side, _ in changed]
        records.notes += [note for _, own in changed for note in own][:1]
    for end, side in zip(("source", "target"), ends, strict=True):
        table.columns[end] = side
        _checked_ids(table, end)
    ends, notes = _same_type(ids, ends, vertices, table.name)
    weights, remarks = edge_weights(table, records.rules.weight is not None)
    records.notes += [*table.notes, *notes, *remarks]
    records.begin_edges(table.where)
    records.link_rows(ends[0], ends[1], weights)
    if references:
        return records.parts(name)
    return records.parts(name, on_unknown="error", directed=False, edges="edge")


def read_edges(path: StrPath | Input, known: Container[Hashable], rules: Rules) -> Table:
    """Read a table of edges, or an edge list as networkx writes it: two ids per line, then data."""
    source = path if isinstance(path, Input) else Input(path)
    if source.extension not in EDGE_LISTS:
        return read_table(source, EDGE_MEANINGS, known, rules=rules, sheets=EDGE_SHEETS)
    columns: dict[str, list[Any]] = {"source": [], "target": []}
    lines, data = [], False
    with source.lines() as text:
        for number, line in enumerate(text, start=1):
            cells = line.strip().split("\t" if "\t" in line.strip() else None)
            if not cells or line.lstrip().startswith(("#", "%")):
                continue
            if len(cells) < 2:
                raise VHEError(f"{source.shown}:{number}: one value instead of two vertex ids.")
            columns["source"].append(cells[0].strip())
            columns["target"].append(cells[1].strip())
            lines.append(number)
            data |= len(cells) > 2
    names = {meaning: [meaning] for meaning in columns}
    notes = [f"{source.name}: values after the two ids ignored"] if data else []
    return Table(source.shown, source.name, columns, names, lines, (*source.notes, *notes))


def write_tables(vertices: StrPath, edges: StrPath, network: NetworkLike) -> None:
    """Write a network to two tables (CSV, TSV, JSONL, Parquet)."""
    vertex_columns, edge_columns = to_columns(network)
    if "vector" in vertex_columns:
        rows = [row.tolist() for row in vertex_columns["vector"]]
        is_text = Path(vertices).suffix.lower() in (".csv", ".tsv")
        vertex_columns["vector"] = list(map(json.dumps, rows)) if is_text else rows
    write_table(Path(vertices), vertex_columns)
    write_table(Path(edges), edge_columns)


@dataclass(frozen=True)
class NewVertices:
    """Vertices to add to an existing network, with their edges, labels and vectors, if any."""

    texts: dict[Hashable, str]
    edges: list[tuple[Hashable, Hashable]]
    labels: dict[Hashable, Hashable | None]
    vectors: Vectors | None
    notes: tuple[str, ...]


def read_new_vertices(
    vertices: StrPath, edges: StrPath | None, network: NetworkLike, rules: Rules = DEFAULTS
) -> NewVertices:
    """Read vertices to add to a network, and edges that each have at least one of them.

    Ids in the files are compared with the ids of the network as strings; if all ids of the network
    are integers, new ids that read as integers are integers, too.
    """
    table = read_table(Path(vertices), VERTEX_MEANINGS, rules=rules)
    rows, remarks = vector_rows(table, False)
    vectors = stacked_vectors(rows, table.where) if rows else None
    ids = _checked_ids(table, "id")
    texts = _checked_texts(table, vectors is not None or rules.text_optional)
    records = Records(DEFAULTS, table.where)
    for row, vertex in enumerate(ids):
        records.add(vertex, "", None, row)  # refuses duplicates
    labels = _labels(table)
    if all(type(i) is int for i in network.ids) and all(map(_reads_as_integer, ids)):
        ids = [int(str(i)) for i in ids]
    by_name = {str(i): i for i in network.ids}
    for row, vertex in enumerate(ids):
        if str(vertex) in by_name:
            raise VHEError(
                f"{table.where(row)}: duplicate id {shown(vertex)}: the network has this vertex; "
                "use a new id."
            )
    notes, pairs = [*table.notes, *remarks], []
    if edges is not None:
        by_name |= {str(i): i for i in ids}
        edge_table = read_table(Path(edges), ("source", "target"), known=by_name)
        sources, targets = (
            [by_name.get(str(i), i) for i in _checked_ids(edge_table, end)]
            for end in ("source", "target")
        )
        ends = edge_indices([*network.ids, *ids], sources, targets, edge_table.where)
        old = np.flatnonzero((ends < len(network.ids)).all(axis=1))
        if len(old):
            raise VHEError(
                f"{edge_table.where(int(old[0]))}: the edge is between two existing vertices; "
                "remove it here and fit again to use it."
            )
        pairs = list(zip(sources, targets, strict=True))
        notes += edge_table.notes
    return NewVertices(
        dict(zip(ids, texts, strict=True)),
        pairs,
        dict(zip(ids, labels, strict=True)),
        vectors,
        tuple(notes),
    )


def _name(source: Input) -> str:
    if source.stem.lower() in ("vertices", "nodes"):
        return source.path.resolve().parent.name
    return source.stem


def _reads_as_integer(vertex: Hashable) -> bool:
    text = str(vertex)
    return text.isascii() and text.isdigit() and str(int(text)) == text


def _checked_texts(table: Table, optional: bool) -> list[str]:
    if "text" not in table.columns and not optional:
        raise VHEError(f"{table.shown}: neither texts nor vectors; pass --text or --vector COLUMN.")
    values = table.columns.get("text", [None] * len(table.columns["id"]))
    texts = ["" if value is None else value for value in values]
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            kind = type(text).__name__
            raise VHEError(f"{table.where(row)}: the text is of type {kind}; give a string.")
    return texts


def _present(table: Table, meaning: str) -> list[Any]:
    """Return a column, after checking that no value is missing."""
    values: list[Any] = table.columns[meaning]
    for row, value in enumerate(values):
        if value is None or value == "" or value != value:
            raise VHEError(f"{table.where(row)}: the {meaning} is empty.")
    return values


def _checked_ids(table: Table, meaning: str) -> list[Hashable]:
    """Return a column of ids: strings or integers, none of them missing."""
    values = _present(table, meaning)
    for row, value in enumerate(values):
        if type(value) not in (str, int):
            kind = type(value).__name__
            raise VHEError(
                f"{table.where(row)}: the {meaning} is of type {kind}; give a string or an integer."
            )
    return values


def _integral(values: list[Any], file: str) -> tuple[list[Any], list[str]]:
    """Return a numeric column without fractions of zero, and a note if there were any."""
    if not any(isinstance(v, float) or (isinstance(v, str) and "." in v) for v in values):
        return values, []
    changed = integral_ids(values)
    if changed is None:
        return values, []
    k = next(k for k, v in enumerate(values) if str(v) != str(changed[k]))
    return changed, [f"{file}: numeric ids such as {values[k]} read as {changed[k]}"]


def _labels(table: Table) -> list[Hashable | None]:
    """Return the labels, None for an empty cell, null or NaN; a model folder stores these types.

    Of a column of tags, the most common tag of each vertex is its label.
    """
    labels: list[Any] = table.columns.get("label", [None] * len(table.columns["id"]))
    names = table.names.get("label", ())
    if names and normalised(names[0]) in map(normalised, TAGS):
        return list(common_labels([_tags(label) for label in labels]))
    for row, label in enumerate(labels):
        if label is not None and type(label) not in (str, int, float, bool, bytes):
            kind = type(label).__name__
            raise VHEError(
                f"{table.where(row)}: the label {shown(label)} is of type {kind}; "
                "give a string, a number or a boolean."
            )
    return [None if label == "" or label != label else label for label in labels]


def _tags(value: Any) -> list[str]:
    if isinstance(value, str):
        return split_tags(value)
    return [str(tag) for tag in value if tag] if isinstance(value, list) else []


def _add_references(records: Records, table: Table, ids: Sequence[Hashable]) -> None:
    """Add an edge from each vertex to each of its references."""
    cells = [_listed(value) for value in table.columns["references"]]
    by_name = {str(i): i for i in records.ids}
    plain = [cell for cell in cells if isinstance(cell, str)]
    separator = _separator(plain, by_name)
    id_names = list(map(normalised, (*table.names["id"], *SYNONYMS["id"])))
    for row, cell in enumerate(cells):
        for value in _split(cell, separator) if isinstance(cell, str) else cell:
            if isinstance(value, dict):
                own = {normalised(key): item for key, item in value.items()}
                value = next((own[name] for name in id_names if own.get(name)), None)
            if value is None or value == "":
                continue
            if type(value) is float and value.is_integer():
                value = int(value)
            if type(value) not in (str, int):
                kind = type(value).__name__
                raise VHEError(
                    f"{table.where(row)}: a reference is of type {kind}; give a string or integer."
                )
            name = str(value)
            if name not in by_name and name.removesuffix(".0") in by_name:
                name = name.removesuffix(".0")
            records.link(ids[row], by_name.get(name, value), row)


def _listed(value: Any) -> str | list[Any]:
    """Return a cell of references as a list, or as a string that has to be split."""
    if value is None or value != value:
        return []
    if isinstance(value, str):
        text: str = value.strip()
        if text.startswith("[") and text.endswith("]"):
            try:
                return list(json.loads(text))
            except (ValueError, RecursionError):
                return text[1:-1].replace("'", "").replace('"', "")  # Python's list
        return text
    return list(value) if isinstance(value, list | tuple) else [value]


def _separator(cells: Iterable[str], known: Container[str]) -> str | None:
    """Return the separator under which most references are known; the first if there are none."""
    sample = [cell for _, cell in zip(range(1000), filter(None, cells), strict=False)]

    def hits(separator: str | None) -> int:
        return sum(part in known for cell in sample for part in _split(cell, separator))

    present = [s for s in SEPARATORS if s is None or any(s in cell for cell in sample)]
    return max(present, key=hits)


def _split(cell: str, separator: str | None) -> list[str]:
    return [part for value in cell.split(separator) if (part := value.strip())]


def _same_type(
    ids: list[Hashable], ends: list[list[Hashable]], vertices: str, edges: str
) -> tuple[list[list[Hashable]], list[str]]:
    """Compare ids as strings where one file has numbers and the other strings."""
    kinds = [{type(i) for i in side} for side in (ids, ends[0] + ends[1])]
    by_name = {str(i): i for i in ids}
    if kinds[1] <= kinds[0] or len(by_name) < len(ids):
        return ends, []
    names = [" and ".join(sorted(kind.__name__ for kind in side)) for side in kinds]
    note = f"ids are {names[0]} in {vertices} and {names[1]} in {edges}; compared as strings"
    return [[by_name.get(str(i), i) for i in side] for side in ends], [note]
