"""Our figures beside the paper's, as tables that Markdown and the web page print."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from vhe.data.checks import counted
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

Result = Mapping[str, Any]

OWN_NAMES = {
    "vhe": "VHE",
    "vhe-pairs": "VHE, pair by pair",
    "vhe-paper": "VHE, paper's settings",
    "vhe-texts": "VHE, all texts read",
    "tfidf": "TF-IDF",
    "diffused-text": "Diffused text",
}
ABLATIONS = {  # what each leaves out of the default
    "default": "VHE, nothing left out",
    "text_knn_weight=0.0": "no soft links between near texts",
    "steps=0": "nothing learned: words as they start",
    "link_weight=0.0": "no link term: the bound alone",
    "word_init=random": "words start at random",
    "embedding=average": "embedding averaged over contexts, as in the paper",
    "structure=learned": "a learned table instead of the joint posterior",
    "structure=none": "no structure embedding: texts alone",
}
DATASETS = {"cora": "Cora", "hepth": "HepTh", "zhihu": "Zhihu"}
COMPARED: tuple[Task, ...] = ("link", "classify", "unseen")  # of these the paper prints figures
RULES = {
    "lines": "protocol `lines`, as in earlier papers; it leaks and is_available comparison only",
    "clean": "protocol `clean`: distinct edges, negatives checked; no figures are published for it",
    None: "",
}


@dataclass(frozen=True)
class Entry:
    """A cell of a table: ours, the paper's, or both, and which of them lead their column."""

    ours: Figure | None = None
    paper: Published | None = None
    best: bool = False
    best_of_paper: bool = False
    missing: str = ""  # why ours is not there, where the paper's is


@dataclass(frozen=True)
class Table:
    """A row for each method; ``minor`` measures may be folded away."""

    title: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Entry, ...]], ...]
    note: str = ""
    minor: bool = False


def datasets(task: Task, results: Iterable[Result]) -> list[str]:
    """The datasets that we or the paper have figures of."""
    published_there = (key[0] for key in table(task)) if task in COMPARED else ()
    return list(dict.fromkeys([*published_there, *(r["dataset"] for r in results)]))


def missing(dataset: str, results: Iterable[Result]) -> str:
    """Why a dataset has no figure of ours; nothing where it has one."""
    if any(result["dataset"] == dataset for result in results):
        return ""
    if dataset != "zhihu":
        return "Nothing was measured here yet: every figure is the paper's."
    return (
        "The text of Zhihu (`data.txt`) was not there when this was measured, so that every figure "
        "is the paper's. Where it can be downloaded, or is in `VHE_DATA_DIR`, "
        "`vhe reproduce --datasets zhihu` measures it like the others."
    )


def tables(task: Task, dataset: str, results: Iterable[Result]) -> list[Table]:
    """The tables of a task on a dataset."""
    mine = [r for r in results if (r["task"], r["dataset"]) == (task, dataset)]
    found = []
    for protocol in (None,) if task in WHOLE else ("lines", "clean"):
        same = [result for result in mine if result.get("protocol") == protocol]
        measures = list(MEASURES[task])
        if protocol == "lines":  # is_available comparison only, and the paper prints one measure
            measures = measures[:1]
        elif any("brier" in result for result in same):
            measures += CALIBRATION
        for measure in measures:
            # The paper prints one measure a task, and knows nothing of the clean protocol.
            compared = task in COMPARED and protocol != "clean" and measure == measures[0]
            entries = _entries(task, dataset, measure, same, compared)
            if entries:
                found.append(_table(task, protocol, measure, entries, compared))
    return found


def row(result: Result) -> str:
    """In which row of its table a result stands: its method, or what was changed in it."""
    if result["task"] == "ablation":
        return ablation_name(result.get("settings", {}))
    return str(result["method"])


def column(task: Task, result: Result) -> Any:
    """Where in its table a result stands."""
    if task in VARIED:
        return result["settings"][VARIED[task]]
    return result["labelled" if task == "classify" else "ratio"]


def by_degree(results: Iterable[Result]) -> dict[str, dict[str, Figure]]:
    """AUC of each group of degrees, by method and the group's name."""
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
    """A method's name as it is printed."""
    if method in OWN_NAMES or method in ABLATIONS:
        return (OWN_NAMES | ABLATIONS)[method]
    return PAPER_NAMES.get(method, method).replace("++", "‡").replace("+", "†")


