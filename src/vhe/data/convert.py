"""Between a TextNetwork and other libraries' graphs: networkx, pandas, PyTorch Geometric."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vhe.data.checks import edge_indices
from vhe.data.network import TextNetwork
from vhe.errors import VHEError

if TYPE_CHECKING:
    import networkx
    import pandas
    from torch_geometric.data import Data


def from_networkx(graph: networkx.Graph, text: str, label: str | None) -> TextNetwork:
    """See `TextNetwork.from_networkx`."""
    ids = list(graph.nodes)
    for vertex, attributes in graph.nodes(data=True):
        if text not in attributes:
            found = ", ".join(map(repr, attributes)) or "none"
            raise VHEError(
                f"vertex {vertex!r} of the graph has no attribute {text!r} "
                f"(its attributes: {found}); name the one that holds the text with text=."
            )
    ends = list(graph.edges())
    return TextNetwork.from_parts(
        ids,
        [attributes[text] for _, attributes in graph.nodes(data=True)],
        edge_indices(ids, [e[0] for e in ends], [e[1] for e in ends], "edge {}".format),
        None if label is None else [a.get(label) for _, a in graph.nodes(data=True)],
        directed=graph.is_directed(),
        name=graph.name or "network",
    )


def to_networkx(network: TextNetwork) -> networkx.Graph:
    """See `TextNetwork.to_networkx`."""
    import networkx

    graph = networkx.DiGraph() if network.directed else networkx.Graph()
    graph.name = network.name
    labels = network.labels or (None,) * len(network)
    for vertex, text, label in zip(network.ids, network.texts, labels, strict=True):
        graph.add_node(vertex, text=text, **({} if label is None else {"label": label}))
    ids = network.ids
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
) -> TextNetwork:
    """See `TextNetwork.from_pandas`; a missing text is an empty one, a missing label is none."""
    ids = _column(vertices, "vertices", id, missing=False)
    texts = ["" if t is None else t for t in _column(vertices, "vertices", text)]
    sources = _column(edges, "edges", source, missing=False)
    targets = _column(edges, "edges", target, missing=False)
    return TextNetwork.from_parts(
        ids,
        texts,
        edge_indices(ids, sources, targets, "row {} of the edges".format),
        None if label is None else _column(vertices, "vertices", label),
    )


def _column(table: pandas.DataFrame, name: str, column: str, missing: bool = True) -> list[Any]:
    """Return a column as Python values, None where one is missing."""
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


def to_pandas(network: TextNetwork) -> tuple[pandas.DataFrame, pandas.DataFrame]:
    """See `TextNetwork.to_pandas`."""
    import pandas

    columns: dict[str, Sequence[Hashable]] = {"id": network.ids, "text": network.texts}
    if network.labels is not None:
        columns["label"] = network.labels
    vertices = pandas.DataFrame({name: list(values) for name, values in columns.items()})
    sources, targets = ([network.ids[k] for k in ends] for ends in network.edges.T.tolist())
    return vertices, pandas.DataFrame({"source": sources, "target": targets})


def from_pyg(data: Data, texts: Sequence[str], ids: Sequence[Hashable] | None) -> TextNetwork:
    """See `TextNetwork.from_pyg`; both directions of an undirected edge become one line."""
    if data.edge_index is None:
        raise VHEError("the Data has no edge_index; give it one of shape (2, m).")
    if data.num_nodes != len(texts):
        raise VHEError(
            f"the Data has {data.num_nodes:,} vertices but there are {len(texts):,} texts."
        )
    edges = data.edge_index.cpu().numpy().T  # (m, 2)
    directed = bool(data.is_directed())
    if not directed:
        edges = edges[edges[:, 0] <= edges[:, 1]]
    y = data.y
    labels = None
    if y is not None and y.ndim == 1 and len(y) == len(texts):
        labels = [label if label >= 0 else None for label in y.tolist()]
    return TextNetwork.from_parts(
        range(len(texts)) if ids is None else ids, texts, edges, labels, directed=directed
    )


def to_pyg(network: TextNetwork) -> Data:
    """See `TextNetwork.to_pyg`; `label_names` tells what each value of `y` stands for."""
    try:
        import torch
        from torch_geometric.data import Data
    except ImportError as error:
        raise VHEError("to_pyg needs torch_geometric; install it with vhe[baselines].") from error
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
