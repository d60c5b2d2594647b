"""`vhe evaluate`: compare methods on held-out links, hidden labels or unseen vertices."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from vhe.cli.output import diagnostics_to_stderr, print_json, print_status
from vhe.cli.paths import check_writable
from vhe.cli.source import read_network
from vhe.errors import VHEError

if TYPE_CHECKING:
    from vhe.evaluation.experiment import Experiment
    from vhe.predict.calibration import ReliabilityCurve

RATIO, LABELLED = "55", "10,30,50,70"  # percent


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
    """Compare methods on held-out links or labels.

    link holds out edges. classify trains a linear SVM on the embedding of the
    whole network. unseen holds out vertices (inductive: only their texts are
    given). Results are means over seeds in percent, ± standard deviation.

    Parameters
    ----------
    task
        link, classify or unseen
    source
        dataset name (see vhe data), folder in CANE format, or GraphML file
    method
        methods, such as vhe,pair-vhe,tfidf
    ratio
        percentages of edges or vertices seen (default: 55)
    labelled
        percentages of labels seen (default: 10,30,50,70)
    protocol
        clean, or lines as in earlier papers (default: clean)
    seeds
        random seeds, such as 0, 0-9 or 0,3
    vertices
        instead of SOURCE: file with columns id, text[, label]
    edges
        with --vertices: file with columns source and target
    reliability
        write a reliability diagram: .png, .svg or .pdf
    json
        print one JSON document
    """
    from vhe.evaluation.experiment import (
        Evaluator,
        Experiment,
        check_methods,
        parse_names,
        parse_seeds,
        parse_shares,
    )

    if task == "classify" and (ratio or protocol):
        option = "--ratio" if ratio else "--protocol"
        raise VHEError(f"{option}: classify holds out no edges: omit it, or use --labelled")
    if task != "classify" and labelled:
        raise VHEError(f"--labelled: {task} uses no labels: omit it, or use --ratio")
    if task == "classify":
        shares = parse_shares(labelled or LABELLED, "--labelled")
    else:
        shares = parse_shares(ratio or RATIO, "--ratio")
    methods, all_seeds = parse_names(method, "--method"), parse_seeds(seeds)
    check_methods(methods, task)
    if reliability:
        _check_reliability(reliability, task, methods)
    with diagnostics_to_stderr(json):
        network = read_network(source, vertices, edges)
        rules = None if task == "classify" else protocol or "clean"
        experiments = [
            Experiment(task, network.name, name, share, rules, seed)
            for name in methods
            for seed in all_seeds
            for share in shares
        ]
        evaluator = Evaluator(network)
        results = []
        curves: dict[str, list[ReliabilityCurve]] = {}
        for number, experiment in enumerate(experiments, 1):
            started = time.monotonic()
            results.append(evaluator.measure(experiment))
            if evaluator.reliability:
                curves.setdefault(experiment.method, []).append(evaluator.reliability)
            line = _summary(experiment, results[-1], time.monotonic() - started)
            print_status(f"[{number}/{len(experiments)}] {line}")
    if reliability:
        from vhe.evaluation.reliability import reliability_plot
        from vhe.predict.calibration import pooled_curve

        reliability_plot({name: pooled_curve(own) for name, own in curves.items()}, reliability)
        print_status(f"wrote {reliability}")
    if json:
        print_json({"results": results})
    else:
        _print_results(task, results)


def _check_reliability(path: Path, task: str, methods: Sequence[str]) -> None:
    """Raise `VHEError`, before any work, if no reliability diagram can be drawn."""
    from vhe.evaluation.drawing import check_picture
    from vhe.evaluation.methods import make

    if task == "classify":
        raise VHEError("--reliability: classify predicts no links: omit it")
    if not any(hasattr(make(name, 0), "probability_indices") for name in methods):
        raise VHEError(
            f"--reliability: {', '.join(methods)} predicts no probabilities: use --method vhe"
        )
    check_picture(path)
    check_writable(path)


def _summary(experiment: Experiment, result: dict[str, Any], seconds: float) -> str:
    """Format a finished experiment as one line."""
    from vhe.evaluation.experiment import MEASURES, TITLES

    measure = MEASURES[experiment.task][0]
    return f"{experiment}: {TITLES[measure]} {100 * result[measure]:.1f} ({seconds:.1f} s)"


def _print_results(task: Literal["link", "classify", "unseen"], results: list[Any]) -> None:
    """Print means and standard deviations over seeds, one row per method and fraction."""
    from vhe.evaluation.experiment import CALIBRATION, MEASURES, TITLES, percent
    from vhe.evaluation.summary import Figure, group
    from vhe.runtime.messages import counted

    share = "labelled" if task == "classify" else "ratio"
    measures = MEASURES[task]
    rows = [(share, "method", *(TITLES[measure] for measure in measures), "fit, s")]
    groups = group(results, ("method", share))
    for name, part in sorted(groups, key=lambda key: key[1]):
        same = groups[name, part]
        figures = (str(Figure.of([result[measure] for result in same])) for measure in measures)
        seconds = sum(result["seconds"] for result in same) / len(same)
        rows.append((f"{percent(part)} %", name, *figures, f"{seconds:.1f}"))
    # Five columns of figures fit 80 characters only with narrower gaps than print_table uses.
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rows.insert(1, tuple("─" * width for width in widths))
    for row in rows:
        words = [word.rjust(width) for word, width in zip(row, widths, strict=True)]
        words[1] = row[1].ljust(widths[1])
        print("  ".join(words))
    for name, same in group([r for r in results if "brier" in r], ("method",)).items():
        scores = (f"{TITLES[key]} {Figure.of([r[key] for r in same])}" for key in CALIBRATION)
        print(f"probabilities of {name[0]}: {', '.join(scores)}")
    seeds = counted(len({result["seed"] for result in results}), "seed")
    print(f"percent, mean ± standard deviation over {seeds}; fit: mean seconds per fit")
