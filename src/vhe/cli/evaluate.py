"""`vhe evaluate`: compare methods on held-out links, hidden labels or unseen vertices."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from vhe.cli.output import diagnostics_to_stderr, print_json, say
from vhe.cli.place import check_writable
from vhe.cli.source import read_network
from vhe.errors import VHEError

if TYPE_CHECKING:
    from vhe.evaluation.experiment import Cell
    from vhe.predict.calibration import ReliabilityCurve

RATIO, LABELLED = "55", "10,30,50,70"  # where nothing is said


def evaluate(
    task: Literal["link", "classify", "unseen"],
    source: str | None = None,
    /,
    *,
    method: str = "vhe",
    ratio: str | None = None,
    labelled: str | None = None,
    protocol: Literal["lines", "clean"] | None = None,
    seeds: str = "0-9",
    vertices: Path | None = None,
    edges: Path | None = None,
    reliability: Path | None = None,
    json: bool = False,
) -> None:
    """Measure methods: on held-out links, on hidden labels, or on unseen vertices.

    link holds out edges. classify hides labels from a linear SVM on the embedding
    of the whole network. unseen holds out vertices and tells only their texts.
    Figures are means over the seeds in percent, ± their deviation.

    Parameters
    ----------
    task
        link, classify or unseen
    source
        a dataset's name (see vhe data), a folder with data.txt and graph.txt, or a GraphML file
    method
        a method, or several with commas between, as vhe,tfidf,diffused-text; vhe when left out
    ratio
        of edges (link) or vertices (unseen) that are seen, as 0.15,0.55 or 15,55; 0.55 if left out
    labelled
        for classify: the shares of the labels that are shown; 10,30,50,70 when left out
    protocol
        clean (distinct edges, checked negatives) or lines (as earlier papers); clean if left out
    seeds
        seeds of splits and methods, as 0, 0-9 or 0,3; 0-9 when left out
    vertices
        instead of SOURCE: a CSV, TSV, JSONL or Parquet file with columns id, text, perhaps label
    edges
        beside --vertices: such a file with columns source and target
    reliability
        a picture (.png, .svg, .pdf) of how far the probabilities of a link can be trusted
    json
        print one JSON document, and progress on standard error
    """
    from vhe.evaluation.experiment import (
        Bench,
        Cell,
        check_methods,
        parse_names,
        parse_seeds,
        parse_shares,
    )
    from vhe.evaluation.interrupt import raise_on_sigint

    if task == "classify" and (ratio or protocol):
        option = "--ratio" if ratio else "--protocol"
        raise VHEError(f"classify holds out no edges: leave {option} out, or use --labelled")
    if task != "classify" and labelled:
        raise VHEError(f"{task} hides no labels: leave --labelled out, or use --ratio")
    if task == "classify":
        shares = parse_shares(labelled or LABELLED, "--labelled")
    else:
        shares = parse_shares(ratio or RATIO, "--ratio")
    methods, chances = parse_names(method, "--method"), parse_seeds(seeds)
    check_methods(methods, task)
    if reliability:
        check_reliability(reliability, task, methods)
    with diagnostics_to_stderr(json):
        network = read_network(source, vertices, edges)
        rules = None if task == "classify" else protocol or "clean"
        cells = [
            Cell(task, network.name, name, share, rules, seed)
            for name in methods
            for seed in chances
            for share in shares
        ]
        bench = Bench(network)
        results = []
        curves: dict[str, list[ReliabilityCurve]] = {}
        for number, cell in enumerate(cells, 1):
            began = time.monotonic()
            with raise_on_sigint():
                results.append(bench.measure(cell))
            if bench.reliability:
                curves.setdefault(cell.method, []).append(bench.reliability)
            say(f"[{number}/{len(cells)}] {told(cell, results[-1], time.monotonic() - began)}")
    if reliability:
        from vhe.predict.calibration import pooled_curve, reliability_plot

        reliability_plot({name: pooled_curve(mine) for name, mine in curves.items()}, reliability)
        say(f"wrote {reliability}")
    if json:
        print_json({"results": results})
    else:
        print_results(task, results)


def check_reliability(path: Path, task: str, methods: Sequence[str]) -> None:
    """Refuse, before any work, a picture that nothing could be drawn in."""
    from vhe.evaluation.drawing import check_picture
    from vhe.evaluation.methods import make

    if task == "classify":
        raise VHEError("classify asks for no link: leave --reliability out")
    if not any(hasattr(make(name, 0), "probability_indices") for name in methods):
        raise VHEError(f"{', '.join(methods)}: no probabilities to draw; --method vhe gives some")
    check_picture(path)
    check_writable(path)


def told(cell: Cell, result: dict[str, Any], seconds: float) -> str:
    """A finished cell in a line."""
    from vhe.evaluation.experiment import MEASURES, TITLES

    measure = MEASURES[cell.task][0]
    return f"{cell}: {TITLES[measure]} {100 * result[measure]:.1f} ({seconds:.1f} s)"


def print_results(task: Literal["link", "classify", "unseen"], results: list[Any]) -> None:
    """Means and deviations over seeds, a row for each method and share."""
    from vhe.data.checks import counted
    from vhe.evaluation.experiment import CALIBRATION, MEASURES, TITLES, percent
    from vhe.evaluation.summary import Figure, group

    share = "labelled" if task == "classify" else "ratio"
    measures = MEASURES[task]
    rows = [(share, "method", *(TITLES[measure] for measure in measures), "fit, s")]
    groups = group(results, ("method", share))
    for name, part in sorted(groups, key=lambda key: key[1]):
        same = groups[name, part]
        figures = (str(Figure.of([result[measure] for result in same])) for measure in measures)
        seconds = sum(result["seconds"] for result in same) / len(same)
        rows.append((f"{percent(part)} %", name, *figures, f"{seconds:.1f}"))
    # Five figures fit 80 columns with two spaces between, which is less than print_table has.
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rows.insert(1, tuple("─" * width for width in widths))
    for row in rows:
        words = [word.rjust(width) for word, width in zip(row, widths, strict=True)]
        words[1] = row[1].ljust(widths[1])
        print("  ".join(words))
    for name, same in group([r for r in results if "brier" in r], ("method",)).items():
        told = (f"{TITLES[key]} {Figure.of([r[key] for r in same])}" for key in CALIBRATION)
        print(f"probabilities of {name[0]}: {', '.join(told)}")
    seeds = len({result["seed"] for result in results})
    print(
        f"in percent, mean ± deviation over {counted(seeds, 'seed')}; fit: mean seconds of fitting"
    )
