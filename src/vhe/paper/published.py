"""The results published in the paper, by task, dataset, method and fraction."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from vhe.evaluation.summary import Figure

if TYPE_CHECKING:
    from vhe.evaluation.experiment import Task

# The paper's names of the methods. Its row VHE is compared with both models.
PAPER_NAMES = {
    "vhe": "VHE",
    "pair-vhe": "VHE",
    "pair-vhe-paper": "VHE",
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

_TABLES = {  # file, column of fractions, column of figures
    "link": ("link_prediction.csv", "train_edges_percent", "auc"),
    "classify": ("vertex_classification.csv", "labelled_percent", "accuracy"),
    "unseen": ("unseen_link_prediction.csv", "train_vertices_percent", "auc"),
}


def published(task: Task, dataset: str, method: str, ratio: float) -> Figure | None:
    """Return the published AUC (links) or accuracy (classification), or None.

    Its ``std`` is None where the paper states none, and so is the number of seeds.

    Parameters
    ----------
    method : name in the registry of methods, such as ``vhe``.
    ratio : fraction of edges, labels or vertices seen, such as 0.55.
    """
    return table(task).get((dataset, PAPER_NAMES.get(method, ""), round(100 * ratio)))


@cache
def table(task: Task) -> dict[tuple[str, str, int], Figure]:
    """Return all figures of a task by dataset, the paper's method name and percentage."""
    name, share, figure = _TABLES[task]
    with files(__package__).joinpath(name).open(encoding="utf-8") as file:
        return {
            (row["dataset"], row["method"], int(row[share])): Figure(
                float(row[figure]) / 100, float(row["std"]) / 100 if row.get("std") else None
            )
            for row in csv.DictReader(file)
        }
