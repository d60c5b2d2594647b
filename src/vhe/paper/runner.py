"""Runs the cells of the grid, one file a cell: what is finished is never run again, and whatever
ends the run, a file is a whole result or not there."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vhe.data.files import replacing
from vhe.errors import VHEError
from vhe.evaluate.cells import MEASURES, TITLES, Bench, Cell, check_methods, percent
from vhe.evaluate.interrupt import heeding_interrupts

if TYPE_CHECKING:
    from vhe.data.network import TextNetwork


@dataclass
class Tally:
    """How many cells of a run went which way, and why some could not run (reason: cells)."""

    done: int = 0
    finished_before: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    failed: dict[str, int] = field(default_factory=dict)


def cell_path(results: Path, cell: Cell) -> Path:
    """The file of a cell: ``task/dataset-method-percent-protocol-seed.json``."""
    parts = [cell.dataset, cell.method, percent(cell.share), cell.protocol, str(cell.seed)]
    return results / cell.task / ("-".join(part for part in parts if part) + ".json")


def read_result(path: Path) -> dict[str, Any] | None:
    """The result in a file; None where there is none, or only a piece of one."""
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
        measures = MEASURES[result["task"]]
        whole = all(math.isfinite(result[key]) for key in (*measures, "seconds", "seed"))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return result if whole else None


def finished(results: Path, cell: Cell) -> bool:
    """Whether the file of a cell has the result of this very cell, its settings included."""
    result = read_result(cell_path(results, cell))
    told = cell.as_dict()
    return (
        result is not None
        and {key: result.get(key) for key in told} == told
        and result.get("settings", {}) == cell.settings
    )


def read_results(results: Path) -> Iterator[dict[str, Any]]:
    """All finished results below a folder."""
    for path in sorted(results.glob("*/*.json")):
        result = read_result(path)
        if result is not None:
            yield result


def run(
    cells: Sequence[Cell],
    results: Path,
    *,
    say: Callable[[str], None],
    load: Callable[[str], TextNetwork] | None = None,
) -> Tally:
    """Run the cells that are not finished yet.

    A cell that cannot run here (its data or its method is missing) is skipped, one that breaks is
    left for the next time; either is said, once for each reason.

    Parameters
    ----------
    results : folder of the files.
    say : takes a line about each cell.
    load : a network by its name; the named datasets when left out.
    """
    from vhe.data.datasets import load as load_dataset
    from vhe.train.provenance import provenance

    tally = Tally()
    todo = [cell for cell in cells if not finished(results, cell)]
    tally.finished_before = len(cells) - len(todo)
    if tally.finished_before:
        say(f"{tally.finished_before:,} of {len(cells):,} cells are finished already")
    origin = {key: value for key, value in provenance(0).items() if key != "seed"} if todo else {}
    benches = _Benches(load or load_dataset)
    clock = _Clock(todo)
    for number, cell in enumerate(todo, 1):
        began = time.monotonic()
        try:
            benches.check(cell)
            with heeding_interrupts():
                result = benches.of(cell.dataset).measure(cell)
            text = json.dumps(result | {"origin": origin}, indent=1, allow_nan=False)
        except VHEError as error:
            _count(tally.skipped, f"{cell} and its like are left out: {error}", str(error), say)
            clock.skip(cell)
            continue
        except Exception as error:  # a night's work must not end with the first broken cell
            reason = f"{type(error).__name__}: {error}"
            _count(tally.failed, f"{cell} failed: {reason}", reason, say)
            clock.skip(cell)
            continue
        with replacing(cell_path(results, cell)) as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")
        tally.done += 1
        seconds = time.monotonic() - began
        left = clock.tick(cell, seconds)
        measure = MEASURES[cell.task][0]
        score = f"{TITLES[measure]} {100 * result[measure]:.1f}"
        say(f"[{number}/{len(todo)}] {cell}: {score} ({seconds:.1f} s; {left})")
    return tally


class _Benches:
    """A bench for each dataset, and whether a method can do a task, each found out once."""

    def __init__(self, load: Callable[[str], TextNetwork]) -> None:
        self._load = load
        self._benches: dict[str, Bench | VHEError] = {}
        self._checked: dict[tuple[str, str], VHEError | None] = {}

    def of(self, dataset: str) -> Bench:
        if dataset not in self._benches:
            try:
                self._benches[dataset] = Bench(self._load(dataset))
            except VHEError as error:  # a download that failed is not tried for every cell
                self._benches[dataset] = error
        found = self._benches[dataset]
        if isinstance(found, VHEError):
            raise VHEError(f"{dataset} cannot be had here: {found}")
        return found

    def check(self, cell: Cell) -> None:
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


class _Clock:
    """How long the cells that are left will take, from those of the same method that ran."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self._left: dict[tuple[str, str, str], int] = {}
        self._spent: dict[tuple[str, str, str], list[float]] = {}
        for cell in cells:
            self._left[self._key(cell)] = self._left.get(self._key(cell), 0) + 1

    @staticmethod
    def _key(cell: Cell) -> tuple[str, str, str]:
        return cell.task, cell.dataset, cell.method

    def skip(self, cell: Cell) -> None:
        self._left[self._key(cell)] -= 1

    def tick(self, cell: Cell, seconds: float) -> str:
        self._left[self._key(cell)] -= 1
        self._spent.setdefault(self._key(cell), []).append(seconds)
        everything = [value for spent in self._spent.values() for value in spent]
        usual = sum(everything) / len(everything)  # for methods that have not run yet
        total = 0.0
        for key, count in self._left.items():
            spent = self._spent.get(key)
            total += count * (sum(spent) / len(spent) if spent else usual)
        return f"about {duration(total)} left" if sum(self._left.values()) else "the last"


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
