"""A network as a table of vertices (id, text, label) and a table of edges (source, target)."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from vhe.data.checks import edge_indices
from vhe.data.convert import to_columns
from vhe.data.parts import NetworkLike, NetworkParts
from vhe.data.readers.tables import Table, read_table, write_table
from vhe.errors import VHEError
from vhe.runtime.messages import shown

StrPath = str | PathLike[str]


def read_tables(vertices: StrPath, edges: StrPath) -> NetworkParts:
    """Read a network from two tables; the columns are found by name, see tables.SYNONYMS."""
    vertices = Path(vertices)
    table = read_table(vertices, ("id", "text", "label"))
    if not table.columns["id"]:
        raise VHEError(f"{vertices} contains no vertices; a network needs at least one.")
    ids, texts = _checked_ids(table), _checked_texts(table)
    edge_table = read_table(Path(edges), ("source", "target"), known={str(i) for i in ids})
    ends = [_checked_ends(edge_table, end) for end in ("source", "target")]
    ends, notes = _same_type(ids, ends, vertices.name, edge_table.path.name)
    stem = vertices.stem.lower()
    return NetworkParts(
        ids,
        texts,
        edge_indices(ids, ends[0], ends[1], edge_table.where),
        _checked_labels(table),
        name=vertices.resolve().parent.name if stem in ("vertices", "nodes") else vertices.stem,
        notes=[*table.notes, *edge_table.notes, *notes],
    )


def write_tables(vertices: StrPath, edges: StrPath, network: NetworkLike) -> None:
    """Write a network to two tables (CSV, TSV, JSONL, Parquet)."""
    vertex_columns, edge_columns = to_columns(network)
    write_table(Path(vertices), vertex_columns)
    write_table(Path(edges), edge_columns)


@dataclass(frozen=True)
class NewVertices:
    """Vertices to add to an existing network, with their edges and labels."""

    texts: dict[Hashable, str]
    edges: list[tuple[Hashable, Hashable]]
    labels: dict[Hashable, Hashable | None]
    notes: tuple[str, ...]


def read_new_vertices(
    vertices: StrPath, edges: StrPath | None, network: NetworkLike
) -> NewVertices:
    """Read vertices to add to a network, and edges that each have at least one of them.

    Ids in the files are compared with the ids of the network as strings; if all ids of the network
    are integers, new ids that read as integers are integers, too.
    """
    table = read_table(Path(vertices), ("id", "text", "label"))
    ids, texts = _checked_ids(table), _checked_texts(table)
    labels = _checked_labels(table) or [None] * len(ids)
    if all(type(i) is int for i in network.ids) and all(map(_reads_as_integer, ids)):
        ids = [int(str(i)) for i in ids]
    by_name = {str(i): i for i in network.ids}
    for row, vertex in enumerate(ids):
        if str(vertex) in by_name:
            raise VHEError(
                f"{table.where(row)}: duplicate id {shown(vertex)}: the network has this vertex; "
                "use a new id."
            )
    notes, pairs = list(table.notes), []
    if edges is not None:
        by_name |= {str(i): i for i in ids}
        edge_table = read_table(Path(edges), ("source", "target"), known=by_name)
        sources, targets = (
            [by_name.get(str(i), i) for i in _checked_ends(edge_table, end)]
            for end in ("source", "target")
        )
        rows = edge_indices([*network.ids, *ids], sources, targets, edge_table.where)
        old = np.flatnonzero((rows < len(network.ids)).all(axis=1))
        if len(old):
            raise VHEError(
                f"{edge_table.where(int(old[0]))}: the edge is between two existing vertices; "
                "remove it here and fit again to use it."
            )
        pairs = list(zip(sources, targets, strict=True))
        notes += edge_table.notes
    return NewVertices(
        dict(zip(ids, texts, strict=True)), pairs, dict(zip(ids, labels, strict=True)), tuple(notes)
    )


def _reads_as_integer(vertex: Hashable) -> bool:
    text = str(vertex)
    return text.isascii() and text.isdigit() and str(int(text)) == text


def _checked_texts(table: Table) -> list[str]:
    texts = ["" if value is None else value for value in table.columns["text"]]
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            kind = type(text).__name__
            raise VHEError(f"{table.where(row)}: the text is of type {kind}; give a string.")
    return texts


def _checked_ids(table: Table) -> list[Hashable]:
    ids = _checked_ends(table, "id")
    first: dict[Hashable, int] = {}
    for row, vertex in enumerate(ids):
        if first.setdefault(vertex, row) != row:
            raise VHEError(
                f"{table.where(row)}: duplicate id {shown(vertex)} "
                f"(first at {table.where(first[vertex])}); remove one of the rows."
            )
    return ids


def _checked_ends(table: Table, meaning: str) -> list[Hashable]:
    """Return a column of ids: strings or integers, none of them missing."""
    values: list[Any] = table.columns[meaning]
    for row, value in enumerate(values):
        if value is None or value == "":
            raise VHEError(f"{table.where(row)}: the {meaning} is empty.")
        if type(value) not in (str, int):
            kind = type(value).__name__
            raise VHEError(
                f"{table.where(row)}: the {meaning} is of type {kind}; give a string or an integer."
            )
    return values


def _checked_labels(table: Table) -> list[Hashable | None] | None:
    """Return the labels, None for an empty cell, null or NaN; a model folder stores these types."""
    labels: list[Any] = table.columns.get("label", [])
    for row, label in enumerate(labels):
        if label is not None and type(label) not in (str, int, float, bool, bytes):
            kind = type(label).__name__
            raise VHEError(
                f"{table.where(row)}: the label {shown(label)} is of type {kind}; "
                "give a string, a number or a boolean."
            )
    labels = [None if label == "" or label != label else label for label in labels]
    return labels if any(label is not None for label in labels) else None


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
