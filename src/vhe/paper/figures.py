"""The paper's figures with our results: AUC by fraction of edges and by degree, sensitivity to λ, α
and the structure embedding, and a map of Cora."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vhe.evaluation.drawing import COLOURS, drawing
from vhe.evaluation.experiment import VARIED, Task
from vhe.evaluation.summary import Figure
from vhe.paper.published import PAPER_NAMES, published
from vhe.paper.tables import Result, by_degree, column, dataset_name, display, in_order

CURVES = ("vhe", "pair-vhe", "pair-vhe-paper", "pwa", "cane", "tadw", "diffused-text", "tfidf")
NO_LABEL = "#8b929a"
PANEL = (3.9, 2.9)  # inches
PROTOCOLS = ("lines", "clean")


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
            pictures += draw(mine, folder)
    return pictures


def _ratios(results: Sequence[Result], folder: Path) -> list[Picture]:
    """Draw one figure per dataset: our results as solid lines, the paper's as dashed lines."""
    pictures = []
    for dataset in dict.fromkeys(result["dataset"] for result in results):
        here = [r for r in results if r["dataset"] == dataset and r["method"] in CURVES]
        if not here:
            continue
        rules = [p for p in PROTOCOLS if any(r["protocol"] == p for r in here)]
        name = f"ratio-{dataset}.svg"
        with _panels(folder / name, len(rules)) as panels:
            for axes, protocol in zip(panels, rules, strict=True):
                same = [result for result in here if result["protocol"] == protocol]
                for method, colour in zip(CURVES, COLOURS, strict=True):
                    drawn = _curve(axes, "link", method, same, colour)
                    if protocol == "lines":
                        label = None if drawn else f"{display(method)}, published"
                        _published_curve(axes, dataset, method, colour, label)
                axes.set(title=f"{dataset_name(dataset)}, {protocol}", ylabel="AUC, %")
                axes.set_xlabel("fraction of edges seen, %")
                axes.set_xticks(range(15, 100, 20))
        pictures.append(
            Picture(
                name,
                "link",
                f"AUC by fraction of edges, {dataset_name(dataset)}",
                "Solid: our results with the standard deviation over seeds. Dashed: published "
                "results (protocol lines only).",
            )
        )
    return pictures


def _degrees(results: Sequence[Result], folder: Path) -> list[Picture]:
    shown = _combinations(results)
    colours = dict(zip(in_order(r["method"] for r in results), COLOURS, strict=False))
    with _panels(folder / "degree.svg", len(shown)) as panels:
        for axes, (dataset, protocol, same) in zip(panels, shown, strict=True):
            found = by_degree(same)
            for k, method in enumerate(in_order(found)):
                figures = found[method]
                places = np.arange(len(figures)) + (k - (len(found) - 1) / 2) * 0.25
                _points(axes, places, list(figures.values()), display(method), colours[method])
                axes.set_xticks(range(len(figures)), list(figures))
            axes.set(title=f"{dataset_name(dataset)}, {protocol}", ylabel="AUC, %")
            axes.set_xlabel("degree (quartiles)")
    return [
        Picture(
            "degree.svg",
            "degree",
            "AUC by degree of the vertices",
            "Held-out edges by the degrees of their ends, in quartiles of all linked vertices; "
            "bars show the standard deviation over seeds.",
        )
    ]


MIN_RANGE = 2.0  # of an axis, in percent: differences within noise should look small


def _sensitivity(task: Task, symbol: str, caption: str) -> Callable[..., list[Picture]]:
    def draw(results: Sequence[Result], folder: Path) -> list[Picture]:
        rules = [p for p in PROTOCOLS if any(r["protocol"] == p for r in results)]
        lines = dict.fromkeys((result["dataset"], result["method"]) for result in results)
        with _panels(folder / f"{task}.svg", len(rules)) as panels:
            for axes, protocol in zip(panels, rules, strict=True):
                for (dataset, method), colour in zip(lines, COLOURS, strict=False):
                    same = [
                        r
                        for r in results
                        if (r["dataset"], r["method"], r["protocol"]) == (dataset, method, protocol)
                    ]
                    label = f"{dataset_name(dataset)}, {display(method)}"
                    _curve(axes, task, method, same, colour, label, scale=1)
                axes.set(title=protocol, xlabel=symbol, ylabel="AUC, %")
                low, high = axes.get_ylim()
                if high - low < MIN_RANGE:
                    middle = (low + high) / 2
                    axes.set_ylim(middle - MIN_RANGE / 2, middle + MIN_RANGE / 2)
        return [Picture(f"{task}.svg", task, f"Sensitivity to {symbol}", caption)]

    return draw


def _structure(results: Sequence[Result], folder: Path) -> list[Picture]:
    rules = [p for p in PROTOCOLS if any(r["protocol"] == p for r in results)]
    bars = list(dict.fromkeys((result["dataset"], result["method"]) for result in results))
    with _panels(folder / "structure.svg", len(rules)) as panels:
        for axes, protocol in zip(panels, rules, strict=True):
            for k, without in enumerate((True, False)):
                figures = [
                    _figure(
                        r["auc"]
                        for r in results
                        if (r["dataset"], r["method"], r["protocol"]) == (*bar, protocol)
                        and (r["settings"][VARIED["structure"]] == "none") == without
                    )
                    for bar in bars
                ]
                places = np.arange(len(bars)) + (k - 0.5) * 0.25
                label = f"{'without' if without else 'with'} structure embedding"
                _points(axes, places, figures, label, COLOURS[k])
            names = [f"{dataset_name(d)}\n{display(m).replace(', ', chr(10))}" for d, m in bars]
            axes.set_xticks(range(len(bars)), names)
            axes.set(title=protocol, ylabel="AUC, %")
    caption = "95 % of the edges; bars show the standard deviation over seeds."
    return [Picture("structure.svg", "structure", "With and without structure embedding", caption)]


