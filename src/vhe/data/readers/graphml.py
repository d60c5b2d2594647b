"""GraphML and GEXF by networkx, after checks of the XML that networkx does not make.

Text, vector and label are node attributes, and the weight is an edge attribute, chosen as columns
of tables are (see synonyms.py). GEXF calls the name of a node its label: it is read as its title.
"""

from __future__ import annotations

import io
import json
import re
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn
from xml.parsers import expat

from vhe.data.convert import to_networkx
from vhe.data.parts import NetworkLike, NetworkParts
from vhe.data.readers.columns import Columns, Table, column_notes, combined, find_columns
from vhe.data.readers.inputs import Input
from vhe.data.readers.numbers import edge_weights, vector_rows
from vhe.data.readers.records import DEFAULTS, Records, Rules, joined
from vhe.errors import VHEError
from vhe.runtime.files import atomic_write
from vhe.runtime.messages import shortened, shown

DECLARATION = re.compile(r"\A\s*<\?xml[^>]*\?>")
NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def read_graphml(path: str | PathLike[str] | Input, rules: Rules = DEFAULTS) -> NetworkParts:
    """Read a network from a GraphML or GEXF file."""
    import networkx

    source = path if isinstance(path, Input) else Input(path)
    content = source.text()
    if not content.strip():
        raise VHEError(f"{source.shown} is empty; export it again.")
    root, nodes, sources, targets, lines = _outline(source.shown, content, rules)
    ids = list(nodes)
    if not ids:
        raise VHEError(f"{source.shown} contains no nodes; a network needs at least one.")
    try:
        with warnings.catch_warnings(action="ignore"):  # about keys without a type
            if root == "gexf":
                text = DECLARATION.sub("", content)  # its encoding is no longer true
                graph = networkx.read_gexf(io.BytesIO(text.encode()))
                for _, attributes in graph.nodes(data=True):
                    attributes.setdefault("title", attributes.pop("label", ""))
            else:
                graph = networkx.parse_graphml(content)
    except Exception as error:  # networkx raises errors of many types
        reason = shortened(str(error) or type(error).__name__, 200)
        raise VHEError(f"{source.shown} is not {root} that networkx can read: {reason}.") from error
    outside = next((i for i in ids if i not in graph), None)
    if outside is not None:
        raise VHEError(
            f"{source.shown}:{nodes[outside]}: the node is not in the first graph of the file."
        )
    names = sorted({name for _, attributes in graph.nodes(data=True) for name in attributes})
    found = find_columns(names, ("vector", "text", "label"), source.shown, rules)
    records = Records(rules, lambda line: f"{source.shown}:{line}")
    table = _table(source, [graph.nodes[i] for i in ids], list(nodes.values()), found, "vector")
    vectors, notes = vector_rows(table, bool(rules.vector))
    records.notes += [*source.notes, *column_notes(source.name, names, found), *notes]
    for row, vertex in enumerate(ids):
        own, texts = graph.nodes[vertex], found.get("text", ())
        text = joined(*(str(own[name]) for name in texts if name in own))
        if len(texts) == 1:
            text = str(own.get(texts[0], ""))
        label = own.get(found["label"][0]) if "label" in found else None
        records.add(vertex, text, label, nodes[vertex], vectors[row] if vectors else None)
    attributes = _edge_attributes(graph, sources, targets)
    names = sorted({name for own in attributes for name in own} - {"id"})
    found = find_columns(names, ("weight",), source.shown, rules)
    weights, notes = edge_weights(
        _table(source, attributes, lines, found, "weight"), rules.weight is not None
    )
    records.notes += [*column_notes(f"{source.name}, edges", names, found), *notes]
    for row, ends in enumerate(zip(sources, targets, lines, strict=True)):
        records.link(*ends, 1.0 if weights is None else weights[row])
    return records.parts(
        source.stem, on_unknown="error", directed=graph.is_directed(), edges="edge"
    )


def _table(
    source: Input,
    attributes: Sequence[Mapping[str, Any]],
    lines: Sequence[int],
    found: Columns,
    meaning: str,
) -> Table:
    """One attribute of the nodes or edges as a table."""
    columns = {}
    if meaning in found:
        own = found[meaning]
        columns[meaning] = [combined([row.get(n) for n in own], meaning) for row in attributes]
    return Table(source.shown, source.name, columns, found, lines, ())


def _edge_attributes(
    graph: Any, sources: Sequence[str], targets: Sequence[str]
) -> list[dict[str, Any]]:
    """Attributes of the edges in the order of the file; parallel edges keep their order."""
    found: list[dict[str, Any]] = []
    seen: Counter[tuple[str, ...]] = Counter()
    for ends in zip(sources, targets, strict=True):
        own = graph.get_edge_data(*ends, default={})
        if graph.is_multigraph():
            pair = ends if graph.is_directed() else tuple(sorted(ends))
            own = list(own.values())[seen[pair]] if seen[pair] < len(own) else {}
            seen[pair] += 1
        found.append(own)
    return found


def write_graphml(path: Path, network: NetworkLike) -> None:
    """Write a network as GraphML; characters that XML does not allow become spaces."""
    import networkx

    graph = to_networkx(network)
    for _, attributes in graph.nodes(data=True):
        attributes["text"] = NOT_IN_XML.sub(" ", attributes["text"])
        if "label" in attributes:
            attributes["label"] = NOT_IN_XML.sub(" ", str(attributes["label"]))
        if "vector" in attributes:
            attributes["vector"] = json.dumps(attributes["vector"].tolist())
    with atomic_write(path) as temporary:
        networkx.write_graphml(graph, temporary)


def _outline(
    shown_path: str, content: str, rules: Rules
) -> tuple[str, dict[str, int], list[str], list[str], list[int]]:
    """Return the root, the line of each node, and the ends and lines of the edges, in order.

    networkx merges duplicate nodes and creates nodes that only an edge refers to; and a document
    type could define entities that expand to gigabytes.
    """
    parser = expat.ParserCreate()
    root = ""
    first: dict[str, int] = {}
    sources, targets, lines = [], [], []

    def element(name: str, attributes: dict[str, str]) -> None:
        nonlocal root
        line = parser.CurrentLineNumber
        name = name.rpartition(":")[2]
        root = root or name
        if name == "node":
            vertex = attributes.get("id", "")
            if not vertex:
                raise VHEError(f"{shown_path}:{line}: the node has no id.")
            if vertex in first and rules.on_duplicate == "error":
                raise VHEError(
                    f"{shown_path}:{line}: duplicate id {shown(vertex)} "
                    f"(first on line {first[vertex]}); remove one of the nodes."
                )
            first.setdefault(vertex, line)
        elif name == "edge":
            sources.append(attributes.get("source", ""))
            targets.append(attributes.get("target", ""))
            lines.append(line)

    def document_type(*_: object) -> NoReturn:
        line = parser.CurrentLineNumber
        raise VHEError(
            f"{shown_path}:{line}: a DOCTYPE is not supported, because its entities could exhaust "
            "the memory; delete it."
        )

    parser.StartElementHandler = element
    parser.StartDoctypeDeclHandler = document_type
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise VHEError(f"{shown_path}:{error.lineno}: not XML ({reason}).") from None
    return root, first, sources, targets, lines
