"""Runs the cells of the grid, one file a cell: what is finished is never run again, and whatever
ends the run, a file is a whole result or not there."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from vhe.errors import VHEError
from vhe.evaluation.experiment import MEASURES, TITLES, WHOLE, Bench, Cell, check_methods
from vhe.evaluation.interrupt import raise_on_sigint
from vhe.paper.results import cell_path, finished
from vhe.runtime.files import atomic_write

if TYPE_CHECKING:
    from vhe.data.network import TextNetwork

Load = Callable[[str], "TextNetwork"]

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass
class Tally:
    """How many cells of a run went which way, and why some could not run (reason: cells)."""

    done: int = 0
    finished_before: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    failed: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """What became of a cell: ``said`` is its score, or why there is none."""

    cell: Cell
    end: Literal["done", "finished", "skipped", "failed"]
    said: str = ""
    seconds: float = 0.0


def run(
    cells: Sequence[Cell],
    results: Path,
    *,
    say: Callable[[str], None],
    load: Load | None = None,
    workers: int = 1,
) -> Tally:
    """Run the cells that are not finished yet.

    A cell that cannot run here (its data or its method is missing) is skipped, one that breaks is
    left for the next time; either is said, once for each reason.

    Parameters
    ----------
    results : folder of the files.
    say : takes a line about each cell.
    load : a network by its name; the named datasets when left out.
    workers : processes; with several each uses one thread.
    """
    from vhe.data.datasets import load as load_dataset
    from vhe.runtime.provenance import provenance

    tally = Tally()
    todo = [cell for cell in cells if not finished(results, cell)]
    tally.finished_before = len(cells) - len(todo)
    if tally.finished_before:
        say(f"{tally.finished_before:,} of {len(cells):,} cells are finished already")
    if not todo:
        return tally
    origin = {key: value for key, value in provenance(0).items() if key != "seed"}
    jobs = [list(job) for _, job in groupby(todo, _fit)]
    clock = _Clock(todo, workers)
    if workers > 1:
        origin["threads"] = 1
        outcomes = _in_processes(jobs, results, origin, load or load_dataset, workers)
    else:
        benches = _Benches(load or load_dataset)
        outcomes = (benches.run(cell, results, origin) for job in jobs for cell in job)
    for number, outcome in enumerate(outcomes, 1):
        cell, left = outcome.cell, clock.tick(outcome)
        if outcome.end == "done":
            tally.done += 1
            told = f"{outcome.said} ({outcome.seconds:.1f} s; {left})"
            say(f"[{number}/{len(todo)}] {cell}: {told}")
        elif outcome.end == "finished":
            tally.finished_before += 1
        elif outcome.end == "skipped":
            sentence = f"{cell} and its like are left out: {outcome.said}"
            _count(tally.skipped, sentence, outcome.said, say)
        else:
            _count(tally.failed, f"{cell} failed: {outcome.said}", outcome.said, say)
    return tally


def _fit(cell: Cell) -> object:
    """What cells have in common that are measured on one and the same fit."""
    if cell.task not in WHOLE:
        return cell
    return cell.dataset, cell.method, cell.seed, tuple(cell.settings)


class _Benches:
    """A bench for each dataset, and whether a method can do a task, each found out once."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._benches: dict[str, Bench | VHEError] = {}
        self._checked: dict[tuple[str, str], VHEError | None] = {}

    def run(self, cell: Cell, results: Path, origin: dict[str, Any]) -> Outcome:
        """Measure a cell and write its file."""
        if finished(results, cell):  # meanwhile, by somebody else
            return Outcome(cell, "finished")
        began = time.monotonic()
        try:
            self._check(cell)
            with raise_on_sigint():
                result = self._of(cell.dataset).measure(cell)
            text = json.dumps(result | {"origin": origin}, indent=1, allow_nan=False)
        except VHEError as error:
            return Outcome(cell, "skipped", str(error))
        except Exception as error:  # a night's work must not end with the first broken cell
            return Outcome(cell, "failed", f"{type(error).__name__}: {error}")
        with atomic_write(cell_path(results, cell)) as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")
        measure = MEASURES[cell.task][0]
        score = f"{TITLES[measure]} {100 * result[measure]:.1f}"
        return Outcome(cell, "done", score, time.monotonic() - began)

    def _of(self, dataset: str) -> Bench:
        if dataset not in self._benches:
            try:
                self._benches[dataset] = Bench(self._load(dataset))
            except VHEError as error:  # a download that failed is not tried for every cell
                self._benches[dataset] = error
        found = self._benches[dataset]
        if isinstance(found, VHEError):
            raise VHEError(f"{dataset} cannot be had here: {found}")
        return found

    def _check(self, cell: Cell) -> None:
        key = (cell.task, cell.method)
        if key not in self._checked:
            try:
                check_methods([cell.method], cell.task)
                self._checked[key] = None
            except VHEError as error:
                self._checked[key] = error
        found = self._checked[key]
        if found is not None:
            raise found


