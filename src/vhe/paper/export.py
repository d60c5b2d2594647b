"""The tables of our results as CSV or LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple, get_args

from vhe.evaluation.experiment import CALIBRATION, MEASURES, TITLES, WHOLE, Task
from vhe.evaluation.summary import Figure
from vhe.paper.grid import PROTOCOLS
from vhe.paper.published import PAPER_NAMES
from vhe.paper.tables import (
    COMPARED,
    Result,
    best_keys,
    dataset_name,
    datasets,
    display,
    heading_of,
    in_order,
    measured,
    published_figures,
    seeds_of,
)

ABOUT = ("task", "dataset", "protocol", "measure", "method", "name", "column")
COLUMNS = (*ABOUT, "mean", "std", "seeds", "paper", "paper_std")
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


def all_tables(
    results: Sequence[Result], measures: Collection[str] | None = None
) -> Iterator[Table]:
    """Yield the tables of all tasks that have results, of these measures (None: all)."""
    for task in get_args(Task):
        mine = [result for result in results if result["task"] == task]
        for dataset in datasets(task, mine) if mine else ():
            for protocol in (None,) if task in WHOLE else PROTOCOLS:
                same = [r for r in mine if (r["dataset"], r.get("protocol")) == (dataset, protocol)]
                for number, measure in enumerate(_measures(task, same)):
                    if measures is not None and measure not in measures:
                        continue
                    ours, paper = measured(task, measure, same), {}
                    if task in COMPARED and protocol != "clean" and not number:
                        paper = published_figures(task, dataset, {name for name, _ in ours})
                    if ours:
                        yield Table(task, dataset, protocol or "", measure, ours, paper)


def _measures(task: Task, results: Sequence[Result]) -> list[str]:
    """Return the measures that the results of a task have."""
    names = (*MEASURES[task], *CALIBRATION)
    return [name for name in names if any(name in result for result in results)]


def records(tables: Sequence[Table]) -> list[dict[str, Any]]:
    """Return one record per figure, as fractions; None where there is no figure."""
    found = []
    for table in tables:
        for key in table.entries():
            if key not in table.ours:
                continue
            ours, paper = table.ours[key], table.paper.get(key)
            figures = [ours.mean, ours.std, ours.seeds]
            figures += [None, None] if paper is None else [paper.mean, paper.std]
            about = [table.task, table.dataset, table.protocol, table.measure]
            values = [*about, key[0], display(key[0]), key[1], *figures]
            found.append(dict(zip(COLUMNS, values, strict=True)))
    return found


def as_csv(tables: Sequence[Table]) -> str:
    """Return one row per figure; fractions, empty where there is no figure."""
    file = io.StringIO()
    rows = csv.DictWriter(file, COLUMNS, lineterminator="\n")
    rows.writeheader()
    for record in records(tables):
        rows.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in record.items()})
    return file.getvalue()


def as_latex(tables: Sequence[Table]) -> str:
    """Return one ``tabular`` per table, in percent, the paper's row VHE below.

    The best of our figures in a column are bold.
    """
    lines: list[str] = []
    for table in tables:
        parts = list(dict.fromkeys(part for _, part in table.entries()))
        heads = [heading_of(table.task, part) for part in parts]
        best = best_keys(table.ours, low=table.measure in CALIBRATION)
        lines += ["", rf"\begin{{tabular}}{{l{'r' * len(parts)}}}"]
        lines.append(
            rf"\multicolumn{{{len(parts) + 1}}}{{l}}{{{_escaped(_title(table))}}} \\ \hline"
        )
        lines.append(" & ".join(["method", *map(_escaped, heads)]) + r" \\ \hline")
        for method in dict.fromkeys(method for method, _ in table.entries()):
            cells = [_cell(table.ours.get((method, p)), (method, p) in best) for p in parts]
            lines.append(" & ".join([_escaped(display(method)), *cells]) + r" \\")
        if table.paper:
            cells = [_cell(table.paper.get(("vhe", part))) for part in parts]
            lines.append(" & ".join([f"{PAPER_NAMES['vhe']} as published", *cells]) + r" \\")
        lines.append(r"\end{tabular}")
    return "\n".join(lines) + "\n"


def _title(table: Table) -> str:
    """Return the title of a table, with its numbers of seeds."""
    protocol = f", protocol {table.protocol}" if table.protocol else ""
    about = f"{dataset_name(table.dataset)}, {table.task}, {TITLES[table.measure]}"
    return f"{about}{protocol}, {seeds_of(table.ours)}"


def _cell(figure: Figure | None, bold: bool = False) -> str:
    if figure is None:
        return "--"
    text = _escaped(str(figure))
    return rf"\textbf{{{text}}}" if bold else text


def _escaped(text: str) -> str:
    return text.translate(LATEX)
