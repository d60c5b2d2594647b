"""Columns of numbers: vectors of vertices and weights of edges.

A vector is a list (Parquet, JSON, databases), a string of numbers such as `[0.1, 0.2]` or
`0.1 0.2`, or a row of several columns. An empty cell is no vector, or the weight 1. A column that
was not named by the user and whose first value is not numeric is ignored, which is noted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vhe.data.readers.columns import Table
from vhe.errors import VHEError
from vhe.runtime.messages import counted, shown


def vector_rows(table: Table, chosen: bool) -> tuple[list[NDArray[np.float32] | None], list[str]]:
    """Return the vector of each row, or None, and notes; no rows if there is no such column."""
    cells = table.columns.pop("vector", [])
    rows, notes = _parsed(table, cells, "vector", parsed_vector, chosen)
    if rows and not notes and all(row is None for row in rows):
        notes = [f"{table.name}: no vertex has a vector"]
    return ([], notes) if notes else (rows, [])


def edge_weights(table: Table, chosen: bool) -> tuple[list[float] | None, list[str]]:
    """Return the weight of each row and notes; None if there is no such column."""
    cells = table.columns.pop("weight", [])
    weights, notes = _parsed(table, cells, "weight", _weight, chosen)
    if not weights:
        return None, notes
    missing = 0
    for row, weight in enumerate(weights):
        if weight is None:
            weights[row] = 1.0
            missing += 1
        elif not (math.isfinite(weight) and weight > 0):
            raise VHEError(
                f"{table.where(row)}: the weight is {shown(weight)}; weights must be positive and "
                "finite: remove the edge, or rename the column to ignore it."
            )
    if missing:
        notes.append(f"{table.name}: {counted(missing, 'edge')} without weight read as weight 1")
    notes.append(f"{table.name}: weights of edges from {min(weights):g} to {max(weights):g}")
    return weights, notes


def parsed_vector(cell: Any) -> NDArray[np.float32] | None:
    """Return a vector, None for an empty cell.

    >>> parsed_vector("[1, 2.5]").tolist(), parsed_vector("1 2.5").tolist(), parsed_vector(" ")
    ([1.0, 2.5], [1.0, 2.5], None)
    """
    if _empty(cell):
        return None
    if isinstance(cell, str):
        text = cell.strip()
        try:
            cell = json.loads(text)
        except (ValueError, RecursionError):
            cell = text.strip("[](){}").replace(",", " ").replace(";", " ").split()
    if isinstance(cell, list | tuple):
        cell = [math.nan if _empty(value) else value for value in cell]
    with np.errstate(over="ignore"):  # infinities are reported with their column
        vector = np.atleast_1d(np.asarray(cell, dtype=np.float32))
    if vector.ndim != 1 or not len(vector):
        raise ValueError("not one list of numbers")
    return vector


def _weight(cell: Any) -> float | None:
    return None if _empty(cell) else float(cell)


def _empty(cell: Any) -> bool:
    if isinstance(cell, str):
        return not cell.strip()
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def _parsed(
    table: Table, cells: list[Any], meaning: str, parse: Callable[[Any], Any], chosen: bool
) -> tuple[list[Any], list[str]]:
    values: list[Any] = []
    for row, cell in enumerate(cells):
        try:
            values.append(parse(cell))
        except (TypeError, ValueError, OverflowError):
            what = "a list of numbers" if meaning == "vector" else "a number"
            if not chosen and all(value is None for value in values):
                name = table.names[meaning][0]
                return [], [f"{table.name}: {name} ignored: {shown(cell)} is not {what}"]
            raise VHEError(
                f"{table.where(row)}: the {meaning} {shown(cell)} is not {what}."
            ) from None
    return values, []
