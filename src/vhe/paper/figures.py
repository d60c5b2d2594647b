"""The paper's figures with our results: AUC by fraction of edges and by degree, sensitivity to λ, α
and the structure embedding, and a map of Cora."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from vhe.evaluation.drawing import COLOURS, drawing
from vhe.evaluation.experiment import Task
from vhe.evaluation.summary import Figure, group
from vhe.paper.published import PAPER_NAMES, published
from vhe.paper.tables import Result, by_degree, column, dataset_name, display, in_order

CURVES = ("vhe", "pair-vhe", "wane", "pwa", "cane", "tadw", "diffused-text", "tfidf")
NO_LABEL = "#8b929a"
PANEL = (3.9, 2.9)  # inches
MIN_RANGE = 2.0  # of an axis, in percent: differences within noise should look small
LINE = {"marker": "o", "markersize": 3, "elinewidth": 0.8}
DOTS = {"fmt": "o", "markersize": 4, "elinewidth": 1, "capsize": 2}
OFFSET = 0.25  # between dots of the same tick


@dataclass(frozen=True)
class Picture:
    """A picture file with its title and caption."""

    file: str
    task: Task
    title: str
    caption: str


def draw_all(results: Sequence[Result], folder: Path) -> list[Picture]:
    """Draw all figures that there are results for."""
    pictures = []
    for task, draw in _DRAWN.items():
        mine = [result for result in results if result["task"] == task]
        if mine:
            folder.mkdir(parents=True, exist_ok=True)
            mine.sort(key=lambda r: (r["dataset"], r.get("protocol") == "clean", r["seed"]))
            pictures += draw(mine, folder)
    return pictures


def _ratios(results: Sequence[Result], folder: Path) -> list[Picture]:
    """Draw one figure per dataset: our results as solid lines, the paper's as dashed lines."""
    pictures = []
    shown = [result for result in results if result["method"] in CURVES]
    for (dataset,), here in group(shown, ("dataset",)).items():
        name = f"ratio-{dataset}.svg"
        with _panels(folder / name, here, ("protocol",)) as panels:
            for axes, (protocol,), same in panels:
                ours = group(same, ("method",))
                for method, colour in zip(CURVES, COLOURS, strict=True):
                    if found := ours.get((method,)):
                        aucs = _aucs(found, lambda r: 100 * column("link", r))
                        _draw(axes, aucs, **LINE, color=colour, label=display(method))
                    if protocol == "lines":
                        label = None if found else f"{display(method)}, published"
                        _published_curve(axes, dataset, method, color=colour, label=label)
                axes.set_xlabel("fraction of edges seen, %")
                axes.set_xticks(range(15, 100, 20))
                axes.set_title(f"{dataset_name(dataset)}, {protocol}")
        caption = (
            "Solid: our results with the standard deviation over seeds. Dashed: published results "
            "(protocol lines only)."
        )
        title = f"AUC by fraction of edges, {dataset_name(dataset)}"
        pictures.append(Picture(name, "link", title, caption))
    return pictures


def _degrees(results: Sequence[Result], folder: Path) -> list[Picture]:
    colours = dict(zip(in_order(r["method"] for r in results), COLOURS, strict=False))
    with _panels(folder / "degree.svg", results, ("dataset", "protocol")) as panels:
        for axes, (dataset, protocol), same in panels:
            found = by_degree(same)
            for k, method in enumerate(in_order(found)):
                figures = found[method]
                places = np.arange(len(figures)) + (k - (len(found) - 1) / 2) * OFFSET
                dots = dict(zip(places, figures.values(), strict=True))
                _draw(axes, dots, **DOTS, color=colours[method], label=display(method))
                axes.set_xticks(range(len(figures)), list(figures))
            axes.set(title=f"{dataset_name(dataset)}, {protocol}", xlabel="degree (quartiles)")
    caption = (
        "Held-out edges by the degrees of their ends, in quartiles of all linked vertices; bars "
        "show the standard deviation over seeds."
    )
    return [Picture("degree.svg", "degree", "AUC by degree of the vertices", caption)]


def _sensitivity(
    task: Task, symbol: str, caption: str, results: Sequence[Result], folder: Path
) -> list[Picture]:
    colours = dict(zip(group(results, ("dataset", "method")), COLOURS, strict=False))
    with _panels(folder / f"{task}.svg", results, ("protocol",)) as panels:
        for axes, (protocol,), same in panels:
            for (dataset, method), found in group(same, ("dataset", "method")).items():
                label = f"{dataset_name(dataset)}, {display(method)}"
                aucs = _aucs(found, lambda r: column(task, r))
                _draw(axes, aucs, **LINE, color=colours[dataset, method], label=label)
            axes.set(title=protocol, xlabel=symbol)
            low, high = axes.get_ylim()
            if high - low < MIN_RANGE:
                middle = (low + high) / 2
                axes.set_ylim(middle - MIN_RANGE / 2, middle + MIN_RANGE / 2)
    return [Picture(f"{task}.svg", task, f"Sensitivity to {symbol}", caption)]


