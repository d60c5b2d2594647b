"""The report of our results and the paper's: Markdown pages and figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vhe.evaluation.experiment import Task
from vhe.paper.figures import Picture, draw_all
from vhe.paper.heart import heart_table, read_records
from vhe.paper.networks import TITLE, networks_page
from vhe.paper.overview import provenance_note, summary
from vhe.paper.results import stored_results
from vhe.paper.tables import Result, dataset_name, datasets, missing, tables
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
        "edges seen. `vhe report-tables --task ablation` has the other measures. Where few links "
        "are seen, the link posterior of `VHE` may use the embedding alone: its rows are equal "
        "there.",
    ),
}
FIGURES = (
    "The paper shows these results as plots without values, so only their shapes can be compared. "
    "`vhe reproduce degree`, `lambda`, `alpha`, `structure` and `tsne` measure them."
)
HEART = (
    "Link prediction on a fixed public split ([Li et al. 2023](https://arxiv.org/abs/2306.10453)), "
    "in percent, mean ± sample standard deviation. The first five columns rank each test link "
    "against all test negatives, the last two against 500 hard negatives of its own. "
    "`vhe reproduce heart --seeds 0-9` measures `VHE`, with `--methods` and fewer seeds the other "
    "rows in bold; the rest is quoted from the named source. Settings and the link posterior of "
    "`VHE` use the validation links only; the other methods hold out training links. Adamic-Adar "
    "(measured) and AA (published) are the same method, which checks the protocol."
)
PICTURES = "figures"  # folder


def write_report(results: Path, out: Path) -> list[Path]:
    """Write the report of the results to the folder ``out``; return the files.

    Equal results give equal bytes.
    """
    found = stored_results(results)
    pictures = draw_all(found, out / PICTURES)
    pages = {"README.md": overview(found), "figures.md": figure_page(pictures, found)}
    for task, (title, seen) in PAGES.items():
        pages[f"{task}.md"] = task_page(task, title, f"{seen} {LEGEND}", found)
    if (results / "heart").is_dir():
        note = provenance_note(read_records(results), "vhe reproduce heart")
        pages["heart.md"] = ["# HeaRT's Citeseer", "", HEART, "", *heart_table(results), "", note]
        pages["README.md"] += ["- [A public benchmark: HeaRT's Citeseer](heart.md)"]
    if (results / "networks").is_dir():
        pages["networks.md"] = networks_page(results)
        pages["README.md"] += [f"- [{TITLE}, with its ablation](networks.md)"]
    for name, lines in pages.items():
        with atomic_write(out / name) as temporary:
            temporary.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    return [out / name for name in pages] + [out / PICTURES / p.file for p in pictures]


def task_page(task: Task, title: str, about: str, results: Sequence[Result]) -> list[str]:
    """Return the lines of the page of a task, with one section per dataset."""
    mine = [result for result in results if result["task"] == task]
    lines = [f"# {title}", "", about, ""]
    if mine:
        lines += [provenance_note(mine, f"vhe reproduce {task}"), ""]
    for dataset in datasets(task, mine):
        lines += [f"## {dataset_name(dataset)}", "", *missing(dataset, mine)]
        lines += tables(task, dataset, mine)
    return lines


def figure_page(pictures: Sequence[Picture], results: Sequence[Result]) -> list[str]:
    """Return the lines of the page of the figures, each followed by its values."""
    lines = ["# Figures", "", FIGURES, ""]
    for picture in pictures:
        lines += [f"## {picture.title}", "", picture.caption, ""]
        lines += [f"![{picture.title}]({PICTURES}/{picture.file})", ""]
        mine = [result for result in results if result["task"] == picture.task]
        lines += [provenance_note(mine, f"vhe reproduce {picture.task}"), ""]
        if picture.task != "link":  # has its own page
            for dataset in datasets(picture.task, mine):
                lines += tables(picture.task, dataset, mine, all_measures=False)
    return lines


def overview(results: Sequence[Result]) -> list[str]:
    """Return the lines of the page that sums up the results and links to the others."""
    lines = ["# Results", "", *summary(results), "", provenance_note(results, "vhe reproduce"), ""]
    for task, (title, _) in PAGES.items():
        count = counted(sum(result["task"] == task for result in results), "measurement")
        lines.append(f"- [{title}]({task}.md): {count}")
    others = sum(result["task"] not in PAGES for result in results)
    lines.append(f"- [Figures](figures.md): {counted(others, 'measurement')} more")
    return lines
