"""Runs experiments of the grid, each with its own result file.

Finished experiments are not repeated. Files are written atomically: however a run ends, a file is
complete or absent."""

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
from vhe.evaluation.experiment import MEASURES, TITLES, WHOLE, Evaluator, Experiment, check_methods
from vhe.paper.results import is_finished, result_path
from vhe.runtime.files import atomic_write

if TYPE_CHECKING:
    from vhe.data.network import TextNetwork

Load = Callable[[str], "TextNetwork"]

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass
class Tally:
    """Numbers of experiments by outcome; skipped and failed ones by reason."""

    done: int = 0
    finished_before: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    failed: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """Outcome of an experiment; ``message`` is its score or the reason why it has none."""

    experiment: Experiment
    status: Literal["done", "finished", "skipped", "failed"]
    message: str = ""
    seconds: float = 0.0


def run(
    experiments: Sequence[Experiment],
    results: Path,
    *,
    report: Callable[[str], None],
    load: Load | None = None,
    workers: int = 1,
) -> Tally:
    """Run the experiments that are not finished yet.

    An experiment that cannot run here (its data or its method is missing) is skipped; one that
    fails is run again the next time. Each reason is reported once.

    Parameters
    ----------
    results : folder of the result files.
    report : called with one line per experiment.
    load : returns a network by its name (default: the named datasets).
    workers : number of processes; with several, each uses one thread.
    """
    from vhe.data.datasets import load as load_dataset
    from vhe.runtime.provenance import provenance

    tally = Tally()
    todo = [e for e in experiments if not is_finished(results, e)]
    tally.finished_before = len(experiments) - len(todo)
    if tally.finished_before:
        report(f"{tally.finished_before:,} of {len(experiments):,} experiments are finished")
    if not todo:
        return tally
    origin = {key: value for key, value in provenance(0).items() if key != "seed"}
    jobs = [list(job) for _, job in groupby(todo, _fit)]
    remaining = _RemainingTime(todo, workers)
    if workers > 1:
        origin["threads"] = 1
        outcomes = _in_processes(jobs, results, origin, load or load_dataset, workers)
    else:
        evaluators = _Evaluators(load or load_dataset)
        outcomes = (evaluators.run(e, results, origin) for job in jobs for e in job)
    for number, outcome in enumerate(outcomes, 1):
        experiment, left = outcome.experiment, remaining.update(outcome)
        if outcome.status == "done":
            tally.done += 1
            line = f"{outcome.message} ({outcome.seconds:.1f} s; {left})"
            report(f"[{number}/{len(todo)}] {experiment}: {line}")
        elif outcome.status == "finished":
            tally.finished_before += 1
        else:
            counts = tally.skipped if outcome.status == "skipped" else tally.failed
            if outcome.message not in counts:
                report(f"{experiment}: {outcome.status}: {outcome.message}")
            counts[outcome.message] = counts.get(outcome.message, 0) + 1
    return tally


def _fit(experiment: Experiment) -> object:
    """Return a key that is equal for experiments that share one fit."""
    if experiment.task not in WHOLE:
        return experiment
    return experiment.dataset, experiment.method, experiment.seed, tuple(experiment.settings)


