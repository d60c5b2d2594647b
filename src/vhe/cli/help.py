"""Layout of `--help`: one entry per option, its default or "required" in parentheses."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from cyclopts.help import DefaultFormatter, HelpEntry, HelpPanel, PanelSpec
from cyclopts.help.specs import ColumnSpec, NameRenderer
from rich import box
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console


def formatter() -> DefaultFormatter:
    """Return the formatter of all help pages."""
    return DefaultFormatter(panel_spec=PanelSpec(box=box.HORIZONTALS), column_specs=_columns)


def description(command: Callable[..., Any]) -> str:
    """Return the docstring of a command, with unwrapped paragraphs and list items."""
    return re.sub(r"(?<!\n)\n(?!\n|- )\s*", " ", inspect.getdoc(command) or "")


def print_panel(title: str, entries: Iterable[tuple[str, str, str]]) -> None:
    """Print names with their descriptions and defaults in the layout of options."""
    from rich.console import Console

    rows = [
        HelpEntry(positive_names=(name,), description=text, default=default)
        for name, text, default in entries
    ]
    console = Console(highlight=False)
    console.print()
    panel = HelpPanel(format="parameter", title=title, entries=rows)
    formatter()(console, console.options, panel)


def _columns(console: Console, options: Any, entries: list[HelpEntry]) -> tuple[ColumnSpec, ...]:
    labels = [" ".join(entry.display_labels_with_metavar) for entry in entries]
    longest = max(len(word) for label in labels for word in label.split())
    width = max(math.ceil(0.35 * console.width), longest)
    return (
        ColumnSpec(
            renderer=NameRenderer(width), style="cyclopts.name", no_wrap=True, max_width=width
        ),
        ColumnSpec(renderer=_description, overflow="fold"),
    )


def _description(entry: HelpEntry) -> Text:
    """Render the description of an option and its default."""
    text = getattr(entry.description, "primary_renderable", entry.description)
    rendered = text.copy() if isinstance(text, Text) else Text(str(text or ""))
    rendered.rstrip()
    if entry.required:
        rendered.append(" (required)", "cyclopts.required")
    elif entry.default not in (None, "False"):
        rendered.append(f" (default: {entry.default})", "cyclopts.default")
    return rendered