# Several processes


def _in_processes(
    jobs: Sequence[Sequence[Cell]], results: Path, origin: dict[str, Any], load: Load, workers: int
) -> Iterator[Outcome]:
    """The outcomes of jobs as they come, each job in one of the processes.

    No more jobs than processes are given away at a time: an interrupt leaves none behind.
    """
    waiting = list(reversed(jobs))
    before = {child.pid for child in multiprocessing.active_children()}
    while waiting:
        running: dict[Future[list[Outcome]], Sequence[Cell]] = {}
        with _one_thread(), _pool(min(workers, len(waiting))) as pool:
            try:
                while waiting or running:
                    while waiting and len(running) < workers:
                        job = waiting.pop()
                        running[pool.submit(_run_job, job, results, origin, load)] = job
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        yield from future.result()
                        del running[future]
            except BrokenProcessPool:
                reason = "a process ended suddenly; is there enough memory for --workers?"
                for job in running.values():
                    yield from (Outcome(cell, "failed", reason) for cell in job)
            except BaseException:
                for child in multiprocessing.active_children():
                    if child.pid not in before:
                        child.terminate()
                raise


def _pool(workers: int) -> ProcessPoolExecutor:
    # A fresh interpreter for each: threads of torch do not survive a fork.
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, mp_context=context, initializer=_prepare)


def _prepare() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started us decides
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # a killed run leaves nobody working; files are whole or not there


def _run_job(
    job: Sequence[Cell], results: Path, origin: dict[str, Any], load: Load
) -> list[Outcome]:
    return [_kept_benches(load).run(cell, results, origin) for cell in job]


@cache
def _kept_benches(load: Load) -> _Benches:
    """The benches of this process, for one job after the other."""
    return _Benches(load)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Inside, processes that are started use one thread each."""
    before = dict(os.environ)
    os.environ |= ONE_THREAD
    try:
        yield
    finally:
        for name in ONE_THREAD:
            del os.environ[name]
        os.environ |= {name: before[name] for name in ONE_THREAD if name in before}


# Time


class _Clock:
    """How long the cells that are left will take, from those of the same method that ran."""

    def __init__(self, cells: Sequence[Cell], workers: int = 1) -> None:
        self._workers = workers
        self._left: dict[tuple[str, str, str], int] = {}
        self._spent: dict[tuple[str, str, str], list[float]] = {}
        for cell in cells:
            self._left[self._key(cell)] = self._left.get(self._key(cell), 0) + 1

    @staticmethod
    def _key(cell: Cell) -> tuple[str, str, str]:
        return cell.task, cell.dataset, cell.method

    def tick(self, outcome: Outcome) -> str:
        key = self._key(outcome.cell)
        self._left[key] -= 1
        if outcome.end == "done":
            self._spent.setdefault(key, []).append(outcome.seconds)
        everything = [value for spent in self._spent.values() for value in spent]
        if not sum(self._left.values()) or not everything:
            return "the last"
        usual = sum(everything) / len(everything)  # for methods that have not run yet
        total = 0.0
        for key, count in self._left.items():
            spent = self._spent.get(key)
            total += count * (sum(spent) / len(spent) if spent else usual)
        return f"about {duration(total / self._workers)} left"


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def _count(counts: dict[str, int], sentence: str, reason: str, say: Callable[[str], None]) -> None:
    if reason not in counts:
        say(sentence)
    counts[reason] = counts.get(reason, 0) + 1
