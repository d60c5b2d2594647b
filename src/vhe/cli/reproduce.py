"""`vhe reproduce` and `vhe report`: run the experiments of the paper and report the results."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Literal, get_args

from cyclopts.types import PositiveInt

from vhe.cli.output import diagnostics_to_stderr, print_json, print_status, print_table
from vhe.cli.paths import check_writable

RESULTS, PAGES = Path("results"), Path("docs/results")


def reproduce(
    task: Literal[
        "link",
        "classify",
        "unseen",
        "ablation",
        "degree",
        "lambda",
        "alpha",
        "structure",
        "tsne",
        "all",
    ] = "all",
    /,
    *,
    datasets: str | None = None,
    methods: str | None = None,
    ratio: str | None = None,
    protocol: Literal["lines", "clean"] | None = None,
    seeds: str = "0-9",
    results: Path = RESULTS,
    workers: PositiveInt = 1,
    background: bool = False,
    json: bool = False,
) -> int:
    """Run the experiments of the paper.

    Tables: link, classify, unseen, and ablation (not in the paper). Figures:
    degree (AUC by degree), lambda and alpha (sensitivity to the two settings),
    structure (with and without structure embeddings), tsne (a map coloured by
    label).

    Each experiment writes one file. Finished experiments are not repeated: after
    Ctrl-C the same command resumes. All experiments of one seed run before those
    of the next. With several workers, each uses one thread. The complete grid
    takes days.

    Parameters
    ----------
    task
        table or figure of the paper, or all
    datasets
        datasets, such as cora,hepth (default: all)
    methods
        methods, such as vhe,tfidf (default: all)
    ratio
        percentages, such as 15,55,95 (default: all)
    protocol
        lines (as in the paper) or clean (default: both)
    seeds
        random seeds, such as 0, 0-9 or 0,3
    results
        folder for the result files
    workers
        number of processes
    background
        run detached from this terminal
    json
        print one JSON document
    """
    from vhe.data.datasets import describe
    from vhe.evaluation.experiment import Task, parse_names, parse_seeds, parse_shares
    from vhe.evaluation.methods import check_name
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
    skipped, failed = sum(tally.skipped.values()), sum(tally.failed.values())
    if json:
        print_json(
            {
                "results": results,
                "done": tally.done,
                "finished_before": tally.finished_before,
                "skipped": tally.skipped,
                "failed": tally.failed,
            }
        )
    else:
        print_table(
            [
                ("measured", f"{tally.done:,}"),
                ("finished before", f"{tally.finished_before:,}"),
                ("skipped", f"{skipped:,}"),
                ("failed", f"{failed:,}"),
                ("results", results),
                ("next", f"vhe report --results {results}"),
            ]
        )
    return 1 if failed else 0


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
        print(f"running in the background as process {process.pid}")
        print(f"watch:   tail -f {log}")
        print(f"stop:    kill {process.pid}")
        print("resume:  run the same command; finished experiments are not repeated")
    return 0


def report(*, results: Path = RESULTS, out: Path = PAGES, json: bool = False) -> None:
    """Write a report of our results and the paper's.

    Tables and figures, as Markdown and as a web page.

    Parameters
    ----------
    results
        folder written by vhe reproduce
    out
        folder for the pages
    json
        print one JSON document
    """
    check_writable(out / "README.md")
    from vhe.paper.report import write_report

    with diagnostics_to_stderr(json):
        written = write_report(results, out)
    if json:
        print_json({"files": written})
    else:
        print("\n".join(map(str, written)))
