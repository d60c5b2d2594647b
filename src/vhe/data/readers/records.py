"""Vertices and edges as a reader finds them, and the rules that make a network of them.

- duplicate ids: `error` (the default), `first` (later ones are ignored) or `merge` (distinct texts
  are joined, the first label is used);
- edges with an unknown id: `error`, `skip` or `create` (a vertex without text). The default is
  `error` for tables of edges, and `skip` for references and links, which may lead elsewhere.

Both report the number of cases and the first three.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from vhe.data.attributes import stacked_vectors
from vhe.data.checks import unknown_id
from vhe.data.parts import NetworkParts
from vhe.errors import VHEError
from vhe.runtime.messages import counted, shown

OnUnknown = Literal["error", "skip", "create"]
OnDuplicate = Literal["error", "first", "merge"]
EXAMPLES = 3


@dataclass(frozen=True)
class Rules:
    """The choices of a user that every reader obeys; None is the default of the reader.

    Columns, keys, attributes or fields are given by name; `text` may name several, which are
    joined, and `vector` several with a number each.
    """

    id: str | None = None
    text: tuple[str, ...] = ()
    label: str | None = None
    source: str | None = None
    target: str | None = None
    references: str | None = None
    vector: tuple[str, ...] = ()
    weight: str | None = None
    on_unknown: OnUnknown | None = None
    on_duplicate: OnDuplicate = "error"
    name: str | None = None
    text_optional: bool = False

    @property
    def names_columns(self) -> bool:
        """Whether a column of vertices is named."""
        return bool(self.id or self.text or self.label or self.references or self.vector)


DEFAULTS = Rules()


class Records:
    """Vertices and edges in the order of a source.

    Parameters
    ----------
    rules : Rules
    where : callable
        Returns the position of a vertex in the source, `vertices.csv:12`, from the integer that was
        given with it.
    """

    def __init__(self, rules: Rules, where: Callable[[int], str]) -> None:
        self.rules, self.where = rules, where
        self.texts: list[str] = []
        self.labels: list[Hashable | None] = []
        self.notes: list[str] = []
        self._vectors: list[Any] = []
        self._codes: dict[Hashable, int] = {}  # of all ids, of vertices and of ends of edges
        self._vertex = array("q")  # code of each vertex
        self._row: dict[int, int] = {}  # code -> vertex
        self._positions = array("q")  # of each vertex
        self._sources, self._targets, self._edge_positions = array("q"), array("q"), array("q")
        self._weights, self._is_weighted = array("d"), False
        self._batches: list[tuple[int, Callable[[int], str]]] = []  # first edge, where
        self._duplicates: list[str] = []
        self._duplicate_count = 0

    def __len__(self) -> int:
        return len(self.texts)

    def __contains__(self, vertex: Hashable) -> bool:
        return self._codes.get(vertex, -1) in self._row

    @property
    def has_edges(self) -> bool:
        return len(self._sources) > 0

    @property
    def ids(self) -> list[Hashable]:
        names = list(self._codes)
        return [names[code] for code in self._vertex]

    def add(
        self,
        vertex: Hashable,
        text: str,
        label: Hashable | None = None,
        position: int = 0,
        vector: Any | None = None,
    ) -> int:
        """Add a vertex, or treat it as a duplicate; return its index."""
        code = self._codes.setdefault(vertex, len(self._codes))
        row = self._row.setdefault(code, len(self.texts))
        if row == len(self.texts):
            self.texts.append(text)
            self.labels.append(label)
            self._vectors.append(vector)
            self._vertex.append(code)
            self._positions.append(position)
            return row
        if self.rules.on_duplicate == "error":
            raise VHEError(
                f"{self.where(position)}: duplicate id {shown(vertex)} (first at "
                f"{self.where(self._positions[row])}); remove one of them or pass "
                "--on-duplicate first or merge."
            )
        if self.rules.on_duplicate == "merge":
            if text and text not in self.texts[row]:
                self.texts[row] = f"{self.texts[row]}\n{text}".strip()
            if self.labels[row] is None:
                self.labels[row] = label
            if self._vectors[row] is None:
                self._vectors[row] = vector
        self._duplicate_count += 1
        if len(self._duplicates) < EXAMPLES:
            self._duplicates.append(f"{shown(vertex)} at {self.where(position)}")
        return row

    def begin_edges(self, where: Callable[[int], str]) -> None:
        """Set the function that returns the position of the edges added from now on."""
        self._batches.append((len(self._sources), where))

    def link(
        self, source: Hashable, target: Hashable, position: int = 0, weight: float = 1.0
    ) -> None:
        """Add an edge; its ends need not be known yet."""
        for side, end in ((self._sources, source), (self._targets, target)):
            side.append(self._codes.setdefault(end, len(self._codes)))
        self._edge_positions.append(position)
        self._weights.append(weight)
        self._is_weighted |= weight != 1

    def link_rows(
        self,
        sources: Sequence[Hashable],
        targets: Sequence[Hashable],
        weights: Sequence[float] | None = None,
    ) -> None:
        """Add the edges of a table; the position of each is its row."""
        codes = self._codes
        for side, ends in ((self._sources, sources), (self._targets, targets)):
            side.extend([codes.setdefault(end, len(codes)) for end in ends])
        self._edge_positions.extend(range(len(sources)))
        self._weights.extend([1.0] * len(sources) if weights is None else weights)
        self._is_weighted |= weights is not None

    def parts(
        self,
        name: str,
        *,
        on_unknown: OnUnknown = "skip",
        directed: bool = True,
        edges: str = "reference",
        unknown_ids: str = "with unknown ids",
    ) -> NetworkParts:
        """Return the network; `edges` and `unknown_ids` are words of the notes."""
        if not self.texts:
            raise VHEError(f"{name} contains no vertices; a network needs at least one.")
        ids = self.ids
        if self._duplicate_count:
            done = "merged" if self.rules.on_duplicate == "merge" else "ignored"
            self.notes.append(
                f"{counted(self._duplicate_count, 'duplicate id')} {done} "
                f"(first: {', '.join(self._duplicates)})"
            )
        vertices = np.full(len(self._codes), -1, dtype=np.int64)
        vertices[np.array(self._vertex)] = np.arange(len(ids))
        ends = np.stack([np.array(self._sources), np.array(self._targets)], axis=1)
        pairs = vertices[ends.astype(np.int64)]
        weights = np.array(self._weights)
        unknown = np.flatnonzero((pairs < 0).any(axis=1))
        if len(unknown):
            policy = self.rules.on_unknown or on_unknown
            names = list(self._codes)

            def missing(row: int) -> Hashable:
                return names[int(ends[row, 0 if pairs[row, 0] < 0 else 1])]

            if policy == "error":
                row = int(unknown[0])
                raise VHEError(
                    f"{self._edge_where(row)}: unknown vertex id "
                    f"{unknown_id(missing(row), ids)}; correct it or pass --on-unknown skip or "
                    "create."
                )
            examples = {shown(missing(int(r))): int(r) for r in unknown[:1000][::-1]}
            first = sorted(examples, key=lambda i: examples[i])[:EXAMPLES]
            listed = ", ".join(f"{i} at {self._edge_where(examples[i])}" for i in first)
            count = counted(len(unknown), edges)
            if policy == "skip":
                every = "all " if len(unknown) == len(pairs) else ""
                self.notes.append(f"{every}{count} {unknown_ids} skipped (first: {listed})")
                pairs, weights = np.delete(pairs, unknown, axis=0), np.delete(weights, unknown)
            else:
                new = list(dict.fromkeys(ends[pairs < 0].tolist()))  # in the order of the edges
                vertices[new] = len(ids) + np.arange(len(new))
                ids += [names[code] for code in new]
                self.texts += [""] * len(new)
                self.labels += [None] * len(new)
                self._vectors += [None] * len(new)
                pairs = vertices[ends]
                made = counted(len(new), "vertex without text", "vertices without text")
                self.notes.append(f"{made} created for {count} {unknown_ids} (first: {listed})")
        labels = self.labels if any(label is not None for label in self.labels) else None
        vectors = None
        if any(vector is not None for vector in self._vectors):
            vectors = stacked_vectors(self._vectors, lambda row: self.where(self._positions[row]))
        return NetworkParts(
            ids,
            self.texts,
            pairs.reshape(-1, 2),
            labels,
            directed=directed,
            name=self.rules.name or name,
            notes=self.notes,
            vectors=vectors,
            edge_weights=weights if self._is_weighted else None,
        )

    def _edge_where(self, row: int) -> str:
        where = next((w for first, w in reversed(self._batches) if first <= row), self.where)
        return where(self._edge_positions[row])


def joined(*texts: str | None) -> str:
    """Return the texts that are not empty, one per line."""
    return "\n".join(text.strip() for text in texts if text and text.strip())


def common_labels(tags: Sequence[Sequence[str]]) -> list[str | None]:
    """Return one label per vertex: the one of its tags that most vertices have, but not all.

    >>> common_labels([["cats", "pets"], ["dogs", "pets"], []])
    ['pets', 'pets', None]
    >>> common_labels([["cats", "pets"], ["dogs", "pets"], ["pets"]])
    ['cats', 'dogs', 'pets']
    """
    counts = Counter(tag for own in tags for tag in dict.fromkeys(own))
    order = {tag: count % len(tags) for tag, count in counts.items()}  # 0: of all vertices
    return [max(own, key=lambda tag: order[tag]) if own else None for own in tags]


def split_tags(value: str) -> list[str]:
    """Return the tags of a list separated by semicolons, or else by commas.

    >>> split_tags("neural networks; text, long"), split_tags("a, b")
    (['neural networks', 'text, long'], ['a', 'b'])
    """
    separator = ";" if ";" in value else ","
    return [tag for part in value.split(separator) if (tag := " ".join(part.split()))]


_INTEGRAL = re.compile(r"([+-]?\d+)(?:\.0*)?")


def integral_ids(column: Sequence[Hashable]) -> list[Hashable] | None:
    """Return a column of numeric ids without fractions of zero; None unless all are integral.

    >>> integral_ids(["1.0", "2"]), integral_ids([1.0, 2])
    (['1', '2'], [1, 2])
    >>> integral_ids(["1.0", "v2"]) is None
    True
    """
    ids: list[Hashable] = []
    for value in column:
        if isinstance(value, str) and (match := _INTEGRAL.fullmatch(value)):
            ids.append(match[1])
        elif isinstance(value, float) and value.is_integer():
            ids.append(int(value))
        elif type(value) is int:
            ids.append(value)
        else:
            return None
    return ids
