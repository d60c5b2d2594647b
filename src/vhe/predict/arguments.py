"""Arguments of the methods of fitted models: pairs of ids, new vertices, numbers of results."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from vhe.data.checks import id_positions
from vhe.data.readers.synonyms import SYNONYMS
from vhe.errors import VHEError, VHETypeError
from vhe.runtime.checks import is_integer
from vhe.runtime.messages import listed, shown

if TYPE_CHECKING:
    import pandas

Pair = tuple[Hashable, Hashable]
Pairs = Union[Iterable[Pair], "pandas.DataFrame"]
Vertices = Union[Mapping[Hashable, str], Iterable[tuple[Hashable, str]], "pandas.DataFrame"]


def columns(pairs: Pairs) -> tuple[list[Hashable], list[Hashable]]:
    """The sources and the targets of pairs of ids.

    They are given as a list or array of pairs, or as a table with the columns ``source`` and
    ``target`` or their synonyms.
    """
    if hasattr(pairs, "columns"):
        table: Any = pairs
        source, target = (_column(table, "links", end) for end in ("source", "target"))
        return source.tolist(), target.tolist()
    try:
        return _columns(pairs)
    except (TypeError, ValueError):
        raise VHETypeError(
            "pairs must be a list, array or table of pairs of ids, such as [('a', 'b')], "
            f"not {shown(pairs)}"
        ) from None


def _column(table: Any, what: str, meaning: str) -> Any:
    """The column of a table that has a meaning or one of its synonyms as its name."""
    from vhe.data.readers.columns import normalised

    names = {normalised(str(name)): name for name in table.columns}
    for synonym in SYNONYMS[meaning]:
        if (name := names.get(normalised(synonym))) is not None:
            return table[name]
    raise VHEError(
        f"the table of {what} has no column {meaning!r}: rename one of {listed(table.columns)}"
    )


def _columns(pairs: Iterable[Any]) -> tuple[list[Any], list[Any]]:
    """Both columns of rows of two values; TypeError or ValueError for anything else."""
    rows = pairs.tolist() if isinstance(pairs, np.ndarray) else list(pairs)
    if any(isinstance(row, str) for row in rows):
        raise TypeError
    return [a for a, _ in rows], [b for _, b in rows]


def new_vertices(
    vertices: Vertices,
) -> tuple[dict[Hashable, str], dict[Hashable, Hashable | None] | None]:
    """The texts of new vertices, and the labels where a table has them, by id."""
    labels = None
    if hasattr(vertices, "columns"):
        table: Any = vertices
        ids, texts = (_column(table, "vertices", name).tolist() for name in ("id", "text"))
        if "label" in table.columns:
            labels = dict(zip(ids, table["label"].tolist(), strict=True))
    elif isinstance(vertices, Mapping):
        ids, texts = list(vertices), list(vertices.values())
    else:
        try:
            ids, texts = _columns(vertices)
        except (TypeError, ValueError):
            raise VHETypeError(
                "texts must be a dict of ids and texts, a list of pairs (id, text) or a table with "
                f"the columns id and text, not {shown(vertices)}"
            ) from None
    id_positions(ids)  # raises unless ids are hashable and distinct
    return dict(zip(ids, texts, strict=True)), labels


def text_list(texts: Iterable[str]) -> list[str]:
    """Texts as a list, after checking that all are strings."""
    found = list(texts) if isinstance(texts, Iterable) and not isinstance(texts, str) else [None]
    if not all(isinstance(text, str) for text in found):
        raise VHETypeError(f"texts must be a list of strings, not {shown(texts)}")
    return found  # type: ignore[return-value]


def checked_k(k: object) -> int:
    """A number of results that is an integer of at least 0."""
    if not (is_integer(k) and k >= 0):  # type: ignore[operator]
        error = VHEError if is_integer(k) else VHETypeError
        raise error(f"k is {k!r}, but must be an integer of at least 0")
    return int(k)  # type: ignore[call-overload, no-any-return]
