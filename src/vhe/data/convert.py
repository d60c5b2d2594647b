"""Conversion from and to networkx, pandas and PyTorch Geometric; see the methods of TextNetwork."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vhe.data.checks import edge_indices
from vhe.data.parts import NetworkLike, NetworkParts
from vhe.errors import VHEError

if TYPE_CHECKING:
    import networkx
    import pandas
    from torch_geometric.data import Data

    from vhe.data.network import TextNetwork


def from_networkx(graph: networkx.Graph, text: str, label: str | None) -> NetworkParts:
    """See `TextNetwork.from_networkx`."""
    ids = list(graph.nodes)
    for vertex, attributes in graph.nodes(data=True):
        if text not in attributes:
            found = ", ".join(map(repr, attributes)) or "none"
            raise VHEError(
                f"vertex {vertex!r} of the graph has no attribute {text!r} "
                f"(its attributes: {found}); name the attribute with the text by text=."
            )
    ends = list(graph.edges())
    return NetworkParts(
        ids,
        [attributes[text] for _, attributes in graph.nodes(data=True)],
        edge_indices(ids, [e[0] for e in ends], [e[1] for e in ends], "edge {}".format),
        None if label is None else [a.get(label) for _, a in graph.nodes(data=True)],
        directed=graph.is_directed(),
        name=graph.name or "network",
    )


def to_networkx(network: NetworkLike) -> networkx.Graph:
    """See `TextNetwork.to_networkx`."""
    import networkx

    graph = networkx.DiGraph() if network.directed else networkx.Graph()
    graph.name = network.name
    ids = network.ids
    labels = network.labels or (None,) * len(ids)
    for vertex, text, label in zip(ids, network.texts, labels, strict=True):
        graph.add_node(vertex, text=text, **({} if label is None else {"label": label}))
    graph.add_edges_from((ids[i], ids[j]) for i, j in network.edges.tolist())
    return graph


def from_pandas(
    vertices: pandas.DataFrame,
    edges: pandas.DataFrame,
    id: str,
    text: str,
    label: str | None,
    source: str,
    target: str,
) -> NetworkParts:
    """See `TextNetwork.from_pandas`; a missing text is empty, a missing label is None."""
    ids = _column(vertices, "vertices", id, missing=False)
    texts = ["" if t is None else t for t in _column(vertices, "vertices", text)]
    sources = _column(edges, "edges", source, missing=False)
    targets = _column(edges, "edges", target, missing=False)
    return NetworkParts(
        ids,
        texts,
        edge_indices(ids, sources, targets, "row {} of the edges".format),
        None if label is None else _column(vertices, "vertices", label),
    )


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
    """See `TextNetwork.to_pandas`."""
    import pandas

    vertices, edges = to_columns(network)
    return (
        pandas.DataFrame({name: list(values) for name, values in vertices.items()}),
        pandas.DataFrame(edges),
    )


def to_columns(
    network: NetworkLike,
) -> tuple[dict[str, Sequence[Hashable | None]], dict[str, Sequence[Hashable]]]:
    """Return the columns of a table of vertices (id, text, label) and of edges (source, target)."""
    vertices: dict[str, Sequence[Hashable | None]] = {"id": network.ids, "text": network.texts}
    if network.labels is not None:
        vertices["label"] = network.labels
    sources, targets = ([network.ids[k] for k in ends] for ends in network.edges.T.tolist())
    return vertices, {"source": sources, "target": targets}


def from_pyg(data: Data, texts: Sequence[str], ids: Sequence[Hashable] | None) -> NetworkParts:
    """See `TextNetwork.from_pyg`; the two directions of an undirected edge become one edge."""
    if data.edge_index is None:
        raise VHEError("the Data has no edge_index; set one of shape (2, m).")
    if data.num_nodes != len(texts):
        raise VHEError(
            f"the Data has {data.num_nodes:,} vertices but {len(texts):,} texts are given."
        )
    edges = data.edge_index.cpu().numpy().T  # (m, 2)
    directed = bool(data.is_directed())
    if not directed:
        edges = edges[edges[:, 0] <= edges[:, 1]]
    y = data.y
    labels = None
    if y is not None and y.ndim == 1 and len(y) == len(texts):
        labels = [label if label >= 0 else None for label in y.tolist()]
    return NetworkParts(
        range(len(texts)) if ids is None else ids, texts, edges, labels, directed=directed
    )


def to_pyg(network: TextNetwork) -> Data:
    """See `TextNetwork.to_pyg`; `label_names` are the labels in the order of the values of `y`."""
    try:
        import torch
        from torch_geometric.data import Data
    except ImportError as error:
        raise VHEError("to_pyg needs torch_geometric; install vhe[baselines].") from error
    edges = (
        network.edges if network.directed else np.vstack([network.links, network.links[:, ::-1]])
    )
    data = Data(edge_index=torch.tensor(edges.T.copy()), num_nodes=len(network))
    data.ids, data.texts = list(network.ids), list(network.texts)
    if network.labels is not None:
        names = sorted(set(network.labels) - {None}, key=lambda label: (str(type(label)), label))
        codes = {None: -1} | {label: code for code, label in enumerate(names)}
        data.y = torch.tensor([codes[label] for label in network.labels])
        data.label_names = names
    return data
