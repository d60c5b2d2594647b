"""`vhe reproduce`: run the experiments of the paper and report the results."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal, get_args

from cyclopts.types import PositiveInt

from vhe.cli.options import Datasets, Help, Json, Methods, Protocols, Ratios, Seeds
from vhe.cli.output import (
    diagnostics_to_stderr,
    print_json,
    print_lines,
    print_result,
    print_status,
)
from vhe.cli.paths import check_writable
from vhe.errors import VHEError
from vhe.evaluation.experiment import Task, parse_names, parse_seeds, parse_shares
from vhe.evaluation.methods import check_name

RESULTS, PAGES = Path("results"), Path("docs/results")


def reproduce(
    task: Annotated[
        Literal[Task, "all", "quick", "heart", "report"],
        Help("what to run"),
    ] = "all",
    /,
    *,
    datasets: Datasets = None,
    methods: Methods = None,
    ratio: Ratios = None,
    protocol: Protocols = None,
    seeds: Seeds = "0-9",
    results: Annotated[Path, Help("folder of the result files")] = RESULTS,
    out: Annotated[
        Path | None, Help("report: folder for the pages (default: docs/results)")
    ] = None,
    workers: Annotated[PositiveInt, Help("number of processes")] = 1,
    background: Annotated[bool, Help("run detached from this terminal")] = False,
    json: Json = False,
) -> int:
    """Run the experiments of the paper.

    The tasks are:

    - link, classify, unseen: the tables of the paper
    - degree: AUC by degree; lambda, alpha: sensitivity to these settings; structure:
      with and without structure embeddings; tsne: map coloured by label
    - ablation: models without some of their parts (not in the paper)
    - all: all of these
    - heart: the public benchmark HeaRT on Citeseer, whose files must be in
      VHE_DATA_DIR (options: --methods, --seeds, --results)
    - quick: 30 results of link prediction, measured again in minutes and compared
      with those in --results; the exit status is 1 unless all are within two standard
      deviations (options: --results, --workers)
    - report: Markdown pages with our tables and figures beside the paper's (options:
      --results, --out); vhe report-tables prints the tables as LaTeX or CSV

    Each experiment writes one file. Finished experiments are not repeated: after
    Ctrl-C the same command resumes. All experiments of one seed run before those of
    the next. With several workers, each uses one thread. The complete grid takes
    days.
    """
    if task == "report":
        _report(results, out or PAGES, json)
        return 0
    if out is not None:
        raise VHEError(f"--out: {task} writes to --results: omit it, or use vhe reproduce report")
    if task == "quick":
        return _quick(results, workers, json)
    if task == "heart":
        _heart(methods or "vhe", seeds, results, json)
        return 0
    from vhe.data.datasets import describe
    from vhe.paper.grid import PROTOCOLS, experiments
    from vhe.paper.runner import run

    dataset_names = parse_names(datasets, "--datasets") if datasets is not None else None
    method_names = parse_names(methods, "--methods") if methods is not None else None
    for name in dataset_names or ():
        describe(name)
    for name in method_names or ():
        check_name(name)
    chosen = experiments(
        get_args(Task) if task == "all" else (task,),
        parse_seeds(seeds),
        protocols=(protocol,) if protocol else PROTOCOLS,
        datasets=dataset_names,
        methods=method_names,
        shares=parse_shares(ratio, "--ratio") if ratio is not None else None,
    )
    check_writable(results / task)
    if background:
        options = {"datasets": datasets, "methods": methods, "ratio": ratio, "protocol": protocol}
        options |= {"seeds": seeds, "results": str(results), "workers": str(workers)}
        words = [w for name, value in options.items() if value for w in (f"--{name}", value)]
        return detach([task, *words], results, json)
    with diagnostics_to_stderr(json):
        try:
            tally = run(chosen, results, report=print_status, workers=workers)
        except KeyboardInterrupt:
            print_status(f"finished experiments are in {results}; the same command resumes")
            raise
    rows = [
        ("measured", tally.done),
        ("finished before", tally.finished_before),
        ("skipped", sum(tally.skipped.values())),
        ("failed", sum(tally.failed.values())),
    ]
    print_result(
        json,
        {"results": results, **asdict(tally)},
        [
            *((name, f"{count:,}") for name, count in rows),
            ("results", results),
            ("next", f"vhe reproduce report --results {results}"),
        ],
    )
    return 1 if tally.failed else 0


def detach(words: list[str], results: Path, json: bool) -> int:
    """Start the command in a new session; print how to watch and stop it."""
    log = results.with_name(f"{results.name}.log")
    command = [sys.executable, "-m", "vhe", "reproduce", *words]
    with log.open("ab") as file:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    if json:
        print_json({"process": process.pid, "log": log, "results": results})
    else:  # not as a table: a command folded over two lines cannot be copied
        print_lines(
            f"running in the background as process {process.pid}",
            f"watch:   tail -f {log}",
            f"stop:    kill {process.pid}",
            "resume:  run the same command; finished experiments are not repeated",
        )
    return 0


def _heart(methods: str, seeds: str, results: Path, json: bool) -> None:
    """Measure the benchmark and print its table."""
    from vhe.paper.heart import heart_table, read_scores, run_heart

    names = parse_names(methods, "--methods")
    for name in names:
        check_name(name)
    check_writable(results / "heart")
    with diagnostics_to_stderr(json):
        for name in names:
            run_heart(name, parse_seeds(seeds), results, print_status)
    if json:
        print_json({"results": results / "heart", "scores": read_scores(results)})
    else:
        print_lines(*heart_table(results))


def _quick(results: Path, workers: int, json: bool) -> int:
    """Compare a few cells with the committed figures; return the exit status."""
    from vhe.paper.quick import quick_table, run_quick

    with diagnostics_to_stderr(json):
        checks = run_quick(results, print_status, workers=workers)
    if json:
        print_json({"results": results, "checks": [check.as_dict() for check in checks]})
    else:
        print_lines(*quick_table(checks))
    return 1 if any(check.agrees is False for check in checks) else 0


def _report(results: Path, out: Path, json: bool) -> None:
    """Write the pages of the results; print their paths."""
    check_writable(out / "README.md")
    from vhe.paper.report import write_report

    with diagnostics_to_stderr(json):
        written = write_report(results, out)
    if json:
        print_json({"files": written})
    else:
        print_lines(*written)
