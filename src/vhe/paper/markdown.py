"""The report as Markdown: one page per task and one for the figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vhe.paper.tables import Entry, Result, Table, dataset_name, datasets, missing, tables

if TYPE_CHECKING:
    from vhe.evaluation.experiment import Task
    from vhe.paper.figures import Picture


def task_page(task: Task, title: str, about: str, results: Sequence[Result]) -> str:
    """Return the page of a task, with one section per dataset."""
    mine = [result for result in results if result["task"] == task]
    lines = [f"# {title}", "", about, ""]
    for dataset in datasets(task, mine):
        lines += [f"## {dataset_name(dataset)}", ""]
        if why := missing(dataset, mine):
            lines += [why, ""]
        for table in tables(task, dataset, mine):
            lines += _table(table)
    return "\n".join(lines).rstrip() + "\n"


def figure_page(
    about: str, pictures: Sequence[Picture], results: Sequence[Result], folder: str
) -> str:
    """Return the page of the figures, each followed by its values."""
    lines = ["# Figures", "", about, ""]
    for picture in pictures:
        lines += [f"## {picture.title}", "", picture.caption, ""]
        lines += [f"![{picture.title}]({folder}/{picture.file})", ""]
        if picture.task == "link":  # has its own page
            continue
        mine = [result for result in results if result["task"] == picture.task]
        for dataset in datasets(picture.task, mine):
            found = [table for table in tables(picture.task, dataset, mine) if not table.minor]
            for table in found:
                lines += _table(table, f"{dataset_name(dataset)}: ")
    return "\n".join(lines).rstrip() + "\n"


def _table(table: Table, prefix: str = "") -> list[str]:
    lines = [f"### {prefix}{table.title}", "", table.caption, ""]
    lines.append("| method | " + " | ".join(table.columns) + " |")
    lines.append("|---|" + "---|" * len(table.columns))
    for name, row in table.rows:
        lines.append(f"| {name} | " + " | ".join(map(format_entry, row)) + " |")
    return [*lines, *(["", table.note] if table.note else []), ""]


def format_entry(entry: Entry) -> str:
    """Format an entry, such as ``**95.1 ± 0.4** (3) [94.4 ± 0.3]``."""
    parts = []
    if entry.ours:
        figure = f"**{entry.ours}**" if entry.best else str(entry.ours)
        parts.append(f"{figure} ({entry.ours.seeds})")
    elif entry.paper:
        parts.append(entry.missing)
    if entry.paper:
        parts.append(f"[**{entry.paper}**]" if entry.best_of_paper else f"[{entry.paper}]")
    return " ".join(parts)
