"""All tables of our results in one CSV or LaTeX file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from vhe.errors import VHEError
from vhe.evaluation.experiment import MEASURES, TITLES, WHOLE, Task
from vhe.evaluation.summary import Figure
from vhe.paper.grid import PROTOCOLS
from vhe.paper.overview import provenance_note
from vhe.paper.published import PAPER_NAMES
from vhe.paper.results import read_results
from vhe.paper.tables import (
    COMPARED,
    Result,
    dataset_name,
    datasets,
    display,
    heading_of,
    in_order,
    measured,
    published_figures,
)
from vhe.runtime.files import atomic_write

FILES = {"csv": "tables.csv", "latex": "tables.tex"}
COLUMNS = "task,dataset,protocol,measure,method,name,column,mean,std,seeds,paper,paper_std"
SIGNS = {"λ": "lambda", "α": "alpha", "±": "pm", "†": "dagger", "‡": "ddagger"}
LATEX = str.maketrans(
    {sign: f"\\{sign}" for sign in "%&_#$"} | {s: f"$\\{name}$" for s, name in SIGNS.items()}
)


class Table(NamedTuple):
    """One measure of a task on a dataset: our figures and the paper's, by method and column."""

    task: Task
    dataset: str
    protocol: str
    measure: str
    ours: dict[tuple[str, Any], Figure]
    paper: dict[tuple[str, Any], Figure]

    def entries(self) -> list[tuple[str, Any]]:
        """Return the entries of methods that were measured, by method and column."""
        methods = in_order(method for method, _ in self.ours)
        columns = sorted({part for _, part in self.ours}, key=lambda part: (str(type(part)), part))
        return [(method, part) for method in methods for part in columns]


def write_tables(results: Path, out: Path, format: Literal["latex", "csv"]) -> Path:
    """Write all tables to one file in the folder ``out``; return it."""
    found = list(read_results(results))
    if not found:
        raise VHEError(
            f"{results}: no finished results: run vhe reproduce --results {results} first"
        )
    tables = list(all_tables(found))
    writer = f"vhe reproduce report --format {format}"
    note = provenance_note(found, "vhe reproduce", writer)
    text = as_csv(tables) if format == "csv" else f"% {note}\n{as_latex(tables)}"
    with atomic_write(out / FILES[format]) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return out / FILES[format]


def all_tables(results: Sequence[Result]) -> Iterator[Table]:
    """Yield the tables of all tasks that have results."""
    for task in get_args(Task):
        mine = [result for result in results if result["task"] == task]
        for dataset in datasets(task, mine) if mine else ():
            for protocol in (None,) if task in WHOLE else PROTOCOLS:
                same = [r for r in mine if (r["dataset"], r.get("protocol")) == (dataset, protocol)]
                for number, measure in enumerate(MEASURES[task] if same else ()):
                    ours, paper = measured(task, measure, same), {}
                    if task in COMPARED and protocol != "clean" and not number:
                        paper = published_figures(task, dataset, {name for name, _ in ours})
                    yield Table(task, dataset, protocol or "", measure, ours, paper)


def as_csv(tables: Sequence[Table]) -> str:
    """Return one row per figure; fractions, empty where there is no figure."""
    file = io.StringIO()
    rows = csv.writer(file, lineterminator="\n")
    rows.writerow(COLUMNS.split(","))
    for table in tables:
        for key in table.entries():
            if key not in table.ours:
                continue
            ours, paper = table.ours[key], table.paper.get(key)
            figures = [ours.mean, ours.std, ours.seeds]
            figures += [None, None] if paper is None else [paper.mean, paper.std]
            written = ["" if value is None else f"{value:.6g}" for value in figures]
            about = [table.task, table.dataset, table.protocol, table.measure]
            rows.writerow([*about, key[0], display(key[0]), key[1], *written])
    return file.getvalue()


def as_latex(tables: Sequence[Table]) -> str:
    """Return one ``tabular`` per table, in percent, the paper's row VHE below."""
    lines: list[str] = []
    for table in tables:
        parts = list(dict.fromkeys(part for _, part in table.entries()))
        title = f"{dataset_name(table.dataset)}, {table.task}, {TITLES[table.measure]}"
        title += f", protocol {table.protocol}" if table.protocol else ""
        heads = [heading_of(table.task, part) for part in parts]
        rows = {
            display(method): [table.ours.get((method, part)) for part in parts]
            for method in dict.fromkeys(method for method, _ in table.entries())
        }
        if table.paper:
            rows[f"{PAPER_NAMES['vhe']} as published"] = [
                table.paper.get(("vhe", part)) for part in parts
            ]
        lines += ["", rf"\begin{{tabular}}{{l{'r' * len(parts)}}}"]
        lines.append(rf"\multicolumn{{{len(parts) + 1}}}{{l}}{{{_escaped(title)}}} \\ \hline")
        lines.append(" & ".join(["method", *map(_escaped, heads)]) + r" \\ \hline")
        for name, figures in rows.items():
            cells = ["--" if figure is None else str(figure) for figure in figures]
            lines.append(" & ".join(map(_escaped, [name, *cells])) + r" \\")
        lines.append(r"\end{tabular}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.translate(LATEX)
