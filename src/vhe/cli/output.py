"""Output of a command: results on standard output, everything else on standard error.

All text passes `printable` or `console`, so that ids, texts and names cannot control the terminal.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import shlex
import shutil
import sys
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vhe.runtime.messages import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def console(markup: bool = False) -> Console:
    """Return a console on standard output that prints control characters as visible symbols."""
    from rich.console import Console
    from rich.segment import Segment

    class PrintableConsole(Console):
        def render(self, *args: Any, **options: Any) -> Iterable[Segment]:
            for text, style, control in super().render(*args, **options):
                yield Segment(text if control else printable(text), style, control)

    return PrintableConsole(highlight=False, emoji=False, markup=markup)


def print_status(text: str) -> None:
    """Print a line about the progress of the work to standard error."""
    with surviving_stderr():
        print(printable(text), file=sys.stderr, flush=True)


@contextlib.contextmanager
def surviving_stderr() -> Iterator[None]:
    """Print nothing more to standard error if it cannot be written: that ends no work."""
    try:
        yield
    except OSError:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


class NoteHandler(logging.Handler):
    """Prints the records of the logger ``vhe`` as notes, each message once."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._printed: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        message = self.format(record)
        if message not in self._printed:
            self._printed.add(message)
            print_status(f"note: {message}")


@contextlib.contextmanager
def diagnostics_to_stderr(json: bool) -> Iterator[None]:
    """Print warnings as notes and, with ``json``, redirect standard output to standard error."""
    logger, handler = logging.getLogger("vhe"), NoteHandler()
    with contextlib.ExitStack() as stack:
        logger.addHandler(handler)
        stack.callback(logger.removeHandler, handler)
        if json:
            stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        stack.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
        warnings.showwarning = lambda message, *where, **more: print_status(f"note: {message}")
        yield


def print_lines(*lines: object) -> None:
    """Print lines of a result, which are not wrapped."""
    print(printable("\n".join(map(str, lines))))


def print_json(document: dict[str, Any]) -> None:
    """Print one JSON document to standard output; numbers that are not finite become null."""
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    print(to_json(document, ensure_ascii=not utf8))


def to_json(document: dict[str, Any], ensure_ascii: bool = False) -> str:
    """Format a JSON document; numbers that are not finite become null."""
    text = json.dumps(_plain(document), ensure_ascii=ensure_ascii, allow_nan=False, indent=2)
    # JSON escapes the other control characters.
    return text.translate({code: f"\\u{code:04x}" for code in range(127, 160)})


def print_result(
    as_json: bool, document: dict[str, Any], rows: Sequence[Sequence[object]], **layout: Any
) -> None:
    """Print a result as one JSON document or as a table; see `print_table`."""
    if as_json:
        print_json(document)
    else:
        print_table(rows, **layout)


def print_table(
    rows: Sequence[Sequence[object]],
    header: Sequence[str] = (),
    right_aligned: Collection[int] = (),
) -> None:
    """Print a table that fits the width of the terminal."""
    output = console()
    with output.capture() as captured:
        output.print(make_table(rows, header, right_aligned))
    lines = [line.rstrip() for line in captured.get().splitlines()]
    print("\n".join(lines).strip("\n"))


def make_table(
    rows: Sequence[Sequence[object]],
    header: Sequence[str] = (),
    right_aligned: Collection[int] = (),
    **texts: Any,
) -> Table:
    """Return a table; ``texts`` are its title and caption."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=box.SIMPLE_HEAD if header else None,
        show_header=bool(header),
        pad_edge=False,
        padding=(0, 1, 0, 0) if header else (0, 1),  # two spaces between columns
        title_style="bold",
        title_justify="left",
        caption_justify="left",
        **texts,
    )
    for column in range(len(header) or len(rows[0])):
        number = column in right_aligned
        table.add_column(
            header[column] if header else "",
            justify="right" if number else "left",
            overflow="fold",
            # numbers are not folded
            min_width=max((len(str(row[column])) for row in rows), default=0) if number else None,
        )
    for row in rows:
        cells = (cell if isinstance(cell, Text) else Text(printable(str(cell))) for cell in row)
        table.add_row(*cells)
    return table


def _plain(value: Any) -> Any:
    """Convert a value, NumPy's included, to the types of JSON."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)


def program() -> str:
    """Return how the shell finds this command: vhe, or its path, such as .venv/bin/vhe."""
    called = Path(sys.argv[0])
    on_path = called.stem != "vhe" or shutil.which("vhe")
    return "vhe" if on_path else shlex.quote(str(called))
