"""`vhe reproduce` and `vhe report`: the experiments of the paper, and its tables beside ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Literal, get_args

from vhe.cli.output import diagnostics_to_stderr, print_json, print_table, say
from vhe.cli.place import check_writable
from vhe.errors import VHEError

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
    workers: int = 1,
    background: bool = False,
    json: bool = False,
) -> int:
    """Run the experiments behind the paper's tables and figures.

    Tables: link, classify, unseen, and ablation, which is ours. Figures: degree
    (AUC by number of links), lambda and alpha (influence of the two settings),
    structure (with and without its embedding), tsne (a map, coloured by label).

    Every measurement is a file of its own. What is finished is not run again, so
    that Ctrl-C does no harm: the same command goes on. Seeds come one after the
    other: stop early, and every table is begun. All of it takes days.

    Parameters
    ----------
    task
        the table or figure of the paper; all when left out
    datasets
        a dataset, or several with commas between, as cora,hepth; all when left out
    methods
        a method, or several with commas between, as vhe,tfidf; all when left out
    ratio
        a share, or several, as 15,55,95; all of the paper when left out
    protocol
        lines (as the paper) or clean; both when left out
    seeds
        seeds of splits and methods, as 0, 0-9 or 0,3; 0-9 when left out
    results
        the folder for the files; results when left out
    workers
        processes at a time; with several each uses one thread; 1 when left out
    background
        go on after this terminal is closed; tells how to watch and how to stop
    json
        print one JSON document, and progress on standard error
    """
    from vhe.data.datasets import describe
    from vhe.evaluation.experiment import Task, parse_names, parse_seeds, parse_shares
    from vhe.evaluation.methods import check_name
    from vhe.paper.grid import PROTOCOLS, cells
    from vhe.paper.runner import run

    places = parse_names(datasets, "--datasets") if datasets is not None else None
    names = parse_names(methods, "--methods") if methods is not None else None
    for place in places or ():
        describe(place)
    for name in names or ():
        check_name(name)
    chosen = cells(
        get_args(Task) if task == "all" else (task,),
        parse_seeds(seeds),
        protocols=(protocol,) if protocol else PROTOCOLS,
        datasets=places,
        methods=names,
        shares=parse_shares(ratio, "--ratio") if ratio is not None else None,
    )
    if workers < 1:
        raise VHEError(f"--workers {workers}: give a whole number from 1 on")
    check_writable(results / task)
    if background:
        told = {"datasets": datasets, "methods": methods, "ratio": ratio, "protocol": protocol}
        told |= {"seeds": seeds, "results": str(results), "workers": str(workers)}
        words = [w for name, value in told.items() if value for w in (f"--{name}", value)]
        return detach([task, *words], results, json)
    with diagnostics_to_stderr(json):
        try:
            tally = run(chosen, results, say=say, workers=workers)
        except KeyboardInterrupt:
            say(f"what is finished is in {results}; the same command goes on from there")
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
                ("left out", f"{skipped:,}"),
                ("failed", f"{failed:,}"),
                ("results", results),
                ("next", f"vhe report --results {results}"),
            ]
        )
    return 1 if failed else 0


def detach(words: list[str], results: Path, json: bool) -> int:
    """Start the same command in a session of its own, and tell how to watch and to stop it."""
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
    else:  # no table: a command that is folded cannot be copied
        print(f"process {process.pid} goes on in the background")
        print(f"watch:  tail -f {log}")
        print(f"stop:   kill {process.pid}")
        print("go on:  the same command; what is finished is not run again")
    return 0


def report(*, results: Path = RESULTS, out: Path = PAGES, json: bool = False) -> None:
    """Write our figures beside the paper's: tables and pictures, as Markdown and as a web page.

    Parameters
    ----------
    results
        the folder that vhe reproduce wrote; results when left out
    out
        the folder for the pages; docs/results when left out
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
