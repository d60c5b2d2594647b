"""The report of our results and the paper's: Markdown pages, a web page and figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vhe.errors import VHEError
from vhe.evaluation.experiment import Task
from vhe.paper.figures import draw_all
from vhe.paper.markdown import figure_page, task_page
from vhe.paper.page import web_page
from vhe.paper.results import read_results
from vhe.paper.tables import Result
from vhe.runtime.files import atomic_write
from vhe.runtime.messages import counted

LEGEND = (
    "Each entry is our mean ± sample standard deviation over seeds in percent, the number of seeds "
    "in parentheses, and the published result in square brackets: `95.0 ± 0.2 (10) [94.4]`. An "
    "entry without square brackets has no published result; one without a figure before them was "
    "not measured here. Bold marks the best of a column, separately for ours and the paper's."
)
PAGES: dict[Task, tuple[str, str]] = {  # title and meaning of the columns
    "link": ("Link prediction", "Columns: fraction of the edges seen."),
    "classify": ("Vertex classification", "Columns: fraction of the labels seen."),
    "unseen": ("Links of unseen vertices", "Columns: fraction of the vertices seen."),
    "ablation": (
        "Ablations",
        "Rows: the default settings of a model with one of them changed. Columns: fraction of the "
        "edges seen.",
    ),
}
FIGURES = (
    "The paper shows these results as plots without values, so only their shapes can be compared. "
    "`vhe reproduce degree`, `lambda`, `alpha`, `structure` and `tsne` measure them."
)
PICTURES = "figures"  # folder


def write_report(results: Path, out: Path) -> list[Path]:
    """Write the report of the results to the folder ``out``; return the files.

    Equal results give equal bytes.
    """
    found = list(read_results(results))
    if not found:
        raise VHEError(
            f"{results}: no finished results: run vhe reproduce --results {results} first"
        )
    pictures = draw_all(found, out / PICTURES)
    texts = {"README.md": overview(found)}
    for task, (title, seen) in PAGES.items():
        texts[f"{task}.md"] = task_page(task, title, f"{seen} {LEGEND}", found)
    texts["figures.md"] = figure_page(FIGURES, pictures, found, PICTURES)
    texts["index.html"] = web_page(PAGES, LEGEND, origin(found), pictures, found, out / PICTURES)
    for name, text in texts.items():
        with atomic_write(out / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return [out / name for name in texts] + [out / PICTURES / p.file for p in pictures]


def overview(results: Sequence[Result]) -> str:
    """Return the page that links to the others."""
    lines = ["# Results", "", LEGEND, ""]
    for task, (title, _) in PAGES.items():
        count = counted(sum(result["task"] == task for result in results), "measurement")
        lines.append(f"- [{title}]({task}.md): {count}")
    others = sum(result["task"] not in PAGES for result in results)
    lines.append(f"- [Figures](figures.md): {counted(others, 'measurement')} more")
    lines.append("- [Everything on one web page](index.html)")
    return "\n".join([*lines, "", *origin(results)]).rstrip() + "\n"


def origin(results: Sequence[Result]) -> list[str]:
    """Return sentences on the number, the duration and the environment of the measurements."""
    origins = [result.get("origin", {}) for result in results]
    seconds = sum(float(result["seconds"]) for result in results)
    lines = [f"{counted(len(results), 'measurement')}; fitting took {seconds / 3600:.1f} hours."]
    for title, key in (("Machine", "machine"), ("Commit", "git")):
        values = sorted({str(origin[key]) for origin in origins if origin.get(key)})
        if values:
            lines.append(f"{title}: {'; '.join(values)}.")
    return [f"{line}\n" for line in lines]
