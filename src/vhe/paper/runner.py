"""Runs experiments of the grid, each with its own result file.

Finished experiments are not repeated. Files are written atomically: however a run ends, a file is
complete or absent."""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, groupby
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from vhe.config import PairVHEConfig, VHEConfig
from vhe.errors import VHEError
from vhe.evaluation.experiment import (
    CALIBRATION,
    LINK_MEASURES,
    VARIED,
    WHOLE,
    Evaluator,
    Experiment,
    headline,
)
from vhe.paper.results import is_finished, read_result, result_path
from vhe.runtime.files import atomic_write
from vhe.runtime.progress import duration

logger = logging.getLogger("vhe")

SCORES = (*LINK_MEASURES, *CALIBRATION, "seconds")
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
    warnings: tuple[str, ...] = ()  # logged in a worker


def run(
    experiments: Sequence[Experiment],
    results: Path,
    *,
    report: Callable[[str], None],
    workers: int = 1,
) -> Tally:
    """Run the experiments that are not finished yet.

    An experiment that cannot run here (its data or its method is missing) is skipped; one that
    fails is run again the next time. Each reason is reported once.

    Parameters
    ----------
    results : folder of the result files.
    report : called with one line per experiment.
    workers : number of processes; with several, each uses one thread.
    """
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
        outcomes = _in_processes(jobs, results, origin, workers)
    else:
        evaluators: dict[str, Evaluator | VHEError] = {}
        outcomes = (_run(e, results, origin, evaluators) for job in jobs for e in job)
    for number, outcome in enumerate(outcomes, 1):
        experiment, left = outcome.experiment, remaining.update(outcome)
        for warning in outcome.warnings:
            logger.warning(warning)
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


def _run(
    experiment: Experiment,
    results: Path,
    origin: dict[str, Any],
    evaluators: dict[str, Evaluator | VHEError],
) -> Outcome:
    """Run an experiment and write its result file.

    ``evaluators`` caches the evaluator of each dataset, or the error of its failed download.
    """
    from vhe.data.datasets import load

    if is_finished(results, experiment):  # by another process since the start
        return Outcome(experiment, "finished")
    same = same_fit(experiment)
    if same is not None and (measured := read_result(result_path(results, same))) is not None:
        copied = {key: measured[key] for key in measured if key in SCORES}
        again = experiment.as_dict() | copied | {"origin": measured["origin"]}
        _write(results, experiment, _as_json(again))
        return Outcome(experiment, "done", f"{headline(measured)}, measured as {same}")
    started = time.monotonic()
    dataset = experiment.dataset
    try:
        if dataset not in evaluators:
            try:
                evaluators[dataset] = Evaluator(load(dataset))
            except VHEError as error:
                evaluators[dataset] = VHEError(f"{dataset} is not available: {error}")
        evaluator = evaluators[dataset]
        if isinstance(evaluator, VHEError):
            raise evaluator
        result = evaluator.measure(experiment)
        text = _as_json(result | {"origin": origin})
    except VHEError as error:
        return Outcome(experiment, "skipped", str(error))
    except Exception as error:  # one failure must not end a long run
        return Outcome(experiment, "failed", f"{type(error).__name__}: {error}")
    _write(results, experiment, text)
    return Outcome(experiment, "done", headline(result), time.monotonic() - started)


def _as_json(result: dict[str, Any]) -> str:
    return json.dumps(result, indent=1, allow_nan=False) + "\n"


def _write(results: Path, experiment: Experiment, text: str) -> None:
    with atomic_write(result_path(results, experiment)) as temporary:
        temporary.write_text(text, encoding="utf-8")


def same_fit(experiment: Experiment) -> Experiment | None:
    """Return the experiment of link prediction with the same fit and split; None if there is none.

    It is the same where the varied setting of a figure or of an ablation has its default value.
    """
    config = {"vhe": VHEConfig, "pair-vhe": PairVHEConfig}.get(experiment.method)
    if config is None or experiment.task not in (*VARIED, "ablation"):
        return None
    defaults = asdict(config())
    if any(defaults[name] != value for name, value in experiment.settings.items()):
        return None
    return replace(experiment, task="link", settings={})


# Several processes

_WORKER_EVALUATORS: dict[str, Evaluator | VHEError] = {}  # of a worker, shared by its jobs


class _Warnings(logging.Handler):
    """Collects the warnings of a worker, which the parent logs."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


def _in_processes(
    jobs: Sequence[Sequence[Experiment]], results: Path, origin: dict[str, Any], workers: int
) -> Iterator[Outcome]:
    """Run jobs in a pool of processes; yield outcomes as they complete.

    At most ``workers`` jobs are submitted at a time, so that none is queued when interrupted.
    """
    waiting = list(reversed(jobs))
    others = {child.pid for child in multiprocessing.active_children()}
    while waiting:
        running: dict[Future[list[Outcome]], Sequence[Experiment]] = {}
        with _pool(min(workers, len(waiting))) as pool:
            try:
                while waiting or running:
                    while waiting and len(running) < workers:
                        job = waiting.pop()
                        running[pool.submit(_run_job, job, results, origin)] = job
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
    os.environ |= ONE_THREAD  # before the import of numpy and torch
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # no worker outlives a killed parent


def _run_job(job: Sequence[Experiment], results: Path, origin: dict[str, Any]) -> list[Outcome]:
    logged = _Warnings()
    logger.addHandler(logged)
    outcomes = [_run(experiment, results, origin, _WORKER_EVALUATORS) for experiment in job]
    logger.removeHandler(logged)
    return [replace(outcomes[0], warnings=tuple(logged.messages)), *outcomes[1:]]


# Time


class _RemainingTime:
    """Estimate of the remaining time from finished experiments of the same method."""

    def __init__(self, experiments: Sequence[Experiment], workers: int = 1) -> None:
        self._workers = workers
        self._left = Counter(map(_method, experiments))
        self._spent: dict[object, list[float]] = {}

    def update(self, outcome: Outcome) -> str:
        """Record an outcome; return the estimate as text."""
        key = _method(outcome.experiment)
        self._left[key] -= 1
        if outcome.status == "done":
            self._spent.setdefault(key, []).append(outcome.seconds)
        if not self._left.total() or not self._spent:
            return "0 s left"
        overall = fmean(chain(*self._spent.values()))  # for methods that have not run yet
        total = sum(
            count * (fmean(self._spent[key]) if key in self._spent else overall)
            for key, count in self._left.items()
        )
        return f"about {duration(total / self._workers)} left"


def _method(experiment: Experiment) -> object:
    return experiment.task, experiment.dataset, experiment.method
