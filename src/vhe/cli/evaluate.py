"""`vhe evaluate`: compare methods on held-out links, hidden labels or unseen vertices."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from vhe.cli.options import Help, Json, Seeds, Source, Threads, using_threads
from vhe.cli.output import (
    diagnostics_to_stderr,
    print_json,
    print_lines,
    print_status,
    print_table,
)
from vhe.cli.paths import check_writable
from vhe.cli.source import NetworkOptions, read_network
from vhe.errors import VHEError

if TYPE_CHECKING:
    from vhe.predict.calibration import ReliabilityCurve

RATIO, LABELLED = "55", "10,30,50,70"  # percent


def evaluate(
    task: Annotated[Literal["link", "classify", "unseen"], Help("link, classify or unseen")],
    source: Source = None,
    /,
    *,
    method: Annotated[str, Help("methods, such as vhe,tfidf or mypackage.module:MyMethod")] = "vhe",
    ratio: Annotated[
        str | None, Help("edges or vertices seen: percentages or fractions (default: 55)")
    ] = None,
    labelled: Annotated[
        str | None, Help("labels seen: percentages or fractions (default: 10,30,50,70)")
    ] = None,
    protocol: Annotated[
        Literal["lines", "clean"] | None,
        Help("clean, or lines as in earlier papers (default: clean)"),
    ] = None,
    seeds: Seeds = "0-9",
    reading: NetworkOptions | None = None,
    reliability: Annotated[
        Path | None, Help("write a reliability diagram: .png, .svg or .pdf")
    ] = None,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Compare methods on held-out links or labels.

    link holds out edges. classify trains a linear SVM on the embedding of the
    whole network. unseen holds out vertices (inductive: only their texts are
    given). Results are means over seeds in percent, ± standard deviation.
    """
    from vhe.evaluation.experiment import (
        Evaluator,
        Experiment,
        check_methods,
        headline,
        parse_names,
        parse_seeds,
        parse_shares,
    )

    if task == "classify":
        if ratio or protocol:
            option = "--ratio" if ratio else "--protocol"
            raise VHEError(f"{option}: classify holds out no edges: omit it, or use --labelled")
        shares, rules = parse_shares(labelled or LABELLED, "--labelled"), None
    else:
        if labelled:
            raise VHEError(f"--labelled: {task} uses no labels: omit it, or use --ratio")
        shares, rules = parse_shares(ratio or RATIO, "--ratio"), protocol or "clean"
    methods, all_seeds = parse_names(method, "--method"), parse_seeds(seeds)
    check_methods(methods, task)
    if reliability:
        _check_reliability(reliability, task, methods)
    with diagnostics_to_stderr(json), using_threads(threads):
        network = read_network(source, options=reading)
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
            seconds = f"{time.monotonic() - started:.1f} s"
            line = f"{experiment}: {headline(results[-1])} ({seconds})"
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


def _print_results(task: Literal["link", "classify", "unseen"], results: list[Any]) -> None:
    """Print means and standard deviations over seeds, one row per method and fraction."""
    from vhe.evaluation.experiment import CALIBRATION, MEASURES, TITLES, percent
    from vhe.evaluation.summary import Figure, group
    from vhe.runtime.messages import counted

    share = "labelled" if task == "classify" else "ratio"
    measures = MEASURES[task]
    rows = []
    groups = group(results, ("method", share))
    for name, part in sorted(groups, key=lambda key: key[1]):
        same = groups[name, part]
        figures = (str(Figure.of([result[measure] for result in same])) for measure in measures)
        seconds = sum(result["seconds"] for result in same) / len(same)
        rows.append((f"{percent(part)} %", name, *figures, f"{seconds:.1f}"))
    header = (share, "method", *(TITLES[measure] for measure in measures), "fit, s")
    print_table(rows, header, right_aligned=(0, *range(2, len(header))))
    for (name,), same in group([r for r in results if "brier" in r], ("method",)).items():
        scores = (f"{TITLES[key]} {Figure.of([r[key] for r in same])}" for key in CALIBRATION)
        print_lines(f"probabilities of {name}: {', '.join(scores)}")
    seeds = counted(len({result["seed"] for result in results}), "seed")
    print_lines(f"percent, mean ± standard deviation over {seeds}; fit: mean seconds per fit")