def dataset_name(dataset: str) -> str:
    """A dataset's name as it is printed."""
    return DATASETS.get(dataset, dataset)


def in_order(methods: Iterable[str]) -> list[str]:
    """Methods as the registry has them, ablations as listed here, then what is in neither."""
    present, known = set(methods), (*METHODS, *ABLATIONS)
    return [name for name in known if name in present] + sorted(present - set(known))


def _entries(
    task: Task, dataset: str, measure: str, results: Sequence[Result], compared: bool
) -> dict[tuple[str, Any], Entry]:
    """What stands in the table, by method and column."""
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
    theirs: dict[tuple[str, Any], Published] = {}
    if compared:
        # The paper's VHE has one row to stand in where our second form was not run.
        both = any(method == "vhe-paper" for method, _ in ours)
        for method in PAPER_NAMES:
            for part in sorted({cents / 100 for _, _, cents in table(task)}):
                figure = published(task, dataset, method, part)
                if figure and (method != "vhe-paper" or both):
                    theirs[method, part] = figure
    why = "no text" if dataset == "zhihu" and not results else "not measured"
    entries = {
        key: Entry(ours.get(key), theirs.get(key), missing="" if key in ours else why)
        for key in ours.keys() | theirs.keys()
    }
    return _with_best(entries, low=measure in CALIBRATION)


def _with_best(entries: dict[tuple[str, Any], Entry], low: bool) -> dict[tuple[str, Any], Entry]:
    """Mark what leads each column, as far as the printed digits tell."""
    sign = -1 if low else 1
    ours: dict[Any, float] = {}
    theirs: dict[Any, float] = {}
    for (_, part), entry in entries.items():
        if entry.ours:
            ours[part] = max(ours.get(part, -1e9), sign * round(100 * entry.ours.mean, 1))
        if entry.paper:
            theirs[part] = max(theirs.get(part, -1e9), entry.paper.figure)
    return {
        (method, part): replace(
            entry,
            best=entry.ours is not None and sign * round(100 * entry.ours.mean, 1) == ours[part],
            best_of_paper=entry.paper is not None and entry.paper.figure == theirs[part],
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
    parts = list(dict.fromkeys(part for _, part in entries))  # groups of degrees are in order
    if task != "degree":
        parts.sort(key=lambda part: (isinstance(part, str), part != "none", part))
    title = TITLES[measure][0].upper() + TITLES[measure][1:]
    said = [RULES[protocol]] if RULES[protocol] else []
    said += ["lower is better"] if measure in CALIBRATION else []
    seeds = sorted({entry.ours.seeds for entry in entries.values() if entry.ours})
    if not seeds:
        said.append("nothing was measured here yet")
    elif len(seeds) == 1:
        said.append(counted(seeds[0], "seed"))
    else:
        said.append(f"{seeds[0]} to {seeds[-1]} seeds")
    caption = "; ".join(said)
    return Table(
        title=f"{title}, {protocol}" if protocol else title,
        caption=f"{caption[0].upper()}{caption[1:]}.",
        columns=tuple(_heading(task, part) for part in parts),
        rows=tuple(
            (display(method), tuple(entries.get((method, part), Entry()) for part in parts))
            for method in in_order(method for method, _ in entries)
        ),
        note=_shared(entries.values()) if compared else "",
        minor=measure != MEASURES[task][0],
    )


def _heading(task: Task, part: Any) -> str:
    if task in VARIED:
        if task == "structure":
            return "without" if part == "none" else f"{part}"
        return f"{'λ' if task == 'lambda' else 'α'} = {part:g}"
    return part if isinstance(part, str) else f"{percent(part)} %"


def _shared(entries: Iterable[Entry]) -> str:
    kinds = [(entry.ours is not None, entry.paper is not None) for entry in entries]
    both, own, theirs = (kinds.count(kind) for kind in ((True, True), (True, False), (False, True)))
    return (
        f"{counted(both, 'cell')} with both figures, {own} with ours alone, "
        f"{theirs} with the paper's alone."
    )
