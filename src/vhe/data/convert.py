"""Conversion from and to networkx, pandas and PyTorch Geometric: methods of `TextNetwork`."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vhe.data.attributes import Vectors, checked_vectors, checked_weights, stacked_vectors
from vhe.data.checks import edge_indices
from vhe.data.parts import NetworkLike, NetworkParts
from vhe.errors import VHEError
from vhe.runtime.messages import shown

if TYPE_CHECKING:
    import networkx
    import pandas
    from torch_geometric.data import Data

    from vhe.data.network import TextNetwork


def from_networkx(
    cls: type[TextNetwork],
    graph: networkx.Graph,
    text: str | None = "text",
    label: str | None = None,
    *,
    vector: str | None = None,
    weight: str | None = None,
) -> TextNetwork:
    """Make a network from a networkx graph.

    Other attributes of edges, such as types and times, are not used; `notes` names them.

    Parameters
    ----------
    graph : networkx.Graph
        Of any kind; its vertices are the ids.
    text : str or None
        Vertex attribute with the text; None for a network without texts.
    label, vector : str, optional
        Vertex attributes with the label and the vector.
    weight : str, optional
        Edge attribute with the weight, which is 1 where an edge has none.
    """
    ids = list(graph.nodes)
    attributes = [own for _, own in graph.nodes(data=True)]
    for vertex, own in zip(ids, attributes, strict=True):
        if text is not None and text not in own:
            found = ", ".join(map(repr, own)) or "none"
            raise VHEError(
                f"vertex {vertex!r} of the graph has no attribute {text!r} "
                f"(its attributes: {found}); name the attribute with the text by text=."
            )
    ends = list(graph.edges(data=True))
    weights = None if weight is None else [own.get(weight, 1) for _, _, own in ends]
    parts = NetworkParts(
        ids,
        [""] * len(ids) if text is None else [own[text] for own in attributes],
        edge_indices(ids, [e[0] for e in ends], [e[1] for e in ends], "edge {}".format),
        None if label is None else [own.get(label) for own in attributes],
        directed=graph.is_directed(),
        name=graph.name or "network",
        vectors=None if vector is None else _rows(ids, [own.get(vector) for own in attributes]),
        edge_weights=None if weights is None else checked_weights(weights, len(ends)),
        notes=_ignored({str(name) for _, _, own in ends for name in own} - {weight}),
    )
    return cls.from_parts(parts)


def to_networkx(network: NetworkLike) -> networkx.Graph:
    """Return a Graph (a DiGraph if directed) with vertex attributes `text`, `label` and `vector`.

    Edges have the attribute `weight` if they have weights; those of parallel edges are added.
    """
    import networkx

    graph = networkx.DiGraph() if network.directed else networkx.Graph()
    graph.name = network.name
    ids = network.ids
    labels = network.labels or (None,) * len(ids)
    for vertex, text, label in zip(ids, network.texts, labels, strict=True):
        graph.add_node(vertex, text=text, **({} if label is None else {"label": label}))
    if network.vectors is not None:
        for vertex, row in zip(ids, network.vectors, strict=True):
            graph.nodes[vertex]["vector"] = row
    if network.edge_weights is None:
        graph.add_edges_from((ids[i], ids[j]) for i, j in network.edges.tolist())
        return graph
    for (i, j), weight in zip(network.edges.tolist(), network.edge_weights.tolist(), strict=True):
        before = graph.get_edge_data(ids[i], ids[j], {"weight": 0.0})["weight"]
        graph.add_edge(ids[i], ids[j], weight=before + weight)
    return graph


def from_pandas(
    cls: type[TextNetwork],
    vertices: pandas.DataFrame,
    edges: pandas.DataFrame,
    *,
    id: str = "id",
    text: str | None = "text",
    label: str | None = None,
    vector: str | Sequence[str] | None = None,
    source: str = "source",
    target: str = "target",
    weight: str | None = None,
) -> TextNetwork:
    """Make a network from a table of vertices and a table of edges with these columns.

    Other columns of the edges are not used; `notes` names them.

    Parameters
    ----------
    vertices, edges : DataFrame
    id : str
        Column of `vertices` with the ids.
    text : str or None
        Column with the texts, empty where missing; None for a network without texts.
    label : str, optional
        Column with the labels, None where missing.
    vector : str or sequence of str, optional
        Column of lists or arrays, or several numeric columns; zero where missing.
    source, target : str
        Columns of `edges` with the ids of both ends.
    weight : str, optional
        Column of `edges` with the weights.
    """
    ids = _column(vertices, "vertices", id, missing=False)
    texts = [""] * len(ids)
    if text is not None:
        texts = ["" if t is None else t for t in _column(vertices, "vertices", text)]
    sources = _column(edges, "edges", source, missing=False)
    targets = _column(edges, "edges", target, missing=False)
    indices = edge_indices(ids, sources, targets, "row {} of the edges".format)
    labels = None if label is None else _column(vertices, "vertices", label)
    vectors = weights = None
    if isinstance(vector, str):
        vectors = _rows(ids, _column(vertices, "vertices", vector))
    elif vector is not None:
        table = [_column(vertices, "vertices", name) for name in vector]
        vectors = _rows(ids, list(zip(*table, strict=True)))
    if weight is not None:
        weights = checked_weights(_column(edges, "edges", weight, missing=False), len(indices))
    notes = _ignored({str(name) for name in edges.columns} - {source, target, weight})
    parts = NetworkParts(
        ids, texts, indices, labels, vectors=vectors, edge_weights=weights, notes=notes
    )
    return cls.from_parts(parts)


def _ignored(names: Iterable[str]) -> list[str]:
    """Report attributes of edges that are not used."""
    found = ", ".join(sorted(names))
    return [f"edges: ignored: {found}"] if found else []


def _rows(ids: Sequence[Hashable], rows: Sequence[Any]) -> Vectors:
    return stacked_vectors(rows, lambda k: f"row {k} ({shown(ids[k])})")


def _column(table: pandas.DataFrame, name: str, column: str, missing: bool = True) -> list[Any]:
    """Return a column as Python values, None where a value is missing."""
    if column not in table.columns:
        found = ", ".join(map(repr, table.columns))
        raise VHEError(f"the {name} have no column {column!r}; the columns found are {found}.")
    gaps = table[column].isna().to_numpy()
    if gaps.any() and not missing:
        raise VHEError(
            f"row {int(gaps.argmax())} of the {name} has no {column!r}; fill or drop it."
        )
    values: list[Any] = table[column].tolist()
    for row in np.flatnonzero(gaps):
        values[row] = None
    return values


def to_pandas(network: NetworkLike) -> tuple[pandas.DataFrame, pandas.DataFrame]:
    """Return a table of vertices (id, text and, if any, label and vector) and a table of edges.

    The table of edges has a column `weight` if edges have weights.
    """
    import pandas

    vertices, edges = map(pandas.DataFrame, to_columns(network))
    return vertices, edges


def to_columns(
    network: NetworkLike,
) -> tuple[dict[str, Sequence[Any]], dict[str, Sequence[Any]]]:
    """Return the columns of a table of vertices and of a table of edges.

    These are id, text and, if any, label and vector; source, target and, if any, weight.
    """
    vertices: dict[str, Sequence[Any]] = {"id": network.ids, "text": network.texts}
    if network.labels is not None:
        vertices["label"] = network.labels
    if network.vectors is not None:
        vertices["vector"] = list(network.vectors)
    sources, targets = ([network.ids[k] for k in ends] for ends in network.edges.T.tolist())
    edges: dict[str, Sequence[Any]] = {"source": sources, "target": targets}
    if network.edge_weights is not None:
        edges["weight"] = network.edge_weights.tolist()
    return vertices, edges


def from_pyg(
    cls: type[TextNetwork],
    data: Data,
    texts: Sequence[str] | None = None,
    ids: Sequence[Hashable] | None = None,
) -> TextNetwork:
    """Make a network from PyTorch Geometric's `Data`, without texts if none are given.

    Labels are `y`, None if negative; vectors are `x`, edge weights `edge_weight`. The two
    directions of an undirected edge become one edge.
    """
    if data.edge_index is None:
        raise VHEError("the Data object has no edge_index; set one of shape (2, m).")
    texts = [""] * int(data.num_nodes or 0) if texts is None else texts
    if data.num_nodes != len(texts):
        raise VHEError(
            f"the Data object has {data.num_nodes:,} vertices but {len(texts):,} texts are given."
        )
    edges = data.edge_index.cpu().numpy().T  # (m, 2)
    weights = data.get("edge_weight")
    if weights is not None:
        weights = checked_weights(weights.detach().cpu().numpy().ravel(), len(edges))
    directed = bool(data.is_directed())
    if not directed:
        once = edges[:, 0] <= edges[:, 1]
        edges, weights = edges[once], None if weights is None else weights[once]
    y = data.y
    labels = None
    if y is not None and y.ndim == 1 and len(y) == len(texts):
        labels = [label if label >= 0 else None for label in y.tolist()]
    ids = range(len(texts)) if ids is None else ids
    vectors = None if data.x is None else checked_vectors(data.x.detach().cpu().to_dense().numpy())
    unused = [name for name in ("edge_attr", "edge_type", "time") if data.get(name) is not None]
    parts = NetworkParts(
        ids,
        texts,
        edges,
        labels,
        directed,
        vectors=vectors,
        edge_weights=weights,
        notes=_ignored(unused),
    )
    return cls.from_parts(parts)


def to_pyg(network: TextNetwork) -> Data:
    """Return PyTorch Geometric's `Data` with edge_index, y (-1 for no label), ids and texts.

    `label_names` are the labels in the order of the values of `y`; `x` are the vectors and
    `edge_weight` the edge weights, if any.
    """
    try:
        import torch
        from torch_geometric.data import Data
    except ImportError as error:
        raise VHEError("to_pyg needs torch_geometric; install vhe[baselines].") from error
    edges, weights = network.edges, network.edge_weights
    if not network.directed:
        edges = np.vstack([network.links, network.links[:, ::-1]])
        weights = None if network.link_weights is None else np.tile(network.link_weights, 2)
    data = Data(edge_index=torch.tensor(edges.T.copy()), num_nodes=len(network))
    data.ids, data.texts = list(network.ids), list(network.texts)
    if network.vectors is not None:
        data.x = torch.tensor(network.vectors)
    if weights is not None:
        data.edge_weight = torch.tensor(weights, dtype=torch.float32)
    if network.labels is not None:
        names = sorted(set(network.labels) - {None}, key=lambda label: (str(type(label)), label))
        codes = {None: -1} | {label: code for code, label in enumerate(names)}
        data.y = torch.tensor([codes[label] for label in network.labels])
        data.label_names = names
    return data
