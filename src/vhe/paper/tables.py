"""Tables of our results and the paper's, independent of the output format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
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
from vhe.paper.published import PAPER_NAMES, Published, published, table
from vhe.runtime.messages import counted

Result = Mapping[str, Any]

OWN_NAMES = {
    "vhe": "VHE",
    "pair-vhe": "PairVHE",
    "pair-vhe-paper": "PairVHE, paper's settings",
    "vhe-texts": "VHE, transductive",
    "pwa-controlled": "PWA, controlled",
    "tfidf": "TF-IDF",
    "diffused-text": "Diffused text",
}
ABLATIONS = {  # by method and changed setting
    "vhe default": "VHE, default settings",
    "vhe max_steps=0": "VHE, no training (LSA initialisation)",
    "vhe text_knn_weight=0.0": "VHE, no text-neighbour links",
    "vhe link_strength=2.0": "VHE, link strength fixed at 2",
    "vhe degree_weight=0.0": "VHE, no degree term",
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
    None: "",
}


@dataclass(frozen=True)
class Entry:
    """A table entry: our result, the published one, or both, and whether each is the best."""

    ours: Figure | None = None
    paper: Published | None = None
    best: bool = False
    best_of_paper: bool = False
    missing: str = ""  # the reason, where only the published result exists


@dataclass(frozen=True)
class Table:
    """A table with one row per method; ``minor`` marks secondary measures."""

    title: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Entry, ...]], ...]
    note: str = ""
    minor: bool = False


def datasets(task: Task, results: Iterable[Result]) -> list[str]:
    """Return the datasets with published results or results of ours."""
    published_there = (key[0] for key in table(task)) if task in COMPARED else ()
    return list(dict.fromkeys([*published_there, *(r["dataset"] for r in results)]))


def missing(dataset: str, results: Iterable[Result]) -> str:
    """Return why a dataset has no results of ours; empty if it has some."""
    if any(result["dataset"] == dataset for result in results):
        return ""
    if dataset != "zhihu":
        return "Not measured here yet: all figures are the paper's."
    return (
        "The text of Zhihu (`data.txt`) was not available for these measurements: all figures are "
        "the paper's. Where it can be downloaded, or is in `VHE_DATA_DIR`, "
        "`vhe reproduce --datasets zhihu` measures it."
    )


def tables(task: Task, dataset: str, results: Iterable[Result]) -> list[Table]:
    """Return the tables of a task on a dataset."""
    mine = [r for r in results if (r["task"], r["dataset"]) == (task, dataset)]
    found = []
    for protocol in (None,) if task in WHOLE else ("lines", "clean"):
        same = [result for result in mine if result.get("protocol") == protocol]
        measures = list(MEASURES[task])
        if protocol == "lines":  # serves comparison only, and the paper has one measure
            measures = measures[:1]
        elif any("brier" in result for result in same):
            measures += CALIBRATION
        for measure in measures:
            # The paper has one measure per task, and only under the line protocol.
            compared = task in COMPARED and protocol != "clean" and measure == measures[0]
            entries = _entries(task, dataset, measure, same, compared)
            if entries:
                found.append(_table(task, protocol, measure, entries, compared))
    return found


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


def _entries(
    task: Task, dataset: str, measure: str, results: Sequence[Result], compared: bool
) -> dict[tuple[str, Any], Entry]:
    """Return the entries of a table by method and column."""
    if task == "degree" and measure == "auc":
        entries = {
            (method, part): Entry(figure)
            for method, figures in by_degree(results).items()
            for part, figure in figures.items()
        }
        return _with_best(entries, low=False)
    values: dict[tuple[str, Any], list[float]] = {}
    for result in results:
        if measure in result:
            key = (row(result), column(task, result))
            values.setdefault(key, []).append(result[measure])
    ours = {key: Figure.of(same) for key, same in values.items()}
    published_figures: dict[tuple[str, Any], Published] = {}
    if compared:
        measured = {method for method, _ in ours}
        for method, name in PAPER_NAMES.items():
            # The published VHE is repeated only beside the models that were measured.
            if name == PAPER_NAMES["vhe"] and method != "vhe" and method not in measured:
                continue
            for part in sorted({percentage / 100 for _, _, percentage in table(task)}):
                if figure := published(task, dataset, method, part):
                    published_figures[method, part] = figure
    why = "no text" if dataset == "zhihu" and not results else "not measured"
    entries = {
        key: Entry(ours.get(key), published_figures.get(key), missing="" if key in ours else why)
        for key in ours.keys() | published_figures.keys()
    }
    return _with_best(entries, low=measure in CALIBRATION)


def _with_best(entries: dict[tuple[str, Any], Entry], low: bool) -> dict[tuple[str, Any], Entry]:
    """Mark the best entries of each column, compared at the printed precision."""
    sign = -1 if low else 1
    ours: dict[Any, float] = {}
    published_figures: dict[Any, float] = {}
    for (_, part), entry in entries.items():
        if entry.ours:
            ours[part] = max(ours.get(part, -1e9), sign * round(100 * entry.ours.mean, 1))
        if entry.paper:
            published_figures[part] = max(published_figures.get(part, -1e9), entry.paper.figure)
    return {
        (method, part): replace(
            entry,
            best=entry.ours is not None and sign * round(100 * entry.ours.mean, 1) == ours[part],
            best_of_paper=entry.paper is not None and entry.paper.figure == published_figures[part],
        )
        for (method, part), entry in entries.items()
    }


def _table(
    task: Task,
    protocol: str | None,
    measure: str,
    entries: Mapping[tuple[str, Any], Entry],
    compared: bool,
) -> Table:
    parts = list(dict.fromkeys(part for _, part in entries))  # degree groups are sorted
    if task != "degree":
        parts.sort(key=lambda part: (isinstance(part, str), part != "none", part))
    title = TITLES[measure][0].upper() + TITLES[measure][1:]
    notes = [RULES[protocol]] if RULES[protocol] else []
    notes += ["lower is better"] if measure in CALIBRATION else []
    seeds = sorted({entry.ours.seeds for entry in entries.values() if entry.ours})
    if not seeds:
        notes.append("not measured here yet")
    elif len(seeds) == 1:
        notes.append(counted(seeds[0], "seed"))
    else:
        notes.append(f"{seeds[0]} to {seeds[-1]} seeds")
    caption = "; ".join(notes)
    return Table(
        title=f"{title}, {protocol}" if protocol else title,
        caption=f"{caption[0].upper()}{caption[1:]}.",
        columns=tuple(_heading(task, part) for part in parts),
        rows=tuple(
            (display(method), tuple(entries.get((method, part), Entry()) for part in parts))
            for method in in_order(method for method, _ in entries)
        ),
        note=_coverage(entries.values()) if compared else "",
        minor=measure != MEASURES[task][0],
    )


def _heading(task: Task, part: Any) -> str:
    if task in VARIED:
        if task == "structure":
            return "without" if part == "none" else f"{part}"
        return f"{'λ' if task == 'lambda' else 'α'} = {part:g}"
    return part if isinstance(part, str) else f"{percent(part)} %"


def _coverage(entries: Iterable[Entry]) -> str:
    kinds = [(entry.ours is not None, entry.paper is not None) for entry in entries]
    both, ours, paper = (kinds.count(kind) for kind in ((True, True), (True, False), (False, True)))
    return (
        f"{counted(both, 'entry', 'entries')} with both results, {ours} with ours only, "
        f"{paper} with the paper's only."
    )
