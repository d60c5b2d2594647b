"""Our figures beside the paper's, as Markdown tables: one page a task, and one that leads there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vhe.data.checked import counted
from vhe.data.files import replacing
from vhe.errors import VHEError
from vhe.evaluate.cells import MEASURES, TITLES, Task, percent
from vhe.evaluate.methods import METHODS
from vhe.evaluate.summary import Figure, group
from vhe.paper.published import PAPER_NAMES, published, table
from vhe.paper.runner import read_results

OWN_NAMES = {
    "vhe": "VHE",
    "vhe-paper": "VHE, paper's settings",
    "tfidf": "TF-IDF",
    "diffused-text": "Diffused text",
}
PAGES: dict[Task, tuple[str, str]] = {  # title, and what is seen
    "link": ("Link prediction", "share of the edges that are seen"),
    "classify": ("Vertex classification", "share of the labels that are shown"),
    "unseen": ("Links of unseen vertices", "share of the vertices that are seen"),
}
LEGEND = (
    "A cell is our mean ± deviation over seeds and, in brackets, what the paper prints, all in "
    "percent: `95.0 ± 0.2 (94.4)`. Without brackets it is ours alone; with brackets only, the "
    "paper's alone."
)
RULES = {
    "lines": "protocol `lines`, as in earlier papers; it leaks and serves comparison only",
    "clean": "protocol `clean`: distinct edges, negatives checked; no figures are published for it",
    None: "",
}


@dataclass(frozen=True)
class Entry:
    """A cell of a table: ours, the paper's, or both."""

    ours: Figure | None
    paper: str | None

    def __str__(self) -> str:
        parts = [str(self.ours)] if self.ours else []
        return " ".join(parts + ([f"({self.paper})"] if self.paper else []))


def write_report(results: Path, out: Path) -> list[Path]:
    """Write the pages of what is in ``results`` to the folder ``out``; returns the files."""
    found = list(read_results(results))
    if not found:
        raise VHEError(f"{results} has no finished result; vhe reproduce --results {results} first")
    pages = {f"{task}.md": page(task, found) for task in PAGES}
    written = []
    for name, text in {"README.md": front(found), **pages}.items():
        with replacing(out / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
        written.append(out / name)
    return written


def front(results: Sequence[Mapping[str, Any]]) -> str:
    """The page that leads to the others and says how the figures were made."""
    origins = [result.get("origin", {}) for result in results]
    lines = ["# Results", "", LEGEND, ""]
    for task, (title, _) in PAGES.items():
        cells = counted(sum(result["task"] == task for result in results), "measurement")
        lines.append(f"- [{title}]({task}.md): {cells}")
    lines.append("")
    for title, key in (("Machine", "machine"), ("Commit", "git")):
        values = sorted({str(origin[key]) for origin in origins if origin.get(key)})
        if values:
            lines.append(f"{title}: {'; '.join(values)}.\n")
    return "\n".join(lines).rstrip() + "\n"


def page(task: Task, results: Iterable[Mapping[str, Any]]) -> str:
    """The tables of a task, a section for each dataset."""
    title, seen = PAGES[task]
    lines = [f"# {title}", "", f"Columns: {seen}. {LEGEND}", ""]
    mine = [result for result in results if result["task"] == task]
    datasets = dict.fromkeys([*(key[0] for key in table(task)), *(r["dataset"] for r in mine)])
    for dataset in datasets:
        lines += [f"## {dataset}", ""]
        here = [result for result in mine if result["dataset"] == dataset]
        for protocol in (None,) if task == "classify" else ("lines", "clean"):
            same = [result for result in here if result.get("protocol") == protocol]
            # The line protocol serves comparison only, and the paper prints one measure.
            for measure in MEASURES[task][: 1 if protocol == "lines" else None]:
                lines += _section(task, dataset, protocol, measure, same)
    return "\n".join(lines).rstrip() + "\n"


def _section(
    task: Task,
    dataset: str,
    protocol: str | None,
    measure: str,
    results: Sequence[Mapping[str, Any]],
) -> list[str]:
    """A table with its heading; nothing where neither we nor the paper have a figure."""
    # The paper prints one measure a task, and knows nothing of the clean protocol.
    compared = protocol != "clean" and measure == MEASURES[task][0]
    entries = _entries(task, dataset, measure, results, compared)
    if not entries:
        return []
    name = TITLES[measure]
    name = name[0].upper() + name[1:]
    heading = f"### {name}, {protocol}" if protocol else f"### {name}"
    shares = sorted({share for _, share in entries})
    present = {method for method, _ in entries}
    methods = [name for name in METHODS if name in present] + sorted(present - METHODS.keys())
    lines = [heading, "", _caption(protocol, entries.values()), ""]
    lines.append("| method | " + " | ".join(f"{percent(share)} %" for share in shares) + " |")
    lines.append("|---|" + "---|" * len(shares))
    empty = Entry(None, None)
    for method in methods:
        row = (str(entries.get((method, share), empty)) for share in shares)
        lines.append(f"| {display(method)} | " + " | ".join(row) + " |")
    if compared:
        lines += ["", _shared(entries.values())]
    return [*lines, ""]


def _entries(
    task: Task,
    dataset: str,
    measure: str,
    results: Sequence[Mapping[str, Any]],
    compared: bool,
) -> dict[tuple[str, float], Entry]:
    """What stands in the table, by method and share."""
    share = "labelled" if task == "classify" else "ratio"
    ours = {
        key: Figure.of([result[measure] for result in same])
        for key, same in group(results, ("method", share)).items()
    }
    keys = set(ours)
    if compared:
        for method, paper in PAPER_NAMES.items():
            keys |= {
                (method, cents / 100)
                for where, name, cents in table(task)
                # The paper's VHE has one row to stand in where our second form was not run.
                if (where, name) == (dataset, paper) and (method != "vhe-paper" or _ran(ours))
            }
    entries = {}
    for method, part in keys:
        paper_figure = published(task, dataset, method, part) if compared else None
        entries[method, part] = Entry(
            ours.get((method, part)), str(paper_figure) if paper_figure else None
        )
    return entries


def _ran(ours: Mapping[tuple[Any, ...], Figure]) -> bool:
    return any(method == "vhe-paper" for method, _ in ours)


def _caption(protocol: str | None, entries: Iterable[Entry]) -> str:
    seeds = sorted({entry.ours.seeds for entry in entries if entry.ours})
    said = [RULES[protocol]] if RULES[protocol] else []
    if not seeds:
        said.append("nothing was measured here yet")
    elif len(seeds) == 1:
        said.append(counted(seeds[0], "seed"))
    else:
        said.append(f"{seeds[0]} to {seeds[-1]} seeds")
    text = "; ".join(said)
    return f"{text[0].upper()}{text[1:]}."


def _shared(entries: Iterable[Entry]) -> str:
    kinds = [(entry.ours is not None, entry.paper is not None) for entry in entries]
    both, own, theirs = (kinds.count(kind) for kind in ((True, True), (True, False), (False, True)))
    return (
        f"{counted(both, 'cell')} with both figures, {own} with ours alone, "
        f"{theirs} with the paper's alone."
    )


def display(method: str) -> str:
    """A method's name as it is printed."""
    if method in OWN_NAMES:
        return OWN_NAMES[method]
    return PAPER_NAMES.get(method, method).replace("++", "‡").replace("+", "†")