def _structure(results: Sequence[Result], folder: Path) -> list[Picture]:
    ticks = list(group(results, ("dataset", "method")))
    with _panels(folder / "structure.svg", results, ("protocol",)) as panels:
        for axes, (protocol,), same in panels:
            for k, kind in enumerate(("without", "with")):
                found = [
                    r for r in same if (column("structure", r) == "none") == (kind == "without")
                ]
                aucs = _aucs(found, lambda r: ticks.index((r["dataset"], r["method"])))
                dots = {tick + (k - 0.5) * OFFSET: figure for tick, figure in aucs.items()}
                label = f"{kind} structure embedding"
                _draw(axes, dots, **DOTS, color=COLOURS[k], label=label)
            names = [f"{dataset_name(d)}\n{display(m).replace(', ', chr(10))}" for d, m in ticks]
            axes.set_xticks(range(len(ticks)), names)
            axes.set_title(protocol)
    caption = "95 % of the edges; bars show the standard deviation over seeds."
    return [Picture("structure.svg", "structure", "With and without structure embedding", caption)]


def _map(results: Sequence[Result], folder: Path) -> list[Picture]:
    style = {"markersize": 2.2, "markeredgewidth": 0, "alpha": 0.8}
    with _panels(folder / "tsne.svg", results, ("dataset", "method"), height=3.9) as panels:
        for axes, (dataset, method), (first, *_) in panels:
            points, labels = np.array(first["points"]), first["labels"]
            # The most frequent labels get the most distinct colours.
            names = sorted(
                {v for v in labels if v is not None}, key=lambda v: (-labels.count(v), v)
            )
            for name, colour in [(None, NO_LABEL), *zip(names, COLOURS, strict=False)]:
                rows = [k for k, label in enumerate(labels) if label == name]
                if rows:
                    axes.plot(*points[rows].T, "o", color=colour, **style)
                    label = "no label" if name is None else name
                    axes.plot([], "o", color=colour, label=label, markersize=5)
            axes.set(xticks=[], yticks=[], aspect="equal", ylabel="")
            axes.set_title(f"{dataset_name(dataset)}, {display(method)}, seed {first['seed']}")
            axes.spines[:].set_visible(False)
    caption = (
        "t-SNE of the embedding of the whole network, trained without labels; colours are labels. "
        "Purity is the fraction of the 10 nearest points on the map with the same label."
    )
    return [Picture("tsne.svg", "tsne", "A map of the embedding", caption)]


_DRAWN: dict[Task, Callable[[Sequence[Result], Path], list[Picture]]] = {
    "link": _ratios,
    "degree": _degrees,
    "lambda": partial(
        _sensitivity, "lambda", "λ", "λ is the prior correlation of the codes of linked vertices."
    ),
    "alpha": partial(
        _sensitivity,
        "alpha",
        "α",
        "α is the fraction of the pairs whose edge is treated as unknown in training.",
    ),
    "structure": _structure,
    "tsne": _map,
}


@contextmanager
def _panels(
    path: Path, results: Sequence[Result], keys: Sequence[str], height: float = PANEL[1]
) -> Iterator[list[tuple[Any, tuple[Any, ...], list[Result]]]]:
    """Yield the axes of each panel, the values of ``keys`` and its results; two panels per row."""
    groups = group(results, keys)
    columns, rows = min(len(groups), 2), -(-len(groups) // 2)
    width = 2 * PANEL[0] if columns > 1 else 1.4 * PANEL[0]
    with drawing(path, (width, rows * height), len(groups), columns) as panels:
        for axes in panels:
            axes.set_ylabel("AUC, %")
        yield [(axes, *part) for axes, part in zip(panels, groups.items(), strict=True)]


def _aucs(results: Sequence[Result], place: Callable[[Result], Any]) -> dict[Any, Figure]:
    """Return the AUC by place on the horizontal axis, from left to right."""
    values: dict[Any, list[float]] = {}
    for result in results:
        values.setdefault(place(result), []).append(result["auc"])
    return {key: Figure.of(values[key]) for key in sorted(values)}


def _draw(axes: Any, figures: Mapping[Any, Figure], **style: Any) -> None:
    """Draw means and standard deviations by place on the horizontal axis."""
    means = [100 * figure.mean for figure in figures.values()]
    stds = [100 * (figure.std or 0) for figure in figures.values()]
    axes.errorbar(list(figures), means, yerr=stds, **style)


def _published_curve(axes: Any, dataset: str, method: str, **style: Any) -> None:
    if method != "vhe" and PAPER_NAMES.get(method) == PAPER_NAMES["vhe"]:  # drawn once
        return
    shares = range(15, 100, 10)
    found = {s: figure for s in shares if (figure := published("link", dataset, method, s / 100))}
    if found:
        means = [100 * figure.mean for figure in found.values()]
        axes.plot(list(found), means, linestyle="--", linewidth=0.9, **style)
