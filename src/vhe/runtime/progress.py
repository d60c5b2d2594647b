"""What a person sees while something long runs: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import importlib.util
import sys
import time
from types import TracebackType
from typing import Any, Self

SECONDS_BETWEEN_LINES = 10.0


class Progress:
    """One task of ``total`` steps, shown on standard error.

    >>> with Progress("training", 10, show=False) as progress:
    ...     progress.update(3, "AUC 90.0")
    """

    def __init__(self, task: str, total: int, *, show: bool = True) -> None:
        self.task, self.total, self.show = task, total, show
        self._bar: Any = None
        self._started = self._said = time.monotonic()

    def __enter__(self) -> Self:
        if self.show and (sys.stderr.isatty() or _in_notebook()):
            from rich import progress
            from rich.console import Console

            self._bar = progress.Progress(
                progress.TextColumn("{task.description}"),
                progress.BarColumn(bar_width=None),
                progress.MofNCompleteColumn(),
                progress.TextColumn("{task.fields[note]}"),
                progress.TimeElapsedColumn(),
                progress.TimeRemainingColumn(),
                console=Console(stderr=True),
            )
            self._bar.start()
            self._task = self._bar.add_task(self.task, total=self.total, note="")
        return self

    def expect(self, total: int) -> None:
        """Say how many steps there are, where it was not known before."""
        self.total = total
        if self._bar is not None:
            self._bar.update(self._task, total=total)

    def update(self, done: int, note: str | None = None) -> None:
        """Say that ``done`` steps are done; ``note`` is a few words on how it goes."""
        if self._bar is not None:
            fields = {} if note is None else {"note": note}
            self._bar.update(self._task, completed=done, **fields)
        elif self.show:
            now = time.monotonic()
            if done == self.total or now - self._said >= SECONDS_BETWEEN_LINES:
                self._said = now
                words = f" · {note}" if note else ""
                line = f"{self.task} {done}/{self.total}{words} · {now - self._started:.0f} s"
                print(line, file=sys.stderr, flush=True)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


def _in_notebook() -> bool:
    """Whether a bar can be drawn below a cell: rich needs ipywidgets for that."""
    if "ipykernel" not in sys.modules or importlib.util.find_spec("ipywidgets") is None:
        return False
    from rich.console import Console

    return Console(stderr=True).is_jupyter
