"""The tables of scaling.md, from results/scale: one machine, the engine, its cost model."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import nnls

FOLDER = Path(__file__).resolve().parent.parent / "results" / "scale"
BLOCK = re.compile(r"(<!-- table: ([\w ]+) -->\n).*?(<!-- end of table -->)", re.DOTALL)
FIRST_EDITION = {"vertices": "1,000,000", "cpu": 830, "gb": 10.6}  # as measured then, one thread
PREDICTED = 10**6, 10**7, 10**8, 10**9  # vertices of the cost model
DIMENSIONS, WORDS, NEIGHBOURS, LINKS = 200, 88, 16, 2.1  # of a vertex of the synthetic network
ITERATIONS = 40  # of the solver, all posteriors and the variance together
ONCE = ("inputs", "words")  # phases whose cost does not depend on the size


def filled(text: str) -> str:
    """The page with its tables."""
    tables = {"one machine": machine, "engine": engine, "cost model": cost_model}
    tables |= {"agreement": agreement, "text neighbours": text_neighbours}
    return BLOCK.sub(lambda m: m[1] + tables[m[2]]() + m[3], text)


def machine() -> str:
    lines = ["| vertices | options | CPU seconds | peak memory, GB |", "|---|---|---|---|"]
    old = FIRST_EDITION
    lines.append(f"| {old['vertices']} | first edition | {old['cpu']} | {old['gb']} |")
    for run in _read("machine.json"):
        options, size = " ".join(run["options"]), _number(run["vertices"])
        lines.append(f"| {size} | `{options}` | {run['cpu_seconds']:.0f} | {run['peak_gb']:.2f} |")
    return _joined(lines)


def engine() -> str:
    lines = [
        "| vertices | workers | memory of each | CPU seconds | largest worker, GB | recall |",
        "|---|---|---|---|---|---|",
    ]
    for run in _read("engine.json"):
        recall = "–" if run["recall"] is None else f"{run['recall']:.3f}"
        lines.append(f"{_engine_row(run)} | {recall} |")
    for run in _read("engine-stopped.json"):
        phases = f"stopped after {len(run['phases'])} phases ({run['stopped_after']})"
        lines.append(f"{_engine_row(run)} | {phases} |")
    return _joined(lines)


def _engine_row(run: dict[str, Any]) -> str:
    return (
        f"| {run['vertices']:,} | {run['workers']} | {run['memory_limit']} | "
        f"{run['cpu_seconds']:.0f} | {run['peak_mb'] / 1000:.2f}"
    )


def agreement() -> str:
    lines = [
        "| network | vertices | least cosine with one process | in other parts and blocks | "
        "AUC of one process | of the engine |",
        "|---|---|---|---|---|---|",
    ]
    for row in _read("agreement.json"):
        cosines = f"{row['least_cosine']:.7f} | {row['least_cosine_other_parts']:.7f}"
        auc = f"{row['auc_one_process']:.2f} | {row['auc_same_words']:.2f}"
        lines.append(f"| {row['network']} | {row['vertices']:,} | {cosines} | {auc} |")
    return _joined(lines)


def text_neighbours() -> str:
    lines = ["| network | texts | method | CPU seconds | recall |", "|---|---|---|---|---|"]
    for row in _read("text-neighbours.json"):
        figures = f"{row['cpu_seconds']:.1f} | {row['recall']:.3f}"
        lines.append(
            f"| {_number(row['network'])} | {row['texts']:,} | {row['method']} | {figures} |"
        )
    return _joined(lines)


def cost_model() -> str:
    """CPU seconds a + b n of each phase, fitted to all sizes but the largest; it is predicted."""
    runs = [run for run in _read("engine.json") if run["workers"] == 2]
    runs.sort(key=lambda run: run["vertices"])
    if len(runs) < 3:
        return "Not measured at enough sizes yet.\n"
    *known, largest = runs
    phases = [phase["phase"] for phase in largest["phases"]]
    models = {name: _fitted(name, known) for name in phases}
    n = largest["vertices"]
    sizes = ", ".join(f"{run['vertices']:,}" for run in known)
    lines = [
        f"Fitted to {sizes} vertices; predicted and measured at {n:,} (CPU seconds):",
        "",
        f"| phase | once | per million vertices | predicted at {n:,} | measured |",
        "|---|---|---|---|---|",
    ]
    total = np.zeros(2)
    for phase in largest["phases"]:
        once, each = models[phase["phase"]]
        pair = once + each * n, phase["cpu_seconds"]
        total += pair
        figures = f"{once:.0f} | {1e6 * each:.0f} | {pair[0]:.0f} | {pair[1]:.0f}"
        lines.append(f"| {phase['phase']} | {figures} |")
    lines.append(f"| all | | | {total[0]:.0f} | {total[1]:.0f} |")
    halo = largest["halo_rows_per_vertex"]
    once, each = (sum(model[k] for model in models.values()) for k in (0, 1))
    lines += [
        "",
        "| vertices | core hours | files, GB | shuffle, GB | exchanged by the solver, GB |",
        "|---|---|---|---|---|",
    ]
    table = 4 * DIMENSIONS
    files = 9 * table + 12 * WORDS + 60 * NEIGHBOURS + 64 * LINKS  # bytes per vertex
    shuffle = 2 * table + 12 * WORDS + 40 * NEIGHBOURS + 32 * LINKS
    exchanged = ITERATIONS * halo * table
    for size in PREDICTED:
        hours = (once + each * size) / 3600
        volumes = (
            f"{size * each_vertex / 1e9:,.0f}" for each_vertex in (files, shuffle, exchanged)
        )
        lines.append(f"| {size:,} | {hours:,.1f} | {' | '.join(volumes)} |")
    return _joined(lines)


def _fitted(phase: str, runs: list[dict[str, Any]]) -> tuple[float, float]:
    sizes, seconds = [], []
    for run in runs:
        found = [p["cpu_seconds"] for p in run["phases"] if p["phase"] == phase]
        if found:
            sizes.append(run["vertices"])
            seconds.append(found[0])
    if not sizes:
        return 0.0, 0.0
    if phase in ONCE:
        return float(np.mean(seconds)), 0.0
    design = np.stack([np.ones(len(sizes)), np.array(sizes)], axis=1) / np.array(sizes)[:, None]
    (once, each), _ = nnls(design, np.array(seconds) / np.array(sizes))  # relative errors
    return float(once), float(each)


def _read(name: str) -> list[dict[str, Any]]:
    path = FOLDER / name
    return list(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else []


def _number(value: Any) -> str:
    return f"{int(value):,}" if str(value).isdigit() else str(value)


def _joined(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"
