"""Output of a command: results on standard output, everything else on standard error."""

import contextlib
import json
import math
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any


def print_status(text: str) -> None:
    """Print a line about the progress of the work to standard error."""
    print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def diagnostics_to_stderr(json: bool) -> Iterator[None]:
    """Print warnings as notes and, with ``json``, redirect standard output to standard error."""
    with contextlib.ExitStack() as stack:
        if json:
            stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        stack.enter_context(warnings.catch_warnings())
        warnings.showwarning = lambda message, *where, **more: print_status(f"note: {message}")
        yield


def print_json(document: dict[str, Any]) -> None:
    """Print one JSON document to standard output; numbers that are not finite become null."""
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    print(json.dumps(_plain(document), ensure_ascii=not utf8, allow_nan=False, indent=2))


def print_table(
    rows: Sequence[Sequence[object]],
    header: Sequence[str] = (),
    right_aligned: Sequence[int] = (),
) -> None:
    """Print a table that fits the width of the terminal."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD if header else None, show_header=bool(header), pad_edge=False)
    for column in range(len(header) or len(rows[0])):
        table.add_column(
            header[column] if header else "",
            justify="right" if column in right_aligned else "left",
            overflow="fold",
        )
    for row in rows:
        table.add_row(*map(str, row))
    console = Console(highlight=False, markup=False, emoji=False)
    with console.capture() as captured:
        console.print(table)
    lines = [line.rstrip() for line in captured.get().splitlines()]
    print("\n".join(lines).strip("\n"))


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
