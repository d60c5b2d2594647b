"""The folder of a model in shards is input: sizes, types and ranges are checked before use."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vhe.errors import VHEError
from vhe.runtime.checks import is_integer
from vhe.scale.ids import arrow_shard, vertex_table
from vhe.scale.shards import Numbers, Sharded, shard

MAX_ROWS = 2**40
SUGGESTION = np.dtype([("row", "<i8"), ("probability", "<f4")])  # row -1: no more


def is_sound(info: Any) -> bool:
    """Whether what model.json contains has the sizes and the type that tables are read with."""
    if not isinstance(info, dict):
        return False
    rows, buckets = info.get("part_rows"), info.get("buckets", 0)
    return (
        isinstance(rows, list)
        and all(is_integer(count) and 0 <= count <= MAX_ROWS for count in rows)
        and 0 < sum(rows) <= MAX_ROWS
        and is_integer(buckets)
        and 0 < buckets <= sum(rows)
        and info.get("id_type") in ("integer", "string")
    )


def damaged(path: Path) -> VHEError:
    return VHEError(f"{path} is damaged: restore a copy or fit the model again")


class CheckedTable(Sharded):
    """A table (n, k) of a given type; what is read of it is in range."""

    def __init__(self, folder: Path, table: str, sizes: Sequence[int], dtype: Any) -> None:
        super().__init__(folder, table, sizes)
        self.sizes, self.dtype = sizes, np.dtype(dtype)
        self.width: int | None = None

    def shard(self, number: int) -> NDArray[Any]:
        opened = number in self._opened
        values = super().shard(number)
        if not opened:
            width = values.shape[1] if values.ndim == 2 else -1
            self.width = width if self.width is None else self.width
            if (
                values.dtype != self.dtype
                or len(values) != self.sizes[number]
                or not 0 < width == self.width
            ):
                raise damaged(shard(self.folder, self.table, number))
        return values

    def take(self, rows: Numbers) -> NDArray[Any]:
        return self._in_range(super().take(rows))

    def part(self, number: int) -> NDArray[Any]:
        """All rows of a shard."""
        return self._in_range(self.shard(number))

    def _in_range(self, values: NDArray[Any]) -> NDArray[Any]:
        if self.dtype.names:
            row, probability = values["row"], values["probability"]
            sound = (
                (row >= -1) & (row < len(self)) & (probability >= 0) & (probability <= 1)
            ).all()
        else:
            sound = np.isfinite(values).all()
        if not sound:
            raise damaged(self.folder / self.table)
        return values


def checked_vertices(folder: Path, part: int, info: dict[str, Any]) -> Any:
    """The columns id and text of a part of the vertices, every value of which is valid."""
    import pyarrow

    table = vertex_table(folder, part)
    types = {"string": pyarrow.string(), "integer": pyarrow.int64()}
    try:
        table.validate(full=True)  # an offset beyond the buffers would end the process
        sound = (
            table.num_rows == info["part_rows"][part]
            and table.schema.field("id").type == types[info["id_type"]]
            and table.schema.field("text").type == types["string"]
        )
    except (KeyError, UnicodeDecodeError, pyarrow.ArrowException):
        sound = False
    if not sound:
        raise damaged(arrow_shard(folder, part))
    return table
