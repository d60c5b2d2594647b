"""The folder of a model that was fitted by several workers: tables in shards, nothing read whole.

model.json        settings, sizes of the shards, link posterior, seconds of each phase
vertices/         id and the beginning of the text (Arrow), in the order of the part files
index/            hashes of ids and their rows, sorted
embedding/, std/  posterior means (n, d) and standard deviations (n, 1)
suggestions/      the likeliest missing links of each vertex, and their probabilities
texts/, degree/   centred text codes (n, d) of unit length and numbers of links (n, 1), which `add`
                  reads
vocabulary.json, words.npy, idf.npy, codes-centre.npy
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vhe.errors import VHEError
from vhe.predict.predictor import Suggestion
from vhe.runtime.messages import shown
from vhe.scale.checked import SUGGESTION, CheckedTable, checked_vertices, damaged, is_sound
from vhe.scale.ids import find_rows, hashed
from vhe.scale.shards import Numbers, Sharded, read_array, shard, write_array
from vhe.scale.words import directions

MODEL_FILE = "model.json"


def write_part(part: int, work: Path, out: Path, sizes: list[int]) -> None:
    """Write the tables of a part of the vertices, in their order."""
    positions = np.asarray(read_array(shard(work, "positions", part)))
    write_array(
        shard(out, "embedding", part), Sharded(work, "mean-embedding", sizes).take(positions)
    )
    variance = Sharded(work, "variance", sizes).take(positions)
    write_array(shard(out, "std", part), np.sqrt(variance)[:, None].astype(np.float32))
    found = Sharded(work, "suggestions", sizes).take(positions)
    known = found["row"] >= 0
    found["row"][known] = Sharded(work, "rows", sizes).take(found["row"][known])
    write_array(shard(out, "suggestions", part), found)
    centre = np.asarray(read_array(out / "codes-centre.npy"))
    codes = read_array(shard(work, "codes", part))
    write_array(shard(out, "texts", part), directions(codes, centre))
    degree = Sharded(work, "degree", sizes).take(positions)
    write_array(shard(out, "degree", part), degree[:, None].astype(np.int32))


class ShardedModel:
    """A model in shards, opened without reading its tables.

    Attributes
    ----------
    info_ : dict, what model.json contains
    texts, degree : tables in shards
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        try:
            self.info_ = json.loads((self.folder / MODEL_FILE).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise VHEError(
                f"{self.folder}: no {MODEL_FILE}: not the folder of a finished fit"
            ) from None
        except (OSError, ValueError, RecursionError) as error:
            raise VHEError(f"{self.folder / MODEL_FILE} cannot be read: {error}") from None
        if not is_sound(self.info_):
            raise damaged(self.folder / MODEL_FILE)
        types = {"embedding": np.float32, "std": np.float32, "suggestions": SUGGESTION}
        types |= {"texts": np.float32, "degree": np.int32}
        self._embedding, self._std, self._suggestions, self.texts, self.degree = (
            CheckedTable(self.folder, table, self.info_["part_rows"], dtype)
            for table, dtype in types.items()
        )
        self._parts: dict[int, Any] = {}

    def __len__(self) -> int:
        return len(self._embedding)

    def __repr__(self) -> str:
        return f"ShardedModel({str(self.folder)!r}: {len(self):,} vertices)"

    def as_ids(self, ids: Iterable[Hashable]) -> list[Any]:
        """Ids in the type of those of this model."""
        kind = self.info_["id_type"]
        try:
            return [int(i) if kind == "integer" else str(i) for i in ids]  # type: ignore[call-overload]
        except (TypeError, ValueError):
            raise VHEError(f"{self.folder}: the ids of this model are integers") from None

    def find(self, ids: Iterable[Hashable]) -> Numbers:
        """The row numbers of vertices, (k,); -1 of unknown ids."""
        entries = hashed(self.as_ids(ids), self.info_["id_type"])
        found = find_rows(self.folder, self.info_["buckets"], entries)
        if (found >= len(self)).any():
            raise damaged(self.folder / "index")
        return found

    def rows(self, ids: Iterable[Hashable]) -> Numbers:
        """The row numbers of vertices: (k,)."""
        asked = list(ids)
        found = self.find(asked)
        if (found < 0).any():
            name = shown(asked[int(np.flatnonzero(found < 0)[0])])
            raise VHEError(f"{self.folder} has no vertex {name}")
        return found

    def posterior(self, rows: Numbers) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Means (k, d) and standard deviations (k, 1) of vertices given by their row numbers."""
        return self._embedding.take(rows), self._std.take(rows)

    @property
    def suggestions(self) -> int:
        """The number of suggestions per vertex."""
        return int(self._suggestions.shard(0).shape[1])

    def ids(self, rows: Numbers) -> list[Any]:
        """The ids of vertices given by their row numbers."""
        return [table["id"][row].as_py() for table, row in self._vertices(rows)]

    def embed(self, ids: Iterable[Hashable], *, return_std: bool = False) -> Any:
        """The embedding of some vertices, (k, d); with ``return_std`` also its standard deviation,
        (k, 1)."""
        mean, std = self.posterior(self.rows(ids))
        return (mean, std) if return_std else mean

    def shards(self) -> Iterable[tuple[list[Any], NDArray[np.float32], NDArray[np.float32]]]:
        """Ids, embeddings and standard deviations of all vertices, one part after the other."""
        for part in range(len(self.info_["part_rows"])):
            ids = self._vertex_table(part)["id"].to_pylist()
            yield ids, self._embedding.part(part), self._std.part(part)

    def suggest(self, vertex_id: Hashable, k: int = 10) -> list[Suggestion]:
        """The likeliest links that a vertex does not have, the likeliest first.

        At most as many as the fit computed.
        """
        found = self._suggestions.take(self.rows([vertex_id]))[0][:k]
        found = found[found["row"] >= 0]
        return [
            Suggestion(table["id"][row].as_py(), float(probability), table["text"][row].as_py())
            for (table, row), probability in zip(
                self._vertices(found["row"]), found["probability"], strict=True
            )
        ]

    def suggest_parts(self, k: int = 10) -> Iterable[dict[str, NDArray[Any]]]:
        """source, target, probability of the suggestions of all vertices, part after part."""
        for part in range(len(self.info_["part_rows"])):
            found = self._suggestions.part(part)[:, :k]
            source, rank = np.nonzero(found["row"] >= 0)
            chosen = found[source, rank]
            ids = np.array(self._vertex_table(part)["id"].to_pylist(), dtype=object)
            yield {
                "source": ids[source],
                "target": self._ids(chosen["row"]),
                "probability": chosen["probability"],
            }

    def _ids(self, rows: Numbers) -> NDArray[Any]:
        """The ids of many vertices; each part is read once."""
        ids = np.empty(len(rows), dtype=object)
        parts = np.searchsorted(self._embedding.starts, rows, side="right") - 1
        for part in np.unique(parts).tolist():
            own = np.flatnonzero(parts == part)
            column = self._vertex_table(part)["id"]
            ids[own] = column.take(rows[own] - self._embedding.starts[part]).to_pylist()
        return ids

    def _vertices(self, rows: Numbers) -> Iterable[tuple[Any, int]]:
        """The table that each row is in, and its place there."""
        starts = self._embedding.starts
        for row in rows.tolist():
            part = int(np.searchsorted(starts, row, side="right")) - 1
            yield self._vertex_table(part), row - int(starts[part])

    def _vertex_table(self, part: int) -> Any:
        if part not in self._parts:
            self._parts[part] = checked_vertices(self.folder, part, self.info_)
        return self._parts[part]
