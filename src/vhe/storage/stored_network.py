"""The network of a large model folder, whose ids and texts stay in their file until asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from vhe.data.attributes import checked_weights
from vhe.data.checks import Integers, checked_edges, id_positions
from vhe.data.network import TextNetwork
from vhe.data.readers.parquet import parquet_values, readable_parquet
from vhe.errors import VHEError
from vhe.storage.keys import encode_key


class StoredColumn(Sequence[Any]):
    """A column of a Parquet file; one group of rows at a time is in memory."""

    def __init__(self, file: Any, name: str, where: str, convert: Callable[[str], Any]) -> None:
        self._file, self._name, self._where, self._convert = file, name, where, convert
        about = file.metadata
        sizes = [about.row_group(k).num_rows for k in range(about.num_row_groups)]
        self._starts = np.append(0, np.cumsum(sizes, dtype=np.int64))
        self._group: tuple[int, list[str]] = -1, []

    def __len__(self) -> int:
        return int(self._starts[-1])

    @overload
    def __getitem__(self, place: int) -> Any: ...
    @overload
    def __getitem__(self, place: slice) -> list[Any]: ...
    def __getitem__(self, place: int | slice) -> Any:
        if isinstance(place, slice):
            return [self[k] for k in range(*place.indices(len(self)))]
        place = int(place) + (len(self) if place < 0 else 0)
        if not 0 <= place < len(self):
            raise IndexError(place)
        group = int(np.searchsorted(self._starts, place, side="right")) - 1
        return self._convert(self._values(group)[place - int(self._starts[group])])

    def __iter__(self) -> Iterator[Any]:
        for group in range(len(self._starts) - 1):
            yield from map(self._convert, self._values(group))

    def place(self, value: str) -> int | None:
        """The place of a value as it is stored."""
        import pyarrow as pa
        from pyarrow import compute

        data = value.encode()
        ends = np.array([0, len(data)], dtype=np.int32)
        # from buffers: `pa.scalar` would import pandas, which takes longer than the search
        wanted = pa.StringArray.from_buffers(1, pa.py_buffer(ends), pa.py_buffer(data))[0]
        with readable_parquet(self._where):
            column = self._file.read(columns=[self._name])[self._name]
            place = compute.index(column, wanted).as_py()
        return None if place < 0 else place

    def _values(self, group: int) -> list[str]:
        if self._group[0] != group:
            with readable_parquet(self._where):
                column = self._file.read_row_group(group, columns=[self._name])[self._name]
            self._group = group, parquet_values(column)
        return self._group[1]


class StoredNetwork(TextNetwork):
    """A network of which edges are in memory, but ids, texts and labels are in a Parquet file.

    Only the rows that a query needs are read. All ids and texts, and changed networks, have the
    same values as those of a network in memory.
    """

    def __init__(
        self,
        ids: StoredColumn,
        texts: StoredColumn,
        edges: ArrayLike,
        labels: StoredColumn | None,
        *,
        directed: bool,
        name: str,
        edge_weights: ArrayLike | None = None,
    ) -> None:
        self.ids, self.texts, self.labels = ids, texts, labels  # type: ignore[assignment]
        self.edges: Integers = checked_edges(len(ids), edges)
        self.directed, self.name, self.notes, self.vectors = directed, name, (), None
        self.edge_weights = None
        if edge_weights is not None:
            self.edge_weights = checked_weights(edge_weights, len(self.edges))

    @cached_property
    def _positions(self) -> dict[Hashable, int]:  # type: ignore[override]
        return id_positions(tuple(self.ids))

    def index(self, vertex_id: Hashable) -> int:
        try:
            stored = json.dumps(encode_key(vertex_id))
        except (VHEError, TypeError, ValueError):
            return super().index(vertex_id)
        place = self.ids.place(stored)  # type: ignore[attr-defined]
        return super().index(vertex_id) if place is None else place

    def find(self, word: str) -> Hashable | None:
        ids: Any = self.ids
        for stored in (json.dumps(word), word):  # a string, or a number as it is written
            place = ids.place(stored)
            if place is not None:
                found: Hashable = ids[place]
                return found
        return super().find(word)
