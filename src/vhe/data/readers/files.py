"""Networks from files and to files, with the file and line of what is wrong; embeddings to files.

Formats: a folder as CANE has it (data.txt, graph.txt, group.txt); a table of vertices (id, text,
label) with one of edges (source, target) as CSV, TSV, JSONL or Parquet; GraphML. The columns go by
these names, in any case (the first that is there):

- id: id, vertex, node, name, key
- text: text, abstract, description, body, content, title
- label: label, class, group, category, subject, section (may be missing)
- source: source, from, src, head, u, citing
- target: target, to, dst, tail, v, cited
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vhe.data.checks import edge_indices, hashable, shown
from vhe.data.network import TextNetwork
from vhe.data.readers.cane import read_cane, read_folder, write_folder
from vhe.data.readers.graphml import read_graphml, write_graphml
from vhe.data.readers.tables import (
    Table,
    arrow_array,
    checked_extension,
    read_table,
    write_table,
)
from vhe.errors import VHEError
from vhe.runtime.files import atomic_write

__all__ = [
    "NewVertices",
    "read_cane",
    "read_files",
    "read_folder",
    "read_new_vertices",
    "write_embedding",
    "write_files",
    "write_folder",
    "write_graphml",
]

StrPath = str | PathLike[str]


def read_files(vertices: StrPath, edges: StrPath | None = None) -> TextNetwork:
    """Read a table of vertices and one of edges (CSV, TSV, JSONL, Parquet), or one GraphML file."""
    vertices = Path(vertices)
    if vertices.suffix.lower() == ".graphml":
        if edges is not None:
            raise VHEError(f"{vertices} holds the edges too; leave {edges} out.")
        return read_graphml(vertices)
    if edges is None:
        raise VHEError(f"{vertices} holds vertices alone; give a file of edges beside it.")
    table = read_table(vertices, ("id", "text", "label"))
    if not table.columns["id"]:
        raise VHEError(f"{vertices} holds no vertex; a network needs at least one.")
    ids, texts = _checked_ids(table), _checked_texts(table)
    lines = read_table(Path(edges), ("source", "target"), known={str(i) for i in ids})
    ends = [_checked_ends(lines, end) for end in ("source", "target")]
    ends, said = _same_type(ids, ends, vertices.name, lines.path.name)
    stem = vertices.stem.lower()
    return TextNetwork.from_parts(
        ids,
        texts,
        edge_indices(ids, ends[0], ends[1], lambda row: f"{lines.where(row)}: the edge"),
        _checked_labels(table),
        name=vertices.resolve().parent.name if stem in ("vertices", "nodes") else vertices.stem,
        notes=[*table.notes, *lines.notes, *said],
    )


@dataclass(frozen=True)
class NewVertices:
    """Vertices for a network that is there already, with their edges, and labels if it has any."""

    texts: dict[Hashable, str]
    edges: list[tuple[Hashable, Hashable]]
    labels: dict[Hashable, Hashable | None]
    notes: tuple[str, ...]


def read_new_vertices(
    vertices: StrPath, edges: StrPath | None, network: TextNetwork
) -> NewVertices:
    """Read vertices that a network does not have yet, and edges that each have one of them.

    An id in a file means the vertex that reads the same; where all ids of the network are whole
    numbers, new ids that read as such are numbers too.
    """
    table = read_table(Path(vertices), ("id", "text", "label"))
    ids, texts = _checked_ids(table), _checked_texts(table)
    labels = _checked_labels(table) or [None] * len(ids)
    if all(type(i) is int for i in network.ids) and all(_reads_as_whole(i) for i in ids):
        ids = [int(str(i)) for i in ids]
    names = {str(i): i for i in network.ids}
    for row, vertex in enumerate(ids):
        if str(vertex) in names:
            raise VHEError(
                f"{table.where(row)}: {shown(vertex)} is a vertex already; give it a new id."
            )
    said, pairs = list(table.notes), []
    if edges is not None:
        names |= {str(i): i for i in ids}
        lines = read_table(Path(edges), ("source", "target"), known=names)
        sources, targets = (
            [names.get(str(i), i) for i in _checked_ends(lines, end)]
            for end in ("source", "target")
        )
        everyone = [*network.ids, *ids]
        rows = edge_indices(everyone, sources, targets, lambda row: f"{lines.where(row)}: the edge")
        old = np.flatnonzero((rows < len(network)).all(axis=1))
        if len(old):
            raise VHEError(
                f"{lines.where(int(old[0]))}: both vertices of the edge were there already; "
                "fit again to learn from it."
            )
        pairs = list(zip(sources, targets, strict=True))
        said += lines.notes
    return NewVertices(
        dict(zip(ids, texts, strict=True)), pairs, dict(zip(ids, labels, strict=True)), tuple(said)
    )


def _reads_as_whole(vertex: Hashable) -> bool:
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
                f"{table.where(row)}: the id {shown(vertex)} is there already, "
                f"at {table.where(first[vertex])}."
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
    """Return the labels, None where there is none (an empty cell, null, not a number)."""
    labels: list[Any] = table.columns.get("label", [])
    for row, label in enumerate(labels):
        if not hashable(label):
            raise VHEError(f"{table.where(row)}: the label {shown(label)} is not a single value.")
    labels = [None if label == "" or label != label else label for label in labels]
    return labels if any(label is not None for label in labels) else None


def _same_type(
    ids: list[Hashable], ends: list[list[Hashable]], vertices: str, edges: str
) -> tuple[list[list[Hashable]], list[str]]:
    """Where one file has numbers and the other strings, take the id that reads the same."""
    kinds = [{type(i) for i in side} for side in (ids, ends[0] + ends[1])]
    by_name = {str(i): i for i in ids}
    if kinds[1] <= kinds[0] or len(by_name) < len(ids):
        return ends, []
    names = [" and ".join(sorted(kind.__name__ for kind in side)) for side in kinds]
    said = f"the ids are {names[0]} in {vertices} and {names[1]} in {edges}; compared as strings"
    return [[by_name.get(str(i), i) for i in side] for side in ends], [said]


def write_files(vertices: StrPath, edges: StrPath, network: TextNetwork) -> None:
    """Write a network as a table of vertices and one of edges (CSV, TSV, JSONL, Parquet)."""
    columns: dict[str, Sequence[Any]] = {"id": network.ids, "text": network.texts}
    if network.labels is not None:
        columns["label"] = network.labels
    sources, targets = ([network.ids[k] for k in side] for side in network.edges.T.tolist())
    write_table(Path(vertices), columns)
    write_table(Path(edges), {"source": sources, "target": targets})


def write_embedding(
    path: StrPath,
    ids: Sequence[Hashable],
    mean: NDArray[np.floating],
    std: NDArray[np.floating] | None = None,
) -> None:
    """Write an embedding, whole or not at all, in the format that the extension of `path` names.

    Parameters
    ----------
    path : str or path
        `.parquet`: columns id, mean and std, the last two lists of d numbers.
        `.csv`: columns id, mean_0 ... mean_{d-1} and std_0 ... std_{d-1}.
        `.npy`: (n, d), or (2, n, d) with the deviations; rows follow `ids`, which are not in it.
        `.txt`: word2vec's text: 'n d', then a vertex a line; white space in an id becomes _.
    ids : sequence of hashable, n
    mean : (n, d) array
    std : (n, d) array, optional
    """
    path = Path(path)
    extension = checked_extension(path, (".parquet", ".csv", ".npy", ".txt"))
    if mean.ndim != 2 or len(mean) != len(ids) or (std is not None and std.shape != mean.shape):
        shapes = f"{mean.shape}" if std is None else f"{mean.shape} and {std.shape}"
        raise VHEError(f"an embedding of {len(ids):,} vertices cannot have the shape {shapes}.")
    if extension == ".txt" and std is not None:
        raise VHEError(f"{path}: word2vec's format has no deviations; use .parquet, .csv or .npy.")
    parts = {"mean": mean} if std is None else {"mean": mean, "std": std}
    with atomic_write(path) as temporary:
        if extension == ".npy":
            with temporary.open("wb") as file:
                np.save(file, mean if std is None else np.stack([mean, std]), allow_pickle=False)
        else:
            _write_arrow(extension, temporary, ids, parts)


def _write_arrow(
    extension: str, path: Path, ids: Sequence[Hashable], parts: dict[str, NDArray[np.floating]]
) -> None:
    """Write by Arrow, which prints a number in as few digits as tell it apart, and fast."""
    import pyarrow
    from pyarrow import compute, csv, parquet

    if extension == ".parquet":
        lists = {
            name: pyarrow.FixedSizeListArray.from_arrays(part.ravel(), part.shape[1])
            for name, part in parts.items()
        }
        parquet.write_table(pyarrow.table({"id": arrow_array(ids), **lists}), path)
        return
    columns = {
        f"{name}_{k}": column
        for name, part in parts.items()
        for k, column in enumerate(np.ascontiguousarray(part.T))
    }
    if extension == ".csv":
        csv.write_csv(pyarrow.table({"id": arrow_array(ids), **columns}), path)
        return
    names = ["_".join(str(vertex).split()) for vertex in ids]
    if len(set(names)) < len(names) or "" in names:
        raise VHEError(
            "word2vec's format holds no white space in an id, and without it some ids are the "
            "same or empty; use .parquet or .csv."
        )
    cells = [compute.cast(pyarrow.array(column), pyarrow.string()) for column in columns.values()]
    lines = compute.binary_join_element_wise(pyarrow.array(names), *cells, " ").to_pylist()
    content = f"{len(names)} {len(cells)}\n" + "".join(line + "\n" for line in lines)
    path.write_text(content, encoding="utf-8", newline="\n")