class _Evaluators:
    """One evaluator per dataset; caches failed downloads and inapplicable methods."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._evaluators: dict[str, Evaluator | VHEError] = {}
        self._checked: dict[tuple[str, str], VHEError | None] = {}

    def run(self, experiment: Experiment, results: Path, origin: dict[str, Any]) -> Outcome:
        """Run an experiment and write its result file."""
        if is_finished(results, experiment):  # by another process since the start
            return Outcome(experiment, "finished")
        started = time.monotonic()
        try:
            self._check(experiment)
            result = self._evaluator(experiment.dataset).measure(experiment)
            text = json.dumps(result | {"origin": origin}, indent=1, allow_nan=False)
        except VHEError as error:
            return Outcome(experiment, "skipped", str(error))
        except Exception as error:  # one failure must not end a long run
            return Outcome(experiment, "failed", f"{type(error).__name__}: {error}")
        with atomic_write(result_path(results, experiment)) as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")
        measure = MEASURES[experiment.task][0]
        score = f"{TITLES[measure]} {100 * result[measure]:.1f}"
        return Outcome(experiment, "done", score, time.monotonic() - started)

    def _evaluator(self, dataset: str) -> Evaluator:
        if dataset not in self._evaluators:
            try:
                self._evaluators[dataset] = Evaluator(self._load(dataset))
            except VHEError as error:
                self._evaluators[dataset] = error
        found = self._evaluators[dataset]
        if isinstance(found, VHEError):
            raise VHEError(f"{dataset} is not available: {found}")
        return found

    def _check(self, experiment: Experiment) -> None:
        key = (experiment.task, experiment.method)
        if key not in self._checked:
            try:
                check_methods([experiment.method], experiment.task)
                self._checked[key] = None
            except VHEError as error:
                self._checked[key] = error
        found = self._checked[key]
        if found is not None:
            raise found


# Several processes


def _in_processes(
    jobs: Sequence[Sequence[Experiment]],
    results: Path,
    origin: dict[str, Any],
    load: Load,
    workers: int,
) -> Iterator[Outcome]:
    """Run jobs in a pool of processes; yield outcomes as they complete.

    At most ``workers`` jobs are submitted at a time, so that none is queued when interrupted.
    """
    waiting = list(reversed(jobs))
    others = {child.pid for child in multiprocessing.active_children()}
    while waiting:
        running: dict[Future[list[Outcome]], Sequence[Experiment]] = {}
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
                reason = "a worker process was killed; if memory ran out, reduce --workers"
                for job in running.values():
                    yield from (Outcome(experiment, "failed", reason) for experiment in job)
            except BaseException:
                for child in multiprocessing.active_children():
                    if child.pid not in others:
                        child.terminate()
                raise


def _pool(workers: int) -> ProcessPoolExecutor:
    # spawn, not fork: the threads of torch do not survive a fork.
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, mp_context=context, initializer=_initialise_worker)


def _initialise_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # no worker outlives a killed parent


def _run_job(
    job: Sequence[Experiment], results: Path, origin: dict[str, Any], load: Load
) -> list[Outcome]:
    return [_worker_evaluators(load).run(experiment, results, origin) for experiment in job]


@cache
def _worker_evaluators(load: Load) -> _Evaluators:
    """Return the evaluators of this process, shared by its jobs."""
    return _Evaluators(load)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Limit processes started inside to one thread each."""
    before = dict(os.environ)
    os.environ |= ONE_THREAD
    try:
        yield
    finally:
        for name in ONE_THREAD:
            del os.environ[name]
        os.environ |= {name: before[name] for name in ONE_THREAD if name in before}


# Time


class _RemainingTime:
    """Estimate of the remaining time from finished experiments of the same method."""

    def __init__(self, experiments: Sequence[Experiment], workers: int = 1) -> None:
        self._workers = workers
        self._left: dict[tuple[str, str, str], int] = {}
        self._spent: dict[tuple[str, str, str], list[float]] = {}
        for experiment in experiments:
            self._left[self._key(experiment)] = self._left.get(self._key(experiment), 0) + 1

    @staticmethod
    def _key(experiment: Experiment) -> tuple[str, str, str]:
        return experiment.task, experiment.dataset, experiment.method

    def update(self, outcome: Outcome) -> str:
        """Record an outcome; return the estimate as text."""
        key = self._key(outcome.experiment)
        self._left[key] -= 1
        if outcome.status == "done":
            self._spent.setdefault(key, []).append(outcome.seconds)
        durations = [value for spent in self._spent.values() for value in spent]
        if not sum(self._left.values()) or not durations:
            return "0 s left"
        mean = sum(durations) / len(durations)  # for methods that have not run yet
        total = 0.0
        for key, count in self._left.items():
            spent = self._spent.get(key)
            total += count * (sum(spent) / len(spent) if spent else mean)
        return f"about {format_duration(total / self._workers)} left"


def format_duration(seconds: float) -> str:
    """Format a duration in seconds, minutes or hours."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
