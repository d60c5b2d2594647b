"""The tables of scaling.md, from results/scale: one machine, the engine, its cost model."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import nnls

FOLDER = Path(__file__).resolve().parent.parent / "results" / "scale"
FAULTS = FOLDER.parent / "reliability"
BLOCK = re.compile(r"(<!-- table: ([\w ]+) -->\n).*?(<!-- end of table -->)", re.DOTALL)
FIRST_EDITION = {"vertices": "1,000,000", "cpu": 830, "gb": 10.6}  # as measured then, one thread
IDLE = 0.3  # cores used by other programs, while wall seconds are compared
FEATURES = "degree"  # of the link posterior of the runs that are compared
GROWTH = 100_000, 1_000_000  # vertices whose time per vertex is compared
PREDICTED = 10**6, 10**7, 10**8, 10**9  # vertices of the cost model
DIMENSIONS, WORDS, NEIGHBOURS, LINKS = 200, 88, 16, 2.1  # of a vertex of the synthetic network
DATASETS = {"debian": 63_436}  # vertices
ITERATIONS = 28  # of the solver for all dimensions, with those of the variance
ONCE = ("inputs", "words")  # phases whose cost does not depend on the size
SEARCHES = ("neighbours", "suggestions")  # compare vertices with the members of the nearest lists
LIST_ROWS = {"suggestions": 256, "lists of embeddings": 256}  # vertices per list, as in vhe.scale
TEXT_LIST_ROWS, MOST_LISTS = 512, 1 << 14
FITTED = 100_000, 300_000, 1_000_000  # vertices


def filled(text: str) -> str:
    """The page with its tables."""
    tables = {"one machine": machine, "engine": engine, "cost model": cost_model}
    tables |= {"agreement": agreement, "text neighbours": text_neighbours}
    tables |= {"enough": enough, "speedup": speedup, "faults": faults}
    return BLOCK.sub(lambda m: m[1] + tables[m[2]]() + m[3], text)


def machine() -> str:
    """Runs of `vhe fit`, the smallest network first."""
    lines = [
        "| vertices | options | CPU seconds | resident, GB | of it anonymous, GB |",
        "|---|---|---|---|---|",
    ]
    for run in sorted(_read("machine.json"), key=lambda run: (_size(run), run["options"])):
        anonymous = f"{run['anonymous_gb']:.2f}" if "anonymous_gb" in run else "–"
        lines.append(
            f"| {_number(run['vertices'])} | `{' '.join(run['options'])}` | "
            f"{run['cpu_seconds']:.0f} | {run['peak_gb']:.2f} | {anonymous} |"
        )
    old = FIRST_EDITION
    lines.append(f"| {old['vertices']} | first edition | {old['cpu']} | {old['gb']} | – |")
    return _joined(lines) + "\n" + _growth()


def _growth() -> str:
    """How the time per vertex grows between two sizes of the same options."""
    runs = {(run["vertices"], *run["options"]): run for run in _read("machine.json")}
    small, large = (runs.get((n, "--threads", "1")) for n in GROWTH)
    if small is None or large is None:
        return ""
    ratio = large["cpu_seconds"] / large["vertices"] / small["cpu_seconds"] * small["vertices"]
    first, second = (f"{n:,}" for n in GROWTH)
    return f"CPU seconds per vertex grow by a factor of {ratio:.2f} from {first} to {second}.\n"


def engine() -> str:
    lines = [
        "| vertices | link features | workers | memory of each | other programs, cores "
        "| wall seconds | CPU seconds | largest worker, GB | recall |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    order = ("vertices", "workers", "features")
    runs = sorted(_read("engine.json"), key=lambda run: [run[name] for name in order])
    for run in runs:
        figures = (
            f"{run['vertices']:,}",
            "all" if "structure" in run["features"] else run["features"].replace(",", ", "),
            run["workers"],
            run["memory_limit"],
            f"{run['others']:.1f}",
            f"{run['seconds']:.0f}",
            f"{run['cpu_seconds']:.0f}",
            f"{run['peak_mb'] / 1000:.2f}",
            "–" if run["recall"] is None else f"{run['recall']:.3f}",
        )
        lines.append(f"| {' | '.join(map(str, figures))} |")
    each = {
        r["vertices"]: r["cpu_seconds"] / r["vertices"] for r in _compared() if r["workers"] == 2
    }
    if not set(GROWTH) <= set(each):
        return _joined(lines)
    first, second = GROWTH
    return (
        f"{_joined(lines)}CPU seconds per vertex of two workers grow by a factor of "
        f"{each[second] / each[first]:.2f} from {first:,} to {second:,} vertices.\n"
    )


def _compared() -> list[dict[str, Any]]:
    """The runs with the same features of the link posterior."""
    return [run for run in _read("engine.json") if run["features"] == FEATURES]


def enough() -> str:
    """What one machine needs for the largest network that was measured on it."""
    runs = [run for run in _read("machine.json") if run["options"] == ["--threads", "1"]]
    run = max(runs, key=_size)
    minutes, memory = run["cpu_seconds"] / 60, run["peak_gb"]
    return (
        f"One thread of one machine needs {memory:.1f} GB and {minutes:.1f} minutes of CPU time "
        f"for {_number(run['vertices'])} vertices, and both grow about linearly: use it as long "
        "as its memory suffices.\n"
    )


def speedup() -> str:
    """Two workers against one, in the phases that have many tasks."""
    lines = [
        "| vertices | one worker, s | two workers, s | speed-up | CPU seconds of two / of one |",
        "|---|---|---|---|---|",
    ]
    idle = [run for run in _compared() if run["others"] < IDLE]
    runs = {(run["vertices"], run["workers"]): run for run in idle}
    for n in sorted({n for n, _ in runs}):
        if (n, 1) in runs and (n, 2) in runs:
            one, two = (_parallel(runs[n, workers], "seconds") for workers in (1, 2))
            cpu = [_parallel(runs[n, workers], "cpu_seconds") for workers in (1, 2)]
            lines.append(
                f"| {n:,} | {one:.0f} | {two:.0f} | {one / two:.2f} | {cpu[1] / cpu[0]:.2f} |"
            )
    return _joined(lines) if len(lines) > 2 else "Not measured on an idle machine yet.\n"


def _parallel(run: dict[str, Any], seconds: str) -> float:
    return float(sum(p[seconds] for p in run["phases"] if p["phase"] not in ONCE))


def faults() -> str:
    """Fits during which a worker or the scheduler was killed."""
    parts = [json.loads(path.read_text()) for path in sorted(FAULTS.glob("dask_faults*.json"))]
    names = ("workers_killed", "completed", "schedulers_killed", "resumed")
    killed, completed, schedulers, resumed = (sum(p[name] for p in parts) for name in names)
    return (
        f"Of {killed} fits during which a worker was killed at a random moment (kill -9), "
        f"{completed} completed with the embedding of an undisturbed fit; of {schedulers} whose "
        f"scheduler was killed, {resumed} were resumed with the same embedding.\n"
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
    """CPU seconds a + b n of each phase, fitted to some sizes; another one is predicted."""
    runs = sorted(
        (run for run in _compared() if run["workers"] == 2),
        key=lambda run: run["vertices"],
    )
    known = [run for run in runs if run["vertices"] in FITTED]
    others = [run for run in runs if run["vertices"] not in FITTED]
    if len(known) < len(FITTED) or not others:
        return "Not measured at enough sizes yet.\n"
    other = others[-1]
    names = list(dict.fromkeys(p["phase"] for run in [*known, other] for p in run["phases"]))
    models = {name: _fitted(name, known) for name in names}
    n, measured = other["vertices"], {p["phase"]: p["cpu_seconds"] for p in other["phases"]}
    sizes = ", ".join(f"{run['vertices']:,}" for run in known)
    lines = [
        f"Fitted to {sizes} vertices; predicted and measured at {n:,} (CPU seconds):",
        "",
        f"| phase | once | more at a million vertices | predicted at {n:,} | measured |",
        "|---|---|---|---|---|",
    ]
    total = np.zeros(2)
    for name, (once, each) in models.items():
        figures = f"| {name} | {once:.0f} | {each * _work(name, 10**6):.0f}"
        if name in measured:
            pair = once + each * _work(name, n), measured[name]
            total += pair
            lines.append(f"{figures} | {pair[0]:.0f} | {pair[1]:.0f} |")
        else:
            lines.append(f"{figures} | – | – |")
    error = 100 * (total[0] / total[1] - 1)
    lines.append(f"| all | | | {total[0]:.0f} ({error:+.0f} %) | {total[1]:.0f} |")
    lines += [
        "",
        "| vertices | core hours | files, GB | shuffle, GB | exchanged by the solver, GB |",
        "|---|---|---|---|---|",
    ]
    table = 4 * DIMENSIONS
    files = 10 * table + 12 * WORDS + 60 * NEIGHBOURS + 64 * LINKS  # bytes per vertex
    shuffle = 2 * table + 12 * WORDS + 40 * NEIGHBOURS + 32 * LINKS
    exchanged = ITERATIONS * known[-1]["halo_rows_per_vertex"] * table
    for size in PREDICTED:
        seconds = sum(once + each * _work(name, size) for name, (once, each) in models.items())
        volumes = (
            f"{size * each_vertex / 1e9:,.0f}" for each_vertex in (files, shuffle, exchanged)
        )
        lines.append(f"| {size:,} | {seconds / 3600:,.1f} | {' | '.join(volumes)} |")
    return _joined(lines)


def _work(phase: str, n: int) -> float:
    """What the CPU seconds of a phase are proportional to, beside what it does once."""
    rows = LIST_ROWS.get(phase, TEXT_LIST_ROWS)
    if phase.startswith("lists"):  # every vertex is compared with the centroid of every list
        return n * min(n / rows, MOST_LISTS)
    if phase in SEARCHES:  # the lists grow when there are no more of them
        return n * max(1.0, n / rows / MOST_LISTS)
    return n


def _fitted(phase: str, runs: list[dict[str, Any]]) -> tuple[float, float]:
    """What a phase costs once, and for a unit of its `_work`."""
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
    work = np.array([_work(phase, n) for n in sizes])
    if len(sizes) == 1:
        return 0.0, float(seconds[-1] / work[-1])
    weight = 1 / np.array(seconds)  # relative errors
    design = np.stack([np.ones(len(sizes)), work / work[-1]], axis=1) * weight[:, None]
    (once, each), _ = nnls(design, np.ones(len(sizes)))
    return float(once), float(each / work[-1])


def _read(name: str) -> list[dict[str, Any]]:
    path = FOLDER / name
    return list(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else []


def _size(run: dict[str, Any]) -> int:
    vertices = run["vertices"]
    return vertices if isinstance(vertices, int) else DATASETS[vertices]


def _number(value: Any) -> str:
    return f"{int(value):,}" if str(value).isdigit() else str(value)


def _joined(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"
