"""The files of the results, one a cell: what they are called, and whether they are whole."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vhe.evaluation.experiment import MEASURES, Cell, percent


def cell_path(results: Path, cell: Cell) -> Path:
    """The file of a cell: ``task/dataset-method-percent-protocol-variant-seed.json``."""
    parts = [cell.dataset, cell.method, percent(cell.share), cell.protocol, cell.variant]
    name = "-".join([part for part in parts if part] + [str(cell.seed)])
    return results / cell.task / f"{name}.json"


def read_result(path: Path) -> dict[str, Any] | None:
    """The result in a file; None where there is none, or only a piece of one."""
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
        measures = MEASURES[result["task"]]
        whole = all(math.isfinite(result[key]) for key in (*measures, "seconds", "seed"))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return result if whole else None


def finished(results: Path, cell: Cell) -> bool:
    """Whether the file of a cell has the result of this very cell, its settings included."""
    result = read_result(cell_path(results, cell))
    told = cell.as_dict()
    return (
        result is not None
        and {key: result.get(key) for key in told} == told
        and result.get("settings", {}) == cell.settings
    )


def read_results(results: Path) -> Iterator[dict[str, Any]]:
    """All finished results below a folder."""
    for path in sorted(results.glob("*/*.json")):
        result = read_result(path)
        if result is not None:
            yield result
