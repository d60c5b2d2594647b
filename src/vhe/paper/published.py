"""The figures that the paper prints, by task, dataset, method and share."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vhe.evaluation.experiment import Task

# The names of the paper's methods. Both forms of VHE are measured against the paper's one.
PAPER_NAMES = {
    "vhe": "VHE",
    "vhe-paper": "VHE",
    "pwa": "PWA",
    "mmb": "MMB",
    "line": "LINE",
    "node2vec": "Node2Vec",
    "deepwalk": "DeepWalk",
    "tadw": "TADW",
    "cene": "CENE",
    "cane": "CANE",
    "wane": "WANE",
    "naive-vae": "Naive-VAE",
    "vgae": "VGAE",
    "dmte": "DMTE",
    "cane-text": "CANE+",  # † in print
    "cane-mlp": "CANE++",  # ‡ in print
    "wane-text": "WANE+",
    "wane-mlp": "WANE++",
    "pwa-text": "PWA+",
    "pwa-mlp": "PWA++",
}

_TABLES = {  # the file, its column of shares, its column of figures
    "link": ("link_prediction.csv", "train_edges_percent", "auc"),
    "classify": ("vertex_classification.csv", "labelled_percent", "accuracy"),
    "unseen": ("unseen_link_prediction.csv", "train_vertices_percent", "auc"),
}


@dataclass(frozen=True)
class Published:
    """A figure as it is printed, in percent, with its deviation where one is printed."""

    figure: float
    deviation: float | None

    def __str__(self) -> str:
        return f"{self.figure:.1f}" + ("" if self.deviation is None else f" ± {self.deviation:.1f}")


def published(task: Task, dataset: str, method: str, ratio: float) -> Published | None:
    """The paper's figure: AUC of links, accuracy of classification; None where it has none.

    Parameters
    ----------
    method : as the command calls it, such as ``vhe``.
    ratio : share of edges, labels or vertices that were seen, such as 0.55.
    """
    return table(task).get((dataset, PAPER_NAMES.get(method, ""), round(100 * ratio)))


@cache
def table(task: Task) -> dict[tuple[str, str, int], Published]:
    """All figures of a task by dataset, the paper's name of the method, and percentage."""
    name, share, figure = _TABLES[task]
    with files(__package__).joinpath(name).open(encoding="utf-8") as file:
        return {
            (row["dataset"], row["method"], int(row[share])): Published(
                float(row[figure]), float(row["std"]) if row.get("std") else None
            )
            for row in csv.DictReader(file)
        }
