"""CANE's format: a folder with one text per line, one edge per line and, optionally, labels."""

from __future__ import annotations

import io
from array import array
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import numpy as np

from vhe.data.checks import Integers
from vhe.data.parts import NetworkParts
from vhe.data.readers.delimited import blank_notes
from vhe.errors import VHEError
from vhe.runtime.files import Text, read_text
from vhe.runtime.messages import counted, shown


def read_cane_folder(path: str | PathLike[str]) -> NetworkParts:
    """Read a folder in CANE's format: texts in data.txt, edges in graph.txt, and labels in
    group.txt if it exists; the ids are 0 to n - 1."""
    folder = Path(path)
    if folder.is_file():
        raise VHEError(f"{folder} is a file; give the folder that contains data.txt and graph.txt.")
    if not folder.is_dir():
        raise VHEError(f"{folder} does not exist; give a folder with data.txt and graph.txt.")
    for name in ("data.txt", "graph.txt"):
        if not (folder / name).exists():
            raise VHEError(
                f"{folder} contains no {name}; CANE's format is data.txt with one text per line "
                "and graph.txt with two vertex numbers per line."
            )
    group = folder / "group.txt"
    return read_cane(
        folder / "data.txt",
        folder / "graph.txt",
        group if group.exists() else None,
        name=folder.resolve().name,
    )


def read_cane(
    data: Path, graph: Path, group: Path | None = None, *, name: str, replace_invalid: bool = False
) -> NetworkParts:
    """Read the files of CANE's format; for `replace_invalid` see `read_text`."""
    text, edge_text = read_text(data, replace_invalid=replace_invalid), read_text(graph)
    notes = [*text.notes, *edge_text.notes]
    texts = text.lines
    if not text.content.strip():
        raise VHEError(f"{data} is empty; write one text per line.")
    edges, lines = _cane_edges(edge_text)
    group_text = None if group is None else read_text(group)
    # A blank line at the end is a vertex without text only if an edge or a label refers to it.
    count = max(k for k, line in enumerate(texts) if line.strip()) + 1
    labelled = 0 if group_text is None else len(group_text.lines)
    count = min(max(count, int(edges.max(initial=-1)) + 1, labelled), len(texts))
    notes += blank_notes(data, len(texts) - count)
    notes += blank_notes(graph, edge_text.line_count - len(edges))
    del texts[count:]
    outside = np.flatnonzero((edges >= len(texts)).any(axis=1))
    if outside.size:
        row = int(outside[0])
        raise VHEError(
            f"{graph}:{lines[row]}: unknown vertex {edges[row].max()}; {data.name} has "
            f"{counted(len(texts), 'line')}, so vertices are numbered from 0 to {len(texts) - 1}."
        )
    labels: list[str | None] | None = None
    if group_text is not None:
        labels, label_notes = _cane_labels(group_text, len(texts))
        notes += [*group_text.notes, *label_notes]
    return NetworkParts(range(len(texts)), texts, edges, labels, name=name, notes=notes)


def _cane_edges(text: Text) -> tuple[Integers, Sequence[int]]:
    """Return the pairs of vertex numbers, (m, 2), and the line of each pair."""
    numbers, lines = array("q"), array("q")  # lists would take four times the memory
    for line, row in enumerate(io.StringIO(text.content), start=1):
        cells = row.split()
        if not cells:
            continue
        if len(cells) != 2:
            raise VHEError(
                f"{text.path}:{line}: {counted(len(cells), 'value')} instead of two vertex numbers."
            )
        for cell in cells:
            if not (cell.isascii() and cell.isdigit() and len(cell) < 16):
                raise VHEError(
                    f"{text.path}:{line}: {shown(cell)} is not a vertex number (0, 1, ...)."
                )
            numbers.append(int(cell))
        lines.append(line)
    return np.array(numbers, dtype=np.int64).reshape(-1, 2), lines


def _cane_labels(text: Text, vertices: int) -> tuple[list[str | None] | None, list[str]]:
    labels = [line.strip() or None for line in text.lines]
    extra = next((k for k in range(vertices, len(labels)) if labels[k]), None)
    if extra is not None:
        raise VHEError(
            f"{text.path}:{extra + 1}: more labels than the {counted(vertices, 'text')}; write the "
            "label of each vertex on its own line, a blank line for none."
        )
    missing = vertices - len(labels)
    labels = labels[:vertices] + [None] * missing
    note = f"{text.path.name}: {counted(missing, 'line')} missing; these vertices have no label"
    return labels if any(labels) else None, [note] if missing > 0 else []
