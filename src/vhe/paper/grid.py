"""The experiments of the paper's tables and figures, one per row of grid.csv.

The paper does not state the fraction of edges of its figure by degree; 55 % leaves enough held-out
edges in each group."""

from __future__ import annotations

import csv
import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, cast

from vhe.errors import VHEError
from vhe.evaluation.experiment import WHOLE, Experiment, Task

if TYPE_CHECKING:
    from vhe.data.splits import Protocol

PROTOCOLS: tuple[Protocol, ...] = ("lines", "clean")


@cache
def grid() -> tuple[Experiment, ...]:
    """Return all rows, without protocol and with seed 0: every published figure, and the same for
    methods not in the paper."""
    with files(__package__).joinpath("grid.csv").open(encoding="utf-8") as file:
        return tuple(
            Experiment(
                cast(Task, row["task"]),
                row["dataset"],
                row["method"],
                int(row["percent"]) / 100,
                protocol=None,
                seed=0,
                settings=json.loads(row["settings"] or "{}"),
            )
            for row in csv.DictReader(file)
        )


def experiments(
    tasks: Collection[Task],
    seeds: Sequence[int],
    *,
    protocols: Sequence[Protocol] = PROTOCOLS,
    datasets: Collection[str] | None = None,
    methods: Collection[str] | None = None,
    shares: Collection[float] | None = None,
) -> list[Experiment]:
    """Return the experiments to run, ordered by seed, so that a partial run covers every table.

    None selects all. Tasks that train on all edges have no protocol and occur once per seed.
    """
    chosen = [
        row
        for row in grid()
        if row.task in tasks
        and (datasets is None or row.dataset in datasets)
        and (methods is None or row.method in methods)
        and (shares is None or row.share in shares)
    ]
    if not chosen:
        raise VHEError("no experiment matches: extend --datasets, --methods or --ratio")
    return [
        replace(row, protocol=protocol, seed=seed)
        for seed in seeds
        for protocol in (*protocols, None)
        for row in chosen
        if (protocol is None) == (row.task in WHOLE)
    ]
