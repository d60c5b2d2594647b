"""Validation of the parts of a network; each error message names the offending vertex or edge."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vhe.errors import VHEError, VHETypeError, similar
from vhe.runtime.messages import shown

Integers = NDArray[np.int64]
MAX_ID_LENGTH, MAX_IDS = 60, 10_000  # bounds on the time of the search for a similar id


def unknown_id(vertex_id: object, ids: Sequence[Hashable]) -> str:
    """Return an id that does not exist, with the existing id that was probably meant."""
    name = shown(vertex_id)
    for i in ids:
        if type(i) is not type(vertex_id) and str(i) == str(vertex_id):
            return f"{name} (there is {shown(i)}, which is of another type)"
    if isinstance(vertex_id, str) and len(vertex_id) <= MAX_ID_LENGTH:
        end = f"/{vertex_id}".casefold()  # the name of a page without its folder
        candidates = (i for i in ids if isinstance(i, str) and len(i) <= MAX_ID_LENGTH)
        pages = ((i, i.casefold().removesuffix("/index")) for i in ids if isinstance(i, str))
        near = next((i for i, page in pages if page.endswith(end)), None)
        near = near or similar(vertex_id, islice(candidates, MAX_IDS), cutoff=0.8)
        if near:
            return f"{name} (did you mean {near!r}?)"
    return name


def edge_indices(
    ids: Sequence[Hashable],
    sources: Sequence[Hashable],
    targets: Sequence[Hashable],
    where: Callable[[int], str],
) -> Integers:
    """Convert pairs of ids to vertex indices, (m, 2); `where(row)` is the position of an edge."""
    positions = id_positions(ids)
    ends = [sources, targets]
    try:
        indices = [[positions.get(i, -1) for i in side] for side in ends]
    except TypeError:  # an unhashable value is not an id
        indices = [[positions.get(i, -1) if hashable(i) else -1 for i in side] for side in ends]
    edges = np.array(indices, dtype=np.int64).reshape(2, -1).T
    wrong = np.flatnonzero((edges < 0).any(axis=1))
    if wrong.size:
        row = int(wrong[0])
        end = sources[row] if edges[row, 0] < 0 else targets[row]
        raise VHEError(f"{where(row)}: unknown vertex id {unknown_id(end, ids)}.")
    return edges


def id_positions(ids: Sequence[Hashable]) -> dict[Hashable, int]:
    """Return the index of each id, after checking that ids are hashable and distinct."""
    try:
        positions = {vertex: k for k, vertex in enumerate(ids)}
    except TypeError:
        k = next(k for k, vertex in enumerate(ids) if not hashable(vertex))
        raise VHEError(f"the id of vertex {k} is {shown(ids[k])}, which is not hashable.") from None
    if len(positions) < len(ids):
        k = next(k for k, vertex in enumerate(ids) if positions[vertex] != k)
        other = positions[ids[k]]
        raise VHEError(f"duplicate id {shown(ids[k])}, of vertices {k} and {other}.")
    return positions


def checked_ids(ids: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """Return the ids as Python values, after checking that none is missing."""
    found = tuple(map(python_scalar, ids))
    missing = next((k for k, vertex in enumerate(found) if is_missing(vertex)), None)
    if missing is not None:
        raise VHEError(f"the id of vertex {missing} is {shown(found[missing])}; give it an id.")
    return found


def is_missing(value: Any) -> bool:
    """Return whether a value stands for a missing one in a table: NaN, NaT or pandas' NA."""
    try:
        return bool(value != value)
    except TypeError:  # NA is neither true nor false
        return True
    except ValueError:  # an array
        return False


def hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def python_scalar(value: Any) -> Any:
    """Convert a numpy scalar to the Python type, which JSON and Parquet can store."""
    return value.item() if isinstance(value, np.generic) else value


def checked_texts(ids: Sequence[Hashable], texts: Sequence[object]) -> tuple[str, ...]:
    if len(texts) != len(ids):
        raise VHEError(f"{len(ids):,} ids but {len(texts):,} texts; give one text per id.")
    for vertex, text in zip(ids, texts, strict=True):
        if not isinstance(text, str):
            kind = type(text).__name__
            raise VHETypeError(
                f"the text of vertex {shown(vertex)} is of type {kind}; give a string."
            )
    return tuple(map(str, texts))


def checked_edges(n: int, edges: ArrayLike) -> Integers:
    try:
        array = np.array(edges)
    except ValueError:  # rows of different lengths
        raise VHEError("edges must be pairs of vertex indices, but some rows are not.") from None
    if array.size == 0:
        return read_only(np.empty((0, 2), dtype=np.int64))
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        shape = f"shape {array.shape} of {array.dtype}"
        raise VHEError(f"edges must be an (m, 2) array of vertex indices, not {shape}.")
    outside = np.flatnonzero(((array < 0) | (array >= n)).any(axis=1))
    if outside.size:
        row = int(outside[0])
        pair = tuple(array[row].tolist())
        raise VHEError(f"edge {row} is {pair}, but vertex indices range from 0 to {n - 1}.")
    return read_only(array.astype(np.int64))


def checked_labels(
    ids: Sequence[Hashable], labels: Sequence[Hashable | None] | None
) -> tuple[Hashable | None, ...] | None:
    if labels is None:
        return None
    converted = tuple(None if is_missing(label) else python_scalar(label) for label in labels)
    if len(converted) != len(ids):
        raise VHEError(
            f"{len(ids):,} vertices but {len(converted):,} labels; give None for no label."
        )
    for vertex, label in zip(ids, converted, strict=True):
        if not hashable(label):
            raise VHEError(
                f"the label of vertex {shown(vertex)} is {shown(label)}, which is not hashable."
            )
    return converted


def read_only(array: Integers) -> Integers:
    array.setflags(write=False)
    return array
