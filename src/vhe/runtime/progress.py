"""Progress of long phases: a bar with an ETA on a terminal, plain lines elsewhere, or log records.

Lines are printed by a thread, so that a phase that cannot report (a call into a library) is not
silent either.
"""

from __future__ import annotations

import importlib.util
import logging
import sys
import threading
import time
from contextlib import suppress
from typing import Any, Self

from vhe.runtime.messages import printable

FIRST_LINE_SECONDS = 1.0  # a phase that is shorter prints no line, unless it has a note
SECONDS_BETWEEN_LINES = 5.0

logger = logging.getLogger("vhe")


class Progress:
    """One phase of the work, shown on standard error or logged by the logger ``vhe``.

    Parameters
    ----------
    task : str
    total : int, optional
        Number of steps, if known.
    show : bool
        Whether to write to standard error; otherwise lines are logged with level INFO.

    Examples
    --------
    >>> with Progress("training", 10, show=False) as progress:
    ...     progress.update(3, "AUC 90.0")
    """

    def __init__(self, task: str, total: int | None = None, *, show: bool = True) -> None:
        self.task, self.total, self.show = _one_line(task), total, show
        self._done, self._note = 0, ""
        self._first: tuple[float, int] | None = None  # time and steps of the first update
        self._bar: Any = None
        self._thread: threading.Thread | None = None
        self._finished = threading.Event()

    def __enter__(self) -> Self:
        self._started = time.monotonic()
        if self.show and (sys.stderr.isatty() or _in_notebook()):
            from rich import progress
            from rich.console import Console

            self._bar = progress.Progress(
                progress.TextColumn("{task.description}", markup=False),
                progress.BarColumn(bar_width=None),
                progress.TextColumn("{task.fields[count]}"),
                progress.TextColumn("{task.fields[note]}", markup=False),
                progress.TimeElapsedColumn(),
                progress.TimeRemainingColumn(),
                console=Console(stderr=True),
            )
            self._bar.start()
            self._task = self._bar.add_task(self.task, total=self.total, count="", note="")
        elif self.show or logger.isEnabledFor(logging.INFO):
            self._thread = threading.Thread(target=self._write_lines, daemon=True)
            self._thread.start()
        return self

    def report(self, done: int, total: int) -> None:
        """Set the number of completed steps and of all steps: a callback for functions."""
        self.total = total
        self.update(done)

    def update(self, done: int, note: str | None = None) -> None:
        """Set the number of completed steps; ``note`` is a short text beside it."""
        self._first = self._first or (time.monotonic(), done)
        self._done = done
        self._note = self._note if note is None else _one_line(note)
        if self._bar is not None:
            self._bar.update(
                self._task, completed=done, total=self.total, count=self._count(), note=self._note
            )

    def _count(self) -> str:
        return "" if self.total is None else f"{self._done:,}/{self.total:,}"

    def _line(self) -> str:
        now = time.monotonic()
        parts = [f"{self.task} {self._count()}".rstrip()]
        remaining = ""
        if self.total and self._done < self.total:
            parts[0] += f" ({100 * self._done // self.total} %)"
            time0, done0 = self._first or (now, self._done)
            if self._done > done0:
                seconds = (now - time0) / (self._done - done0) * (self.total - self._done)
                remaining = f", {duration(seconds)} left"
        parts += [self._note] if self._note else []
        return " · ".join([*parts, duration(now - self._started) + remaining])

    def _write(self) -> None:
        if self.show:
            with suppress(OSError):  # a full disk or a closed pipe ends no work
                print(self._line(), file=sys.stderr, flush=True)
        else:
            logger.info("%s", self._line())

    def _write_lines(self) -> None:
        seconds = FIRST_LINE_SECONDS
        while not self._finished.wait(seconds):
            self._write()
            seconds = SECONDS_BETWEEN_LINES

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        brief = time.monotonic() - self._started < FIRST_LINE_SECONDS and not self._note
        if self._bar is not None:
            if brief:
                self._bar.live.transient = True  # removes the bar
            self._bar.stop()
        if self._thread is not None:
            self._finished.set()
            self._thread.join()
            if error is None and not brief:
                self._write()


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))


def duration(seconds: float) -> str:
    """Return a duration for people.

    >>> duration(7.4), duration(200), duration(9000)
    ('7 s', '3 min', '2.5 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _in_notebook() -> bool:
    """Return whether a bar can be drawn below a notebook cell: rich needs ipywidgets for it."""
    if "ipykernel" not in sys.modules or importlib.util.find_spec("ipywidgets") is None:
        return False
    from rich.console import Console

    return Console(stderr=True).is_jupyter
