"""Our figures beside the paper's: Markdown pages, one web page, and the pictures of both."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vhe.data.checks import counted
from vhe.errors import VHEError
from vhe.evaluation.experiment import Task
from vhe.paper.figures import draw_all
from vhe.paper.markdown import figure_page, task_page
from vhe.paper.page import web_page
from vhe.paper.results import read_results
from vhe.paper.tables import Result
from vhe.runtime.files import atomic_write

LEGEND = (
    "A cell is our mean ± sample deviation over seeds in percent, the number of seeds in round "
    "brackets, and what the paper prints in square ones: `95.0 ± 0.2 (10) [94.4]`. Without square "
    "brackets it is ours alone; with no figure before them, the paper's alone. Bold is the best of "
    "a column, among ours and among the paper's."
)
PAGES: dict[Task, tuple[str, str]] = {  # title, and what is seen
    "link": ("Link prediction", "Columns: share of the edges that are seen."),
    "classify": ("Vertex classification", "Columns: share of the labels that are shown."),
    "unseen": ("Links of unseen vertices", "Columns: share of the vertices that are seen."),
    "ablation": (
        "Ablations",
        "Rows: the default settings with one of them changed. Columns: share of the edges that "
        "are seen.",
    ),
}
FIGURES = (
    "The paper prints these as pictures without figures, so that there is nothing to put beside "
    "ours but their shape. `vhe reproduce degree`, `lambda`, `alpha`, `structure` and `tsne` "
    "measure them."
)
PICTURES = "figures"  # the folder of the pictures


def write_report(results: Path, out: Path) -> list[Path]:
    """Write the pages of what is in ``results`` to the folder ``out``; returns the files.

    The same results give the same bytes.
    """
    found = list(read_results(results))
    if not found:
        raise VHEError(f"{results} has no finished result; vhe reproduce --results {results} first")
    pictures = draw_all(found, out / PICTURES)
    texts = {"README.md": front(found)}
    for task, (title, seen) in PAGES.items():
        texts[f"{task}.md"] = task_page(task, title, f"{seen} {LEGEND}", found)
    texts["figures.md"] = figure_page(FIGURES, pictures, found, PICTURES)
    texts["index.html"] = web_page(PAGES, LEGEND, origin(found), pictures, found, out / PICTURES)
    for name, text in texts.items():
        with atomic_write(out / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return [out / name for name in texts] + [out / PICTURES / p.file for p in pictures]


def front(results: Sequence[Result]) -> str:
    """The page that leads to the others and says how the figures were made."""
    lines = ["# Results", "", LEGEND, ""]
    for task, (title, _) in PAGES.items():
        cells = counted(sum(result["task"] == task for result in results), "measurement")
        lines.append(f"- [{title}]({task}.md): {cells}")
    others = sum(result["task"] not in PAGES for result in results)
    lines.append(f"- [Figures](figures.md): {counted(others, 'measurement')} more")
    lines.append("- [All of it as one web page](index.html)")
    return "\n".join([*lines, "", *origin(results)]).rstrip() + "\n"


def origin(results: Sequence[Result]) -> list[str]:
    """How the figures were made, a sentence each."""
    told = [result.get("origin", {}) for result in results]
    seconds = sum(float(result["seconds"]) for result in results)
    lines = [f"{counted(len(results), 'measurement')}; fitting took {seconds / 3600:.1f} hours."]
    for title, key in (("Machine", "machine"), ("Commit", "git")):
        values = sorted({str(made[key]) for made in told if made.get(key)})
        if values:
            lines.append(f"{title}: {'; '.join(values)}.")
    return [f"{line}\n" for line in lines]
