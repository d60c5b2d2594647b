"""TextNetwork: vertices that carry text, and the edges between them; everything starts here."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from vhe.data.checks import (
    Integers,
    checked_edges,
    checked_labels,
    checked_texts,
    counted,
    edge_indices,
    frozen,
    id_positions,
    plain,
    unknown,
)
from vhe.errors import VHEError

if TYPE_CHECKING:
    import networkx
    import pandas
    from torch_geometric.data import Data

    from vhe.data.splits import LinkTest, UnseenTest


class TextNetwork:
    """A network whose vertices carry text; it is never changed once it is made.

    Parameters
    ----------
    ids : sequence of hashable, n
        The vertices' own names, each one once.
    texts : sequence of str, n
    edges : (m, 2) integers
        Vertex numbers (places in `ids`), a row a line as it was given: loops and repeats are kept.
    labels : sequence of hashable or None, n, optional
        None where a vertex has no label.
    directed : bool
        Whether an edge has a direction for `to_networkx` and the like; training uses `links`.
    name : str
    notes : sequence of str
        What was mended while reading, a sentence each.

    Examples
    --------
    >>> net = TextNetwork(["a", "b", "c"], ["red fox", "brown fox", ""], [[0, 1], [1, 0], [2, 2]])
    >>> net
    TextNetwork('network': 3 vertices, 1 link)
    >>> net.links.tolist(), net.degrees.tolist()
    ([[0, 1]], [1, 1, 0])
    """

    def __init__(
        self,
        ids: Sequence[Hashable],
        texts: Sequence[str],
        edges: ArrayLike,
        labels: Sequence[Hashable | None] | None = None,
        *,
        directed: bool = False,
        name: str = "network",
        notes: Sequence[str] = (),
    ) -> None:
        self.ids: tuple[Hashable, ...] = tuple(map(plain, ids))
        if not self.ids:
            raise VHEError(f"{name} has no vertices; a network needs at least one.")
        self._positions = id_positions(self.ids)
        self.texts: tuple[str, ...] = checked_texts(self.ids, texts)
        self.edges: Integers = checked_edges(len(self.ids), edges)
        self.labels: tuple[Hashable | None, ...] | None = checked_labels(self.ids, labels)
        self.directed = bool(directed)
        self.name = str(name)
        self.notes: tuple[str, ...] = tuple(notes)

    @classmethod
    def from_parts(
        cls,
        ids: Sequence[Hashable],
        texts: Sequence[str],
        edges: ArrayLike,
        labels: Sequence[Hashable | None] | None = None,
        *,
        directed: bool = False,
        name: str = "network",
        notes: Sequence[str] = (),
    ) -> TextNetwork:
        """Make a network from somebody's data: as the constructor, and `notes` count its oddities.

        Loops, repeated edges and empty texts are allowed everywhere; who reads a network from
        outside wants to hear of them once.
        """
        network = cls(ids, texts, edges, labels, directed=directed, name=name, notes=notes)
        loops = network.loops
        repeated = len(network.edges) - loops - len(network.links)
        empty = sum(not text.strip() for text in network.texts)
        said = [
            f"{counted(repeated, 'repeated edge line')} (in either direction) ignored in training",
            f"{counted(loops, 'self loop')} ignored in training",
            f"{counted(empty, 'vertex', 'vertices')} without text",
        ]
        counts = (repeated, loops, empty)
        network.notes += tuple(s for s, count in zip(said, counts, strict=True) if count)
        return network

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        size = f"{counted(len(self), 'vertex', 'vertices')}, {counted(len(self.links), 'link')}"
        if self.labels is not None:
            size += f", {counted(len(set(self.labels) - {None}), 'label')}"
        return f"TextNetwork({self.name!r}: {size})"

    @cached_property
    def links(self) -> Integers:
        """Distinct undirected edges without loops, i < j, sorted: (k, 2). What is trained on."""
        low, high = self.edges.min(axis=1), self.edges.max(axis=1)
        keys = np.unique((low * len(self) + high)[low != high])
        return frozen(np.stack(np.divmod(keys, len(self)), axis=1))

    @cached_property
    def degrees(self) -> Integers:
        """Number of links of each vertex: (n,)."""
        return frozen(np.bincount(self.links.ravel(), minlength=len(self)).astype(np.int64))

    @property
    def loops(self) -> int:
        """Number of edge lines from a vertex to itself."""
        return int((self.edges[:, 0] == self.edges[:, 1]).sum())

    def index(self, vertex_id: Hashable) -> int:
        """Return the number of the vertex called `vertex_id`."""
        try:
            return self._positions[vertex_id]
        except (KeyError, TypeError):
            raise VHEError(f"{self.name} has no vertex {unknown(vertex_id, self.ids)}.") from None

    def indices(self, ids: Iterable[Hashable]) -> Integers:
        """Return the numbers of the vertices called `ids`: (len(ids),)."""
        wanted = list(ids)
        try:
            return np.array([self._positions[i] for i in wanted], dtype=np.int64)
        except (KeyError, TypeError):
            return np.array([self.index(i) for i in wanted], dtype=np.int64)

    def with_edges(self, edges: ArrayLike, **changes: Any) -> TextNetwork:
        """Return the same vertices with other edges; `changes` go to the constructor."""
        kept = {"labels": self.labels, "directed": self.directed, "name": self.name}
        return TextNetwork(self.ids, self.texts, edges, **{**kept, **changes})

    def subnetwork(self, vertices: ArrayLike) -> TextNetwork:
        """Return the network among `vertices` (numbers, each once), in their order."""
        chosen = np.asarray(vertices)
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
            raise VHEError("subnetwork takes a one-dimensional array of vertex numbers.")
        if chosen.size and (chosen.min() < 0 or chosen.max() >= len(self)):
            raise VHEError(f"subnetwork takes vertex numbers from 0 to {len(self) - 1}.")
        place = np.full(len(self), -1, dtype=np.int64)
        place[chosen] = np.arange(len(chosen))
        if (place >= 0).sum() != len(chosen):
            raise VHEError("subnetwork takes each vertex number once.")
        inside = place[self.edges]
        return TextNetwork(
            [self.ids[k] for k in chosen],
            [self.texts[k] for k in chosen],
            inside[(inside >= 0).all(axis=1)],
            None if self.labels is None else [self.labels[k] for k in chosen],
            directed=self.directed,
            name=self.name,
        )

    def split_edges(
        self, ratio: float, seed: int = 0, protocol: Literal["lines", "clean"] = "clean"
    ) -> tuple[TextNetwork, LinkTest]:
        """Keep the share `ratio` of the edges for training; the others are the test."""
        from vhe.data import splits as split

        return split.split_edges(self, ratio, seed, protocol)

    def split_vertices(self, ratio: float, seed: int = 0) -> tuple[TextNetwork, UnseenTest]:
        """Keep the share `ratio` of the vertices for training; the others are never seen there."""
        from vhe.data import splits as split

        return split.split_vertices(self, ratio, seed)

    @classmethod
    def from_edges(
        cls,
        texts: Mapping[Hashable, str],
        edges: Iterable[tuple[Hashable, Hashable]],
        labels: Mapping[Hashable, Hashable | None] | None = None,
        *,
        directed: bool = False,
        name: str = "network",
    ) -> TextNetwork:
        """Make a network from a text for each id and pairs of ids.

        >>> TextNetwork.from_edges({"a": "red fox", "b": "brown fox"}, [("a", "b")]).edges.tolist()
        [[0, 1]]
        """
        ids = list(texts)
        pairs = list(edges)
        for k, pair in enumerate(pairs):
            if isinstance(pair, str) or len(pair) != 2:
                raise VHEError(f"edge {k} is {pair!r}; give a pair of ids.")
        unlabelled = None if labels is None else set(labels) - set(ids)
        if unlabelled:
            raise VHEError(f"a label is given for {unknown(min(unlabelled, key=str), ids)}.")
        return cls.from_parts(
            ids,
            list(texts.values()),
            edge_indices(ids, [p[0] for p in pairs], [p[1] for p in pairs], "edge {}".format),
            None if labels is None else [labels.get(i) for i in ids],
            directed=directed,
            name=name,
        )

    @classmethod
    def from_networkx(
        cls, graph: networkx.Graph, text: str = "text", label: str | None = None
    ) -> TextNetwork:
        """Make a network from a networkx graph; `text` and `label` name vertex attributes."""
        from vhe.data import convert

        return convert.from_networkx(graph, text, label)

    def to_networkx(self) -> networkx.Graph:
        """Return a Graph (a DiGraph if directed) with `text` and `label` at the vertices."""
        from vhe.data import convert

        return convert.to_networkx(self)

    @classmethod
    def from_pandas(
        cls,
        vertices: pandas.DataFrame,
        edges: pandas.DataFrame,
        *,
        id: str = "id",
        text: str = "text",
        label: str | None = None,
        source: str = "source",
        target: str = "target",
    ) -> TextNetwork:
        """Make a network from a table of vertices and one of edges, by the columns named."""
        from vhe.data import convert

        return convert.from_pandas(vertices, edges, id, text, label, source, target)

    def to_pandas(self) -> tuple[pandas.DataFrame, pandas.DataFrame]:
        """Return the vertices (id, text and label if there are labels) and the edges."""
        from vhe.data import convert

        return convert.to_pandas(self)

    @classmethod
    def from_pyg(
        cls, data: Data, texts: Sequence[str], ids: Sequence[Hashable] | None = None
    ) -> TextNetwork:
        """Make a network from PyTorch Geometric's `Data`; labels are its `y`, below 0 for none."""
        from vhe.data import convert

        return convert.from_pyg(data, texts, ids)

    def to_pyg(self) -> Data:
        """Return PyTorch Geometric's `Data` with edge_index, y (-1 for none), ids and texts."""
        from vhe.data import convert

        return convert.to_pyg(self)

    @classmethod
    def from_files(
        cls, vertices: str | PathLike[str], edges: str | PathLike[str] | None = None
    ) -> TextNetwork:
        """Read a file of vertices and one of edges (CSV, TSV, JSONL, Parquet), or one GraphML."""
        from vhe.data.readers import files as formats

        return formats.read_files(vertices, edges)

    @classmethod
    def from_folder(cls, path: str | PathLike[str]) -> TextNetwork:
        """Read a folder in CANE's format: data.txt, graph.txt and, where there, group.txt."""
        from vhe.data.readers import files as formats

        return formats.read_folder(path)
