"""Which experiments the paper's tables and figures are made of; grid.csv lists them, a row a cell.

The paper names no share of edges for its figure of degrees; 55 % leaves enough edges to divide."""

from __future__ import annotations

import csv
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, cast

from vhe.errors import VHEError
from vhe.evaluation.experiment import WHOLE, Cell, Task

if TYPE_CHECKING:
    from vhe.data.splits import Protocol

PROTOCOLS: tuple[Protocol, ...] = ("lines", "clean")


@dataclass(frozen=True)
class Experiment:
    """A row of the grid: a method on a dataset, and how much of it is seen."""

    task: Task
    dataset: str
    method: str
    share: float
    settings: dict[str, Any]


@cache
def grid() -> tuple[Experiment, ...]:
    """All experiments: every cell that is published, and the same of methods that are ours."""
    with files(__package__).joinpath("grid.csv").open(encoding="utf-8") as file:
        return tuple(
            Experiment(
                cast(Task, row["task"]),
                row["dataset"],
                row["method"],
                int(row["percent"]) / 100,
                json.loads(row["settings"] or "{}"),
            )
            for row in csv.DictReader(file)
        )


def cells(
    tasks: Collection[Task],
    seeds: Sequence[int],
    *,
    protocols: Sequence[Protocol] = PROTOCOLS,
    datasets: Collection[str] | None = None,
    methods: Collection[str] | None = None,
    shares: Collection[float] | None = None,
) -> list[Cell]:
    """The cells to run, a seed after the other, so that an early end leaves every table begun.

    None stands for all. What learns from all edges has no protocol and comes once.
    """
    chosen = [
        experiment
        for experiment in grid()
        if experiment.task in tasks
        and (datasets is None or experiment.dataset in datasets)
        and (methods is None or experiment.method in methods)
        and (shares is None or experiment.share in shares)
    ]
    if not chosen:
        raise VHEError("the paper has no such cell: widen --datasets, --methods or --ratio")
    return [
        Cell(e.task, e.dataset, e.method, e.share, protocol, seed, e.settings)
        for seed in seeds
        for protocol in (*protocols, None)
        for e in chosen
        if (protocol is None) == (e.task in WHOLE)
    ]
