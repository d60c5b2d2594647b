"""The page of the link posterior on networks of other kinds, and its ablation.

`benchmarks/link_posterior.py` and `benchmarks/ablation.py` write the results: one file per network.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

NETWORKS = {
    "cora": "Cora",
    "hepth": "HepTh",
    "seealso": "See Also",
    "debian": "Debian packages",
    "perl": "Perl modules",
    "headers": "C++ headers",
    "debian-core": "Debian packages, dense core",
    "imports-core": "Python modules, dense core",
    "small-cora": "Neighbourhoods of Cora",
    "small-hepth": "Neighbourhoods of HepTh",
    "small-seealso": "Neighbourhoods of See Also",
}
COMPARED = {
    "vhe": "`VHE`",
    "one scale": "one scale",
    "diffused-text": "diffused text",
    "tfidf": "TF-IDF",
    "tadw": "TADW",
    "adamic-adar": "Adamic-Adar",
    "deepwalk": "DeepWalk",
}
REMOVED = {
    "scales": "scales",
    "words": "words",
    "degree": "degree",
    "structure": "structure",
    "scales,words,degree,structure": "all of them",
}
CLOSE = ("one scale", "diffused-text", "tfidf")
TITLE = "The link posterior on other networks"
ABOUT = (
    "AUC / MRR in percent, protocol `clean`, mean over seeds that are not those of the other "
    "tables. One scale is `VHE` without the link posterior (`link_features` empty). Columns: "
    "fraction of the links seen. No setting was chosen on Perl modules, C++ headers and Python "
    "modules. Measured by `python benchmarks/link_posterior.py`, whose file "
    "`benchmarks/networks.py` says how each network is made; written by `vhe reproduce report`."
)
ABLATION = (
    "Difference in AUC / MRR when the link posterior is fitted without one group of features "
    "(setting `link_features`), or without all of them (one scale). "
    "Measured by `python benchmarks/ablation.py`, on other seeds than those of the other tables."
)

Cell = tuple[str, int]  # network and percentage of the links
Means = dict[tuple[Cell, str], NDArray[np.float64]]  # AUC and MRR by method


def networks_page(results: Path) -> list[str]:
    """The lines of the page, in Markdown."""
    stored = _read(results / "networks")
    means = _means(stored)
    lines = [f"# {TITLE}", "", ABOUT, "", *_summary(means), ""]
    for name, network in stored.items():
        cells = sorted(cell for cell, method in means if cell[0] == name and method == "vhe")
        if not cells:
            continue
        degree = 2 * network["links"] / network["vertices"]
        seeds = sorted({row["seed"] for row in network["scores"] if row["method"] == "vhe"})
        span = f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"
        size = f"{network['vertices']:,} vertices, {degree:.1f} links per vertex"
        if name.startswith("small-"):
            size = f"{len(seeds)} networks of 100 to 300 vertices"
        origin = network["origin"]["git"]
        own = [row.get("git", origin) for row in network["scores"] if row["method"] == "vhe"]
        commit = ", ".join(dict.fromkeys(str(found)[:10] for found in own))
        lines += [f"## {NETWORKS[name]}", ""]
        lines += [f"{size}; {span}; `VHE` at commit {commit}.", ""]
        lines += [*_compared(cells, means), ""]
    return [*lines, "## Ablation", "", ABLATION, "", *_ablation(_read(results / "ablation"))]


def _read(folder: Path) -> dict[str, dict[str, Any]]:
    """What is stored of each network, in the order of `NETWORKS`."""
    paths = {name: folder / f"{name}.json" for name in NETWORKS}
    return {
        name: json.loads(path.read_text(encoding="utf-8"))
        for name, path in paths.items()
        if path.exists()
    }


def _means(stored: dict[str, dict[str, Any]]) -> Means:
    """Means over the seeds of `VHE`; without methods that were not measured with all of them."""
    scores: dict[tuple[Cell, str], dict[int, list[float]]] = defaultdict(dict)
    for name, network in stored.items():
        for row in network["scores"]:
            found = scores[(name, row["ratio"]), row["method"]]
            found[row["seed"]] = [row["auc"], row["mrr"]]
    return {
        (cell, method): 100 * np.mean([found[seed] for seed in seeds], axis=0)
        for (cell, method), found in scores.items()
        if (seeds := scores.get((cell, "vhe"), found).keys()) <= found.keys()
    }


def _summary(means: Means) -> list[str]:
    """How often `VHE` is first, and how far it is behind where it is not."""
    lines = []
    for k, measure in enumerate(("AUC", "MRR")):
        behind: dict[Cell, float] = {}
        for cell in dict.fromkeys(cell for cell, _ in means):
            others = [means[cell, m][k] for m in CLOSE if (cell, m) in means]
            if (cell, "vhe") in means and others:
                behind[cell] = float(max(others) - means[cell, "vhe"][k])
        if not behind:
            continue
        first = sum(gap <= 0 for gap in behind.values())
        (name, percent), gap = max(behind.items(), key=lambda item: item[1])
        mean = -sum(behind.values()) / len(behind)
        line = (
            f"- {measure}: `VHE` is at or above one scale, diffused text and TF-IDF in {first} of "
            f"{len(behind)} columns, and {mean:+.1f} from the best of them on average"
        )
        worst = f"; at worst {-gap:+.1f} ({NETWORKS[name]}, {percent} %)" if gap > 0 else ""
        lines.append(f"{line}{worst}.")
    return lines


def _compared(cells: Sequence[Cell], means: Means) -> list[str]:
    best = [
        max(means[cell, m][k] for m in COMPARED if (cell, m) in means)
        for cell in cells
        for k in range(2)
    ]
    lines = ["| method | " + " | ".join(f"{percent} %" for _, percent in cells) + " |"]
    lines.append("|---" * (len(cells) + 1) + "|")
    for method, label in COMPARED.items():
        figures = []
        for number, cell in enumerate(cells):
            found = means.get((cell, method))
            if found is None:
                figures.append("")
                continue
            shown = [f"{value:.1f}" for value in found]
            for k in range(2):
                if found[k] == best[2 * number + k]:
                    shown[k] = f"**{shown[k]}**"
            figures.append(" / ".join(shown))
        if any(figures):
            lines.append(f"| {label} | " + " | ".join(figures) + " |")
    return lines


def _ablation(stored: dict[str, dict[str, Any]]) -> list[str]:
    lines = ["| network | seeds | " + " | ".join(f"without {r}" for r in REMOVED.values()) + " |"]
    lines.append("|---" * (len(REMOVED) + 2) + "|")
    rows = []
    for name, network in stored.items():
        for percent in sorted({fit["ratio"] for fit in network["fits"]}):
            fits = [fit["scores"] for fit in network["fits"] if fit["ratio"] == percent]
            changes = [[np.subtract(fit[r], fit[""]) for r in REMOVED] for fit in fits]
            rows.append(100 * np.mean(changes, axis=0))
            cells = [str(len(fits)), *(f"{auc:+.1f} / {mrr:+.1f}" for auc, mrr in rows[-1])]
            lines.append(f"| {NETWORKS[name]}, {percent} % | " + " | ".join(cells) + " |")
    if rows:
        cells = [f"**{auc:+.2f} / {mrr:+.2f}**" for auc, mrr in np.mean(rows, axis=0)]
        lines.append("| **mean** | | " + " | ".join(cells) + " |")
    return lines
