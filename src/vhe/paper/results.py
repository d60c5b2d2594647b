"""Result files: one JSON file per experiment."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vhe.errors import VHEError
from vhe.evaluation.experiment import MEASURES, Experiment, percent
from vhe.paper.grid import grid

logger = logging.getLogger(__name__)


def result_path(results: Path, experiment: Experiment) -> Path:
    """Return the file of a result: ``task/dataset-method-percent-protocol-variant-seed.json``."""
    e = experiment
    parts = [e.dataset, e.method, percent(e.share), e.protocol, e.variant]
    name = "-".join([part for part in parts if part] + [str(e.seed)])
    return results / e.task / f"{name}.json"


def read_result(path: Path) -> dict[str, Any] | None:
    """Return the result in a file; None if it is missing or incomplete."""
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
        measures = MEASURES[result["task"]]
        complete = all(math.isfinite(result[key]) for key in (*measures, "seconds", "seed"))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return result if complete else None


def is_finished(results: Path, experiment: Experiment) -> bool:
    """Return whether the result of exactly this experiment, settings included, is stored."""
    result = read_result(result_path(results, experiment))
    fields = experiment.as_dict()
    return (
        result is not None
        and {key: result.get(key) for key in fields} == fields
        and result.get("settings", {}) == experiment.settings
    )


def read_results(results: Path) -> Iterator[dict[str, Any]]:
    """Yield all results of the grid that are stored below a folder.

    Results that the grid does not contain, such as those of removed methods, are ignored with one
    warning.
    """
    known = {_key(row.task, row.method, row.settings) for row in grid()}
    ignored: dict[str, int] = {}
    for path in sorted(results.glob("*/*.json")):
        result = read_result(path)
        if result is None:
            continue
        task, method = result["task"], str(result.get("method"))
        if _key(task, method, result.get("settings", {})) in known:
            yield result
        else:
            ignored[f"{task} {method}"] = ignored.get(f"{task} {method}", 0) + 1
    if ignored:
        logger.warning(
            f"ignored {sum(ignored.values()):,} results in {results} that are not in the grid: "
            + ", ".join(f"{name} ({count})" for name, count in ignored.items()),
        )


def stored_results(results: Path) -> list[dict[str, Any]]:
    """Return all results of the grid that are stored below a folder.

    Raises
    ------
    VHEError
        If there are none.
    """
    found = list(read_results(results))
    if not found:
        raise VHEError(
            f"{results}: no finished results: run vhe reproduce --results {results} first"
        )
    return found


def _key(task: str, method: str, settings: dict[str, Any]) -> tuple[str, str, str]:
    return task, method, json.dumps(settings, sort_keys=True)
