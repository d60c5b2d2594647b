"""TextNetwork: vertices with texts, and the edges between them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence, Sized
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from vhe.data import convert, splits
from vhe.data.attributes import Vectors, Weights, checked_vectors, checked_weights
from vhe.data.checks import (
    Integers,
    checked_edges,
    checked_ids,
    checked_labels,
    checked_texts,
    edge_indices,
    id_positions,
    read_only,
    unknown_id,
)
from vhe.data.parts import NetworkParts
from vhe.data.readers.cane import read_cane_folder
from vhe.data.readers.graphml import read_graphml
from vhe.data.readers.network_tables import read_tables
from vhe.errors import VHEError
from vhe.runtime.arrays import distinct
from vhe.runtime.messages import counted, shown

__all__ = ["TextNetwork"]


class TextNetwork:
    """An immutable network whose vertices carry text.

    Parameters
    ----------
    ids : sequence of hashable, n
        Distinct identifiers of the vertices.
    texts : sequence of str, n
    edges : (m, 2) integers
        Vertex indices (positions in `ids`), one row per edge as given, with loops and duplicates.
    labels : sequence of hashable or None, n, optional
        None (or NaN) where a vertex has no label.
    directed : bool
        Whether edges are directed in conversions such as `to_networkx`; training uses `links`.
    name : str
    notes : sequence of str
        Remarks of the reader on what it repaired or ignored.
    vectors : (n, k) array, optional
        Features of the vertices, such as embeddings of their texts; a row of zeros for a vertex
        without any.
    edge_weights : (m,) array, optional
        Positive weights of `edges`.

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
        vectors: ArrayLike | None = None,
        edge_weights: ArrayLike | None = None,
    ) -> None:
        self.ids: tuple[Hashable, ...] = checked_ids(ids)
        if not self.ids:
            raise VHEError(f"{name} has no vertices; a network needs at least one.")
        self._positions = id_positions(self.ids)
        self.texts: tuple[str, ...] = checked_texts(self.ids, texts)
        self.edges: Integers = checked_edges(len(self.ids), edges)
        self.labels: tuple[Hashable | None, ...] | None = checked_labels(self.ids, labels)
        self.directed = bool(directed)
        self.name = str(name)
        self.notes: tuple[str, ...] = tuple(notes)
        self.vectors: Vectors | None = None
        if vectors is not None:
            self.vectors = checked_vectors(
                vectors, len(self.ids), lambda k: f"row {k} ({shown(self.ids[k])})"
            )
        self.edge_weights: Weights | None = None
        if edge_weights is not None:
            self.edge_weights = checked_weights(edge_weights, len(self.edges))

    @classmethod
    def from_parts(cls, parts: NetworkParts, *, count_oddities: bool = True) -> TextNetwork:
        """Make a network from the result of a reader.

        With `count_oddities`, notes report the number of duplicate edges, loops, empty texts and
        vertices without vector.
        """
        network = cls(**vars(parts))
        if count_oddities:
            loops = network.loops
            duplicates = len(network.edges) - loops - len(network.links)
            empty = sum(not text.strip() for text in network.texts)
            bare = 0 if network.vectors is None else int((~network.vectors.any(axis=1)).sum())
            edges = f"{counted(duplicates, 'duplicate edge')} (in either direction)"
            weighted = network.edge_weights is not None
            notes = {
                f"{edges} {'added by weight' if weighted else 'ignored in training'}": duplicates,
                f"{counted(loops, 'self-loop')} ignored in training": loops,
                f"{counted(empty, 'vertex', 'vertices')} without text": empty,
                f"{counted(bare, 'vertex', 'vertices')} without vector": bare,
            }
            network.notes += tuple(note for note, count in notes.items() if count)
        return network

    def __len__(self) -> int:
        return len(self.ids)

    def __contains__(self, vertex_id: Hashable) -> bool:
        return vertex_id in self._positions

    def __repr__(self) -> str:
        size = f"{counted(len(self), 'vertex', 'vertices')}, {counted(len(self.links), 'link')}"
        if self.labels is not None:
            size += f", {counted(len(set(self.labels) - {None}), 'label')}"
        if self.vectors is not None:
            size += f", {self.vectors.shape[1]}-dimensional vectors"
        return f"TextNetwork({self.name!r}: {size})"

    @cached_property
    def links(self) -> Integers:
        """Distinct undirected edges without loops, i < j, sorted: (k, 2); used in training."""
        keys = distinct(self._keys(self.edges)[self.edges[:, 0] != self.edges[:, 1]])
        return read_only(np.stack(np.divmod(keys, len(self)), axis=1))

    @cached_property
    def link_weights(self) -> Weights | None:
        """Weight of each of `links`, the sum over its edges in either direction: (k,)."""
        if self.edge_weights is None:
            return None
        proper = self.edges[:, 0] != self.edges[:, 1]
        link = np.searchsorted(self._keys(self.links), self._keys(self.edges[proper]))
        weights = np.zeros(len(self.links))
        np.add.at(weights, link, self.edge_weights[proper])
        weights.setflags(write=False)
        return weights

    def relative_weights(self, links: Integers) -> Weights | None:
        """Return the weights of pairs, divided by the mean of all links: (m,).

        A pair that is not linked has the weight 1. None if edges have no weights.
        """
        if self.link_weights is None:
            return None
        known, wanted = self._keys(self.links), self._keys(links)
        place = np.searchsorted(known, wanted).clip(max=len(known) - 1)
        weights = self.link_weights[place] / self.link_weights.mean()
        return np.where(known[place] == wanted, weights, 1.0)

    def _keys(self, pairs: Integers) -> Integers:
        """One number per pair, the same in both directions: (m,)."""
        keys: Integers = pairs.min(axis=1) * len(self) + pairs.max(axis=1)
        return keys

    @cached_property
    def degrees(self) -> Integers:
        """Number of links of each vertex: (n,)."""
        return read_only(np.bincount(self.links.ravel(), minlength=len(self)).astype(np.int64))

    @property
    def loops(self) -> int:
        """Number of edges from a vertex to itself."""
        return int((self.edges[:, 0] == self.edges[:, 1]).sum())

    def index(self, vertex_id: Hashable) -> int:
        """Return the index of the vertex with the id `vertex_id`."""
        try:
            return self._positions[vertex_id]
        except (KeyError, TypeError):
            name = unknown_id(vertex_id, self.ids)
            raise VHEError(f"{self.name} has no vertex {name}.") from None

    def find(self, word: str) -> Hashable | None:
        """Return the id that prints as `word`; a string takes precedence over other types."""
        if word in self:
            return word
        return next((i for i in self.ids if str(i) == word), None)

    def indices(self, ids: Iterable[Hashable]) -> Integers:
        """Return the indices of the vertices with these ids: (len(ids),)."""
        return np.fromiter(map(self.index, ids), dtype=np.int64)

    def with_edges(self, edges: ArrayLike, **changes: Any) -> TextNetwork:
        """Return the same vertices with other edges; `changes` are arguments of the constructor.

        The new edges have no weights unless `edge_weights` are given.
        """
        same: dict[str, Any] = {"labels": self.labels, "directed": self.directed}
        same |= {"name": self.name, "vectors": self.vectors}
        return TextNetwork(self.ids, self.texts, edges, **{**same, **changes})

    def subnetwork(self, vertices: ArrayLike) -> TextNetwork:
        """Return the subnetwork induced by `vertices` (distinct indices), in their order."""
        chosen = np.asarray(vertices)
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
            raise VHEError("subnetwork takes a one-dimensional array of vertex indices.")
        if chosen.size and (chosen.min() < 0 or chosen.max() >= len(self)):
            raise VHEError(f"subnetwork takes vertex indices from 0 to {len(self) - 1}.")
        position = np.full(len(self), -1, dtype=np.int64)
        position[chosen] = np.arange(len(chosen))
        if (position >= 0).sum() != len(chosen):
            raise VHEError("subnetwork takes distinct vertex indices.")
        ends = position[self.edges]
        inside = (ends >= 0).all(axis=1)
        return TextNetwork(
            [self.ids[k] for k in chosen],
            [self.texts[k] for k in chosen],
            ends[inside],
            None if self.labels is None else [self.labels[k] for k in chosen],
            directed=self.directed,
            name=self.name,
            vectors=None if self.vectors is None else self.vectors[chosen],
            edge_weights=None if self.edge_weights is None else self.edge_weights[inside],
        )

    split_edges, split_vertices = splits.split_edges, splits.split_vertices
    to_networkx, to_pandas, to_pyg = convert.to_networkx, convert.to_pandas, convert.to_pyg
    from_networkx = classmethod(convert.from_networkx)
    from_pandas = classmethod(convert.from_pandas)
    from_pyg = classmethod(convert.from_pyg)

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
        """Make a network from a mapping of ids to texts and pairs of ids.

        Parameters
        ----------
        texts : mapping of id to text
        edges : iterable of pairs of ids
        labels : mapping of id to label, optional
        directed, name
            As in `TextNetwork`.

        Examples
        --------
        >>> TextNetwork.from_edges({"a": "red fox", "b": "brown fox"}, [("a", "b")]).edges.tolist()
        [[0, 1]]
        """
        ids = list(texts)
        pairs = list(edges)
        for k, pair in enumerate(pairs):
            if isinstance(pair, str) or not isinstance(pair, Sized) or len(pair) != 2:
                raise VHEError(f"edge {k} is {shown(pair)}; give a pair of ids.")
        unknown = None if labels is None else set(labels) - set(ids)
        if unknown:
            raise VHEError(f"labels: unknown vertex id {unknown_id(min(unknown, key=str), ids)}.")
        parts = NetworkParts(
            ids,
            list(texts.values()),
            edge_indices(ids, [p[0] for p in pairs], [p[1] for p in pairs], "edge {}".format),
            None if labels is None else [labels.get(i) for i in ids],
            directed=directed,
            name=name,
        )
        return cls.from_parts(parts)

    @classmethod
    def from_files(
        cls, vertices: str | PathLike[str], edges: str | PathLike[str] | None = None
    ) -> TextNetwork:
        """Read a table of vertices and a table of edges (CSV, TSV, JSONL, Parquet), or GraphML.

        The columns are found by their case-insensitive names, the first of each line that exists:

        - id: id, vertex, node, name, key
        - text: text, abstract, description, body, content, title
        - label (optional): label, class, group, category, subject, section
        - source: source, from, src, head, u, citing
        - target: target, to, dst, tail, v, cited
        - vector (optional; the text is then optional, too): vector
        - weight (optional): weight
        """
        if Path(vertices).suffix.lower() == ".graphml":
            if edges is not None:
                raise VHEError(f"{vertices} contains the edges; omit {edges}.")
            return cls.from_parts(read_graphml(Path(vertices)))
        if edges is None:
            raise VHEError(f"{vertices} contains only vertices; give a file of edges, too.")
        return cls.from_parts(read_tables(vertices, edges))

    @classmethod
    def from_folder(cls, path: str | PathLike[str]) -> TextNetwork:
        """Read a folder in CANE's format: data.txt, graph.txt and, optionally, group.txt."""
        return cls.from_parts(read_cane_folder(path))