def _map(results: Sequence[Result], folder: Path) -> list[Picture]:
    firsts: dict[tuple[str, str], Result] = {}
    for result in sorted(results, key=lambda r: r["seed"]):
        firsts.setdefault((result["dataset"], result["method"]), result)
    with _panels(folder / "tsne.svg", len(firsts), height=3.9) as panels:
        for axes, ((dataset, method), result) in zip(panels, firsts.items(), strict=True):
            points = np.array(result["points"])
            labels = result["labels"]
            # The most frequent labels get the most distinct colours.
            names = sorted(
                {v for v in labels if v is not None}, key=lambda v: (-labels.count(v), v)
            )
            for name, colour in [(None, NO_LABEL), *zip(names, COLOURS, strict=False)]:
                rows = [k for k, label in enumerate(labels) if label == name]
                style = {"markersize": 2.2, "markeredgewidth": 0, "alpha": 0.8}
                label = "no label" if name is None else name
                if rows:
                    axes.plot(*points[rows].T, "o", color=colour, **style)
                    axes.plot([], "o", color=colour, label=label, markersize=5)
            axes.set(xticks=[], yticks=[], aspect="equal")
            axes.set_title(f"{dataset_name(dataset)}, {display(method)}, seed {result['seed']}")
            axes.spines[:].set_visible(False)
    caption = (
        "t-SNE of the embedding of the whole network, trained without labels; colours are labels. "
        "Purity is the fraction of the 10 nearest points on the map with the same label."
    )
    return [Picture("tsne.svg", "tsne", "A map of the embedding", caption)]


_DRAWN: dict[Task, Callable[[Sequence[Result], Path], list[Picture]]] = {
    "link": _ratios,
    "degree": _degrees,
    "lambda": _sensitivity(
        "lambda", "λ", "λ is the prior correlation of the codes of linked vertices."
    ),
    "alpha": _sensitivity(
        "alpha", "α", "α is the fraction of the pairs whose edge is treated as unknown in training."
    ),
    "structure": _structure,
    "tsne": _map,
}


def _panels(path: Path, count: int, height: float = PANEL[1]) -> Any:
    """Return axes in rows of two."""
    columns, rows = min(count, 2), -(-count // 2)
    width = 2 * PANEL[0] if columns > 1 else 1.4 * PANEL[0]
    return drawing(path, (width, rows * height), count, columns)


def _combinations(results: Sequence[Result]) -> list[tuple[str, str, list[Result]]]:
    """Return the results of each dataset and protocol."""
    found = []
    for dataset in dict.fromkeys(result["dataset"] for result in results):
        for protocol in PROTOCOLS:
            same = [r for r in results if (r["dataset"], r["protocol"]) == (dataset, protocol)]
            if same:
                found.append((dataset, protocol, same))
    return found


def _curve(
    axes: Any,
    task: Task,
    method: str,
    results: Sequence[Result],
    colour: str,
    label: str | None = None,
    scale: float = 100,
) -> bool:
    """Draw the AUC of a method; return False if it has no results."""
    values: dict[float, list[float]] = {}
    for result in results:
        if result["method"] == method:
            values.setdefault(scale * column(task, result), []).append(result["auc"])
    if not values:
        return False
    shares = sorted(values)
    figures = [Figure.of(values[share]) for share in shares]
    axes.errorbar(
        shares,
        [100 * figure.mean for figure in figures],
        yerr=[100 * (figure.std or 0) for figure in figures],
        color=colour,
        marker="o",
        markersize=3,
        elinewidth=0.8,
        label=label or display(method),
    )
    return True


def _published_curve(axes: Any, dataset: str, method: str, colour: str, label: str | None) -> None:
    if method != "vhe" and PAPER_NAMES.get(method) == PAPER_NAMES["vhe"]:  # drawn once
        return
    shares = [share / 100 for share in range(15, 100, 10)]
    found = {s: figure for s in shares if (figure := published("link", dataset, method, s))}
    if found:
        heights = [figure.figure for figure in found.values()]
        style = {"color": colour, "linestyle": "--", "linewidth": 0.9, "label": label}
        axes.plot([100 * s for s in found], heights, **style)


def _points(
    axes: Any, places: Any, figures: Sequence[Figure | None], label: str, colour: str
) -> None:
    here = [(place, figure) for place, figure in zip(places, figures, strict=True) if figure]
    axes.errorbar(
        [place for place, _ in here],
        [100 * figure.mean for _, figure in here],
        yerr=[100 * (figure.std or 0) for _, figure in here],
        fmt="o",
        color=colour,
        markersize=4,
        elinewidth=1,
        capsize=2,
        label=label,
    )


def _figure(values: Any) -> Figure | None:
    listed = list(values)
    return Figure.of(listed) if listed else None
