"""The report as one self-contained web page without external requests."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from vhe.paper.tables import Entry, Result, Table, dataset_name, datasets, missing, tables

if TYPE_CHECKING:
    from vhe.evaluation.experiment import Task
    from vhe.paper.figures import Picture

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'"


def web_page(
    pages: dict[Task, tuple[str, str]],
    legend: str,
    origin: Sequence[str],
    pictures: Sequence[Picture],
    results: Sequence[Result],
    folder: Path,
) -> str:
    """Return the page.

    Parameters
    ----------
    pages : title and explanation of each task that has tables.
    legend : how to read a table entry.
    origin : how the results were measured.
    folder : the folder of the pictures.
    """
    titles = {task: title for task, (title, _) in pages.items()}
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        "<title>vhe: results</title>",
        f"<style>\n{files(__package__).joinpath('page.css').read_text('utf-8')}</style>",
        "</head><body>",
        f"<h1>Results</h1>\n<p>{_text(legend)}</p>",
        "<nav>" + " ".join(f'<a href="#{k}">{_text(v)}</a>' for k, v in titles.items()),
        '<a href="#figures">Figures</a></nav>' if pictures else "</nav>",
    ]
    for task, (title, about) in pages.items():
        parts.append(f'<h2 id="{task}">{_text(title)}</h2>\n<p class="soft">{_text(about)}</p>')
        parts += [_picture(p, folder) for p in pictures if p.task == task]
        parts += _sections(task, results)
    further = [picture for picture in pictures if picture.task not in pages]
    if further:
        parts.append('<h2 id="figures">Figures</h2>')
    elif pictures:
        parts.append('<span id="figures"></span>')
    for picture in further:
        parts.append(_picture(picture, folder))
        parts += _sections(picture.task, results)
    parts.append("<footer>" + "".join(f"<p>{_text(line)}</p>" for line in origin) + "</footer>")
    return "\n".join([*parts, "</body></html>"]) + "\n"


def _sections(task: Task, results: Sequence[Result]) -> list[str]:
    """Return the tables of a task by dataset; secondary measures are collapsed."""
    mine = [result for result in results if result["task"] == task]
    parts = []
    for dataset in datasets(task, mine):
        found = tables(task, dataset, mine)
        parts.append(f"<h3>{_text(dataset_name(dataset))}</h3>")
        if why := missing(dataset, mine):
            parts.append(f"<p>{_text(why)}</p>")
        parts += [_table(table) for table in found if not table.minor]
        if minor := [table for table in found if table.minor]:
            names = ", ".join(table.title.partition(",")[0] for table in minor)
            folded = "\n".join(map(_table, minor))
            parts.append(f"<details><summary>{_text(names)}</summary>\n{folded}\n</details>")
    return parts


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{_text(column)}</th>' for column in ("", *table.columns))
    rows = "\n".join(
        f'<tr><th scope="row">{_text(name)}</th>{"".join(map(_cell, row))}</tr>'
        for name, row in table.rows
    )
    note = f'<p class="soft">{_text(table.note)}</p>' if table.note else ""
    return (
        f"<h4>{_text(table.title)}</h4>\n"
        f'<p class="soft">{_text(table.caption)}</p>\n'
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody></table></div>\n{note}"
    )


def _cell(entry: Entry) -> str:
    paper = ""
    if entry.paper:
        paper = f"[<b>{entry.paper}</b>]" if entry.best_of_paper else f"[{entry.paper}]"
    if not entry.ours:
        text = f"{entry.missing}<small>{paper}</small>"
        return f'<td class="paper soft">{text}</td>' if paper else "<td></td>"
    figure = f"<b>{entry.ours}</b>" if entry.best else str(entry.ours)
    return f"<td>{figure}<small>({entry.ours.seeds}) <span>{paper}</span></small></td>"


def _picture(picture: Picture, folder: Path) -> str:
    encoded = base64.b64encode((folder / picture.file).read_bytes()).decode()
    title = _text(picture.title)
    return (
        f'<figure><img alt="{title}" src="data:image/svg+xml;base64,{encoded}">\n'
        f"<figcaption><b>{title}.</b> {_text(picture.caption)}</figcaption></figure>"
    )


def _text(text: str) -> str:
    """Escape HTML and convert `code` spans as in Markdown."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))
