"""GraphML by networkx, after checks of the XML that networkx does not make."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import NoReturn
from xml.parsers import expat

from vhe.data.checks import edge_indices
from vhe.data.convert import to_networkx
from vhe.data.parts import NetworkLike, NetworkParts
from vhe.data.readers.tables import column_notes, find_columns
from vhe.errors import VHEError
from vhe.runtime.files import atomic_write, read_text
from vhe.runtime.messages import shortened, shown

NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def read_graphml(path: Path) -> NetworkParts:
    """Read a network from GraphML; text and label are node attributes (see tables.SYNONYMS)."""
    import networkx

    text = read_text(path)
    if not text.content.strip():
        raise VHEError(f"{path} is empty; write it again.")
    nodes, sources, targets, lines = _outline(path, text.content)
    ids = list(nodes)
    if not ids:
        raise VHEError(f"{path} contains no nodes; a network needs at least one.")
    edges = edge_indices(ids, sources, targets, lambda row: f"{path}:{lines[row]}")
    try:
        with warnings.catch_warnings(action="ignore"):  # about keys without a type
            graph = networkx.parse_graphml(text.content)
    except Exception as error:  # networkx raises errors of many types
        reason = shortened(str(error) or type(error).__name__, 200)
        raise VHEError(f"{path} is not GraphML that networkx can read: {reason}.") from error
    outside = next((i for i in ids if i not in graph), None)
    if outside is not None:
        raise VHEError(f"{path}:{nodes[outside]}: the node is not in the first graph of the file.")
    names = sorted({name for _, attributes in graph.nodes(data=True) for name in attributes})
    found = {m: names[k] for m, k in find_columns(names, ("text", "label"), str(path)).items()}
    label = found.get("label")
    return NetworkParts(
        ids,
        [str(graph.nodes[i].get(found["text"], "")) for i in ids],
        edges,
        None if label is None else [graph.nodes[i].get(label) for i in ids],
        directed=graph.is_directed(),
        name=path.stem,
        notes=[
            *text.notes,
            *column_notes(path, names, {m: names.index(name) for m, name in found.items()}),
        ],
    )


def write_graphml(path: Path, network: NetworkLike) -> None:
    """Write a network as GraphML; characters that XML does not allow become spaces."""
    import networkx

    graph = to_networkx(network)
    for _, attributes in graph.nodes(data=True):
        attributes["text"] = NOT_IN_XML.sub(" ", attributes["text"])
        if "label" in attributes:
            attributes["label"] = NOT_IN_XML.sub(" ", str(attributes["label"]))
    with atomic_write(path) as temporary:
        networkx.write_graphml(graph, temporary)


def _outline(path: Path, content: str) -> tuple[dict[str, int], list[str], list[str], list[int]]:
    """Return the line of each node, and the ends and lines of the edges, in file order.

    networkx merges duplicate nodes and creates nodes that only an edge refers to; and a document
    type could define entities that expand to gigabytes.
    """
    parser = expat.ParserCreate()
    first: dict[str, int] = {}
    sources, targets, lines = [], [], []

    def element(name: str, attributes: dict[str, str]) -> None:
        line = parser.CurrentLineNumber
        name = name.rpartition(":")[2]
        if name == "node":
            vertex = attributes.get("id", "")
            if not vertex:
                raise VHEError(f"{path}:{line}: the node has no id.")
            if vertex in first:
                raise VHEError(
                    f"{path}:{line}: duplicate id {shown(vertex)} "
                    f"(first on line {first[vertex]}); remove one of the nodes."
                )
            first[vertex] = line
        elif name == "edge":
            sources.append(attributes.get("source", ""))
            targets.append(attributes.get("target", ""))
            lines.append(line)

    def document_type(*_: object) -> NoReturn:
        line = parser.CurrentLineNumber
        raise VHEError(
            f"{path}:{line}: a DOCTYPE is not supported, because its entities could exhaust the "
            "memory; delete it."
        )

    parser.StartElementHandler = element
    parser.StartDoctypeDeclHandler = document_type
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise VHEError(f"{path}:{error.lineno}: not XML ({reason}).") from None
    return first, sources, targets, lines
