"""Tables of our results and the paper's, in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from vhe.evaluation.experiment import (
    CALIBRATION,
    MEASURES,
    TITLES,
    VARIED,
    WHOLE,
    Task,
    ablation_name,
    percent,
)
from vhe.evaluation.methods import METHODS
from vhe.evaluation.summary import Figure, group
from vhe.paper.grid import PROTOCOLS
from vhe.paper.published import PAPER_NAMES, published, table
from vhe.runtime.messages import counted

Result = Mapping[str, Any]
Figures = dict[tuple[str, Any], Figure]  # by row and column

OWN_NAMES = {
    "vhe": "VHE",
    "vhe-one-scale": "VHE, one scale",
    "pair-vhe": "PairVHE",
    "pair-vhe-paper": "PairVHE, paper's settings",
    "pair-vhe-paper-untrained": "PairVHE, paper's settings, untrained",
    "vhe-texts": "VHE, transductive",
    "pwa-controlled": "PWA, controlled",
    "tfidf": "TF-IDF",
    "gcn-mlp": "GCN",
    "gcn-ncn": "GCN, common neighbours",
    "sage-mlp": "GraphSAGE",
    "sage-ncn": "GraphSAGE, common neighbours",
    "gcn-mlp-sentences": "GCN on sentence vectors",
    "gcn-ncn-sentences": "GCN on sentence vectors, common neighbours",
    "sage-mlp-sentences": "GraphSAGE on sentence vectors",
    "sage-ncn-sentences": "GraphSAGE on sentence vectors, common neighbours",
    "node2vec-text": "node2vec and LSA",
    "sentences": "Sentence vectors",
    "adamic-adar": "Adamic-Adar",
    "katz": "Katz",
    "diffused-text": "Diffused text",
}
ABLATIONS = {  # by method and changed setting
    "vhe default": "VHE, default settings",
    "vhe max_steps=0": "VHE, no training (LSA initialisation)",
    "vhe text_knn_weight=0.0": "VHE, no text-neighbour links",
    "vhe link_strength=0.0": "VHE, embedding without links",
    "vhe link_strength=2.0": "VHE, link strength fixed at 2",
    "vhe link_features=words,degree,structure": "VHE, link posterior without scales",
    "vhe link_features=scales,degree,structure": "VHE, link posterior without words",
    "vhe link_features=scales,words,structure": "VHE, link posterior without degrees",
    "vhe link_features=scales,words,degree": "VHE, link posterior without structure",
    "vhe link_features=": "VHE, link posterior of the embedding only",
    "vhe word_init=random": "VHE, random initial word vectors",
    "pair-vhe default": "PairVHE, default settings",
    "pair-vhe homophily=0.0": "PairVHE, no homophily (λ = 0)",
    "pair-vhe structure=none": "PairVHE, no structure embeddings",
    "pair-vhe near_pairs=0": "PairVHE, no text-neighbour pairs",
    "pair-vhe word_init=random": "PairVHE, random initial word vectors",
    "pair-vhe link_weight=0.0": "PairVHE, no link term (ELBO only)",
    "pair-vhe alpha=0.0": "PairVHE, no unknown edges (α = 0)",
    "pair-vhe structure_rate=0.0001": "PairVHE, one step size for all parameters",
    "pair-vhe target=max": "PairVHE, max-pooled target",
}
DATASETS = {"cora": "Cora", "hepth": "HepTh", "zhihu": "Zhihu"}
COMPARED: tuple[Task, ...] = ("link", "classify", "unseen")  # with published figures
RULES = {
    "lines": "protocol `lines`, as in earlier papers; it leaks and serves comparison only",
    "clean": "protocol `clean`: distinct edges, checked negatives; no published results",
}


def datasets(task: Task, results: Iterable[Result]) -> list[str]:
    """Return the datasets with published results or results of ours."""
    published_there = (key[0] for key in table(task)) if task in COMPARED else ()
    return list(dict.fromkeys([*published_there, *(r["dataset"] for r in results)]))


def missing(dataset: str, results: Iterable[Result]) -> list[str]:
    """Return a paragraph on why a dataset has no results of ours; none if it has some."""
    if any(result["dataset"] == dataset for result in results):
        return []
    if dataset != "zhihu":
        return ["Not measured here yet: all figures are the paper's.", ""]
    return [
        "The text of Zhihu (`data.txt`) was not available for these measurements: all figures are "
        "the paper's. Where it can be downloaded, or is in `VHE_DATA_DIR`, "
        "`vhe reproduce --datasets zhihu` measures it.",
        "",
    ]


def tables(
    task: Task, dataset: str, results: Iterable[Result], *, all_measures: bool = True
) -> list[str]:
    """Return the lines of the tables of a task on a dataset; by default one per measure."""
    mine = [r for r in results if (r["task"], r["dataset"]) == (task, dataset)]
    lines = []
    for protocol in (None,) if task in WHOLE else PROTOCOLS:
        same = [result for result in mine if result.get("protocol") == protocol]
        first, *others = MEASURES[task]
        if any("brier" in result for result in same):
            others += CALIBRATION
        # The line protocol serves comparison only, and the paper has one measure per task.
        if protocol == "lines" or not all_measures:
            others = []
        elif task == "ablation":
            others = ["mrr"]
        for measure in (first, *others):
            ours, paper = measured(task, measure, same), {}
            compared = task in COMPARED and protocol != "clean" and measure == first
            if compared:
                paper = published_figures(task, dataset, {method for method, _ in ours})
            if ours or paper:
                title = TITLES[measure][0].upper() + TITLES[measure][1:]
                prefix = "" if all_measures else f"{dataset_name(dataset)}: "
                heading = f"### {prefix}{title}" + (f", {protocol}" if protocol else "")
                lines += [heading, "", _caption(protocol, measure, ours), ""]
                why = "no text" if dataset == "zhihu" and not same else "not measured"
                lines += _rows(task, ours, paper, why, low=measure in CALIBRATION)
                lines += ["", _coverage(ours, paper), ""] if compared else [""]
    return lines


def row(result: Result) -> str:
    """Return the row of a result: its method, for ablations with the changed setting."""
    if result["task"] == "ablation":
        return f"{result['method']} {ablation_name(result.get('settings', {}))}"
    return str(result["method"])


def column(task: Task, result: Result) -> Any:
    """Return the column of a result."""
    if task in VARIED:
        return result["settings"][VARIED[task]]
    return result["labelled" if task == "classify" else "ratio"]


def by_degree(results: Iterable[Result]) -> dict[str, dict[str, Figure]]:
    """Return the AUC by method and degree group."""
    found: dict[str, dict[str, Figure]] = {}
    for (method,), same in group(results, ("method",)).items():
        parts: dict[tuple[int, int], list[float]] = {}
        for part in (part for result in same for part in result["groups"]):
            if part["auc"] is not None:
                parts.setdefault((part["least"], part["most"]), []).append(part["auc"])
        found[method] = {
            str(a) if a == b else f"{a}–{b}": Figure.of(parts[a, b]) for a, b in sorted(parts)
        }
    return found


def display(method: str) -> str:
    """Return the display name of a method or ablation."""
    if method in OWN_NAMES or method in ABLATIONS:
        return (OWN_NAMES | ABLATIONS)[method]
    return PAPER_NAMES.get(method, method).replace("++", "‡").replace("+", "†")


def dataset_name(dataset: str) -> str:
    """Return the display name of a dataset."""
    return DATASETS.get(dataset, dataset)


def in_order(methods: Iterable[str]) -> list[str]:
    """Sort methods as in the registry, then ablations as in `ABLATIONS`, then others."""
    present, known = set(methods), (*METHODS, *ABLATIONS)
    return [name for name in known if name in present] + sorted(present - set(known))


def measured(task: Task, measure: str, results: Sequence[Result]) -> Figures:
    """Return our figures of a measure."""
    if task == "degree" and measure == "auc":
        return {
            (method, part): figure
            for method, figures in by_degree(results).items()
            for part, figure in figures.items()
        }
    values: dict[tuple[str, Any], list[float]] = {}
    for result in results:
        if measure in result:
            values.setdefault((row(result), column(task, result)), []).append(result[measure])
    return {key: Figure.of(same) for key, same in values.items()}


def published_figures(task: Task, dataset: str, methods: set[str]) -> Figures:
    """Return the paper's figures; VHE's are repeated only beside the models that were measured."""
    return {
        (method, percentage / 100): figure
        for method, name in PAPER_NAMES.items()
        if name != PAPER_NAMES["vhe"] or method == "vhe" or method in methods
        for percentage in sorted({key[2] for key in table(task)})
        if (figure := published(task, dataset, method, percentage / 100))
    }


def _rows(task: Task, ours: Figures, paper: Figures, why: str, low: bool) -> list[str]:
    """Return the lines of a table; ``why`` stands where only the paper has a figure."""
    present = list(dict.fromkeys([*ours, *paper]))
    parts = list(dict.fromkeys(part for _, part in present))  # degree groups are sorted
    if task != "degree":
        parts.sort(key=lambda part: (isinstance(part, str), part != "none", part))
    format_ours, format_paper = _bold_best(ours, low), _bold_best(paper)
    lines = [
        "| method | " + " | ".join(heading_of(task, part) for part in parts) + " |",
        "|---|" + "---|" * len(parts),
    ]
    for method in in_order(method for method, _ in present):
        cells = []
        for key in ((method, part) for part in parts):
            cell = [f"{format_ours(key)} ({ours[key].seeds})"] if key in ours else []
            if key in paper:
                cell = [*(cell or [why]), f"[{format_paper(key)}]"]
            cells.append(" ".join(cell))
        lines.append(f"| {display(method)} | " + " | ".join(cells) + " |")
    return lines


def best_keys(figures: Figures, low: bool = False) -> set[tuple[str, Any]]:
    """Return the best figures of each column with several figures, at the printed precision."""
    printed = {key: round(100 * figure.mean, 1) for key, figure in figures.items()}
    columns: dict[Any, list[float]] = {}
    for (_, part), value in printed.items():
        columns.setdefault(part, []).append(value)
    choose = min if low else max
    best = {part: choose(values) for part, values in columns.items() if len(values) > 1}
    return {key for key, value in printed.items() if value == best.get(key[1])}


def _bold_best(figures: Figures, low: bool = False) -> Callable[[tuple[str, Any]], str]:
    """Return the format of figures: the best of a column in bold."""
    best = best_keys(figures, low)
    return lambda key: f"**{figures[key]}**" if key in best else f"{figures[key]}"


def _caption(protocol: str | None, measure: str, ours: Figures) -> str:
    notes = [RULES[protocol]] if protocol else []
    notes += ["lower is better"] if measure in CALIBRATION else []
    notes.append(seeds_of(ours) if ours else "not measured here yet")
    caption = "; ".join(notes)
    return f"{caption[0].upper()}{caption[1:]}."


def seeds_of(figures: Figures) -> str:
    """Return the numbers of seeds of figures in words."""
    seeds = sorted({figure.seeds or 0 for figure in figures.values()})
    return counted(seeds[0], "seed") if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]} seeds"


def heading_of(task: Task, part: Any) -> str:
    if task == "structure":
        return "without" if part == "none" else f"{part}"
    if task in VARIED:
        return f"{'λ' if task == 'lambda' else 'α'} = {part:g}"
    return part if isinstance(part, str) else f"{percent(part)} %"


def _coverage(ours: Figures, paper: Figures) -> str:
    both = len(ours.keys() & paper.keys())
    return (
        f"{counted(both, 'entry', 'entries')} with both results, {len(ours) - both} with ours "
        f"only, {len(paper) - both} with the paper's only."
    )
