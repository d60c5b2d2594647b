"""What the parts of a network must be: each check says in one sentence what is wrong, and where."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import islice
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vhe.errors import VHEError

Integers = NDArray[np.int64]
LONG_ID, MOST_COMPARED = 60, 10_000  # to find the id that was meant takes too long beyond these


def counted(count: int, one: str, many: str | None = None) -> str:
    """Return '1 link' or '4,771 links'."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def shortened(text: str, most: int = 80) -> str:
    """A text for an error message: a long one is cut.

    >>> shortened("a" * 1000, most=6)
    'aaaaa…'
    """
    return text if len(text) <= most else text[: most - 1] + "…"


def shown(value: object) -> str:
    """A value of somebody's file for an error message, however long it is."""
    return shortened(repr(value[:100] if isinstance(value, str) else value))


def listed(names: Iterable[str]) -> str:
    """Some names for an error message, however many there are."""
    return shortened(", ".join(map(shown, islice(names, 20))) or "none", 200)


def unknown(vertex_id: object, ids: Sequence[Hashable]) -> str:
    """Name an id that is not there, with the one that was probably meant."""
    name = shown(vertex_id)
    for i in ids:
        if type(i) is not type(vertex_id) and str(i) == str(vertex_id):
            return f"{name} (there is {shown(i)}, which is of another type)"
    if isinstance(vertex_id, str) and len(vertex_id) <= LONG_ID:
        alike = (i for i in ids if isinstance(i, str) and len(i) <= LONG_ID)
        near = difflib.get_close_matches(vertex_id, islice(alike, MOST_COMPARED), 1)
        if near:
            return f"{name} (did you mean {near[0]!r}?)"
    return name


def edge_indices(
    ids: Sequence[Hashable],
    sources: Sequence[Hashable],
    targets: Sequence[Hashable],
    where: Callable[[int], str],
) -> Integers:
    """Turn pairs of ids into vertex numbers, (m, 2); `where(row)` says where a wrong one is."""
    positions = id_positions(ids)
    ends = [sources, targets]
    try:
        numbers = [[positions.get(i, -1) for i in side] for side in ends]
    except TypeError:  # an unhashable one, which is no vertex either
        numbers = [[positions.get(i, -1) if hashable(i) else -1 for i in side] for side in ends]
    edges = np.array(numbers, dtype=np.int64).reshape(2, -1).T
    wrong = np.flatnonzero((edges < 0).any(axis=1))
    if wrong.size:
        row = int(wrong[0])
        end = sources[row] if edges[row, 0] < 0 else targets[row]
        raise VHEError(f"{where(row)} names a vertex that is not there: {unknown(end, ids)}.")
    return edges


def id_positions(ids: Sequence[Hashable]) -> dict[Hashable, int]:
    """Return the place of each id, after seeing that each is hashable and there once."""
    try:
        positions = {vertex: k for k, vertex in enumerate(ids)}
    except TypeError:
        k = next(k for k, vertex in enumerate(ids) if not hashable(vertex))
        raise VHEError(f"the id of vertex {k} is {shown(ids[k])}, which is not hashable.") from None
    if len(positions) < len(ids):
        k = next(k for k, vertex in enumerate(ids) if positions[vertex] != k)
        twice = positions[ids[k]]
        raise VHEError(f"the id {shown(ids[k])} is given twice, for vertices {k} and {twice}.")
    return positions


def hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def plain(value: Any) -> Any:
    """Turn a numpy scalar into Python's own, so that ids print and save as what they are."""
    return value.item() if isinstance(value, np.generic) else value


def checked_texts(ids: Sequence[Hashable], texts: Sequence[object]) -> tuple[str, ...]:
    if len(texts) != len(ids):
        raise VHEError(
            f"there are {len(ids):,} ids but {len(texts):,} texts; give a text for each."
        )
    for vertex, text in zip(ids, texts, strict=True):
        if not isinstance(text, str):
            kind = type(text).__name__
            raise VHEError(f"the text of vertex {shown(vertex)} is of type {kind}; give a string.")
    return tuple(map(str, texts))


def checked_edges(n: int, edges: ArrayLike) -> Integers:
    try:
        array = np.array(edges)
    except ValueError:  # rows of different lengths
        raise VHEError("edges must be pairs of vertex numbers, but some rows are not.") from None
    if array.size == 0:
        return frozen(np.empty((0, 2), dtype=np.int64))
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        shape = f"shape {array.shape} of {array.dtype}"
        raise VHEError(f"edges must be an (m, 2) array of vertex numbers, not {shape}.")
    outside = np.flatnonzero(((array < 0) | (array >= n)).any(axis=1))
    if outside.size:
        row = int(outside[0])
        pair = tuple(array[row].tolist())
        raise VHEError(f"edge {row} is {pair}, but the vertices are numbered from 0 to {n - 1}.")
    return frozen(array.astype(np.int64))


def checked_labels(
    ids: Sequence[Hashable], labels: Sequence[Hashable | None] | None
) -> tuple[Hashable | None, ...] | None:
    if labels is None:
        return None
    kept = tuple(map(plain, labels))
    if len(kept) != len(ids):
        raise VHEError(
            f"there are {len(ids):,} vertices but {len(kept):,} labels; give None for no label."
        )
    for vertex, label in zip(ids, kept, strict=True):
        if not hashable(label):
            raise VHEError(
                f"the label of vertex {shown(vertex)} is {shown(label)}, which is not hashable."
            )
    return kept


def frozen(array: Integers) -> Integers:
    array.setflags(write=False)
    return array


def is_integer(value: object) -> bool:
    """Whether a value is a whole number, Python's or numpy's; True and False are none."""
    return isinstance(value, Integral) and not isinstance(value, bool)
