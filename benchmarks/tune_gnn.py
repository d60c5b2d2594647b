"""Search for the settings of the graph neural networks (`vhe.baselines.gnn`) on validation links.

    VHE_DATA_DIR=... python benchmarks/tune_gnn.py [--methods gcn-mlp,...] [--trials 10]

Random search in two stages for each encoder, head and kind of features. First, all trials are
fitted to HepTh with 15 % and to Cora with 55 % of the links (seed 0); then the best three of them
to both networks with both fractions (seeds 0 and 1). The score is the mean AUC of the validation
links, which are part of the training links: test links are never read.

One file per method in results/tuning; finished fits are not repeated.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import fields
from functools import cache
from pathlib import Path
from statistics import fmean
from time import process_time
from typing import Any

import numpy as np
import torch

import vhe
from vhe.baselines import gnn
from vhe.baselines.matrices import lsa
from vhe.baselines.sentences import sentence_vectors
from vhe.baselines.tfidf import tfidf_rows
from vhe.data.network import TextNetwork
from vhe.data.splits import split_edges
from vhe.evaluation.experiment import percent
from vhe.runtime.files import atomic_write
from vhe.runtime.provenance import provenance

SPACE: dict[str, tuple[float, ...]] = {
    "learning_rate": (1e-3, 3e-3, 1e-2),
    "width": (128, 256),
    "dropout": (0.3, 0.6, 0.75),
    "weight_decay": (0.0, 1e-2, 1e-1),
    "masked": (0.1, 0.2, 0.4),
}
FIRST = (("hepth", 0.15, 0), ("cora", 0.55, 0))  # network, fraction of the links, seed
SECOND = tuple(
    (name, ratio, s) for s in (0, 1) for name in ("hepth", "cora") for ratio in (0.15, 0.55)
)
FINALISTS = 3
METHODS = tuple(
    f"{layer}-{head}{features}"
    for features in ("", "-sentences")
    for layer in ("gcn", "sage")
    for head in ("mlp", "ncn")
)
Cell = tuple[str, float, int]


class Search:
    """The trials of one method: each with its settings and its validation AUC by cell."""

    def __init__(self, method: str, trials: int, folder: Path) -> None:
        self.method, self.path = method, folder / f"{method}.json"
        rng = np.random.default_rng(0)
        defaults = {f.name: f.default for f in fields(gnn.GraphNetworkLinks) if f.name in SPACE}
        drawn = [defaults]
        while len(drawn) < trials:
            each = {name: values[rng.integers(len(values))] for name, values in SPACE.items()}
            if each not in drawn:
                drawn.append(each)
        self.trials: list[dict[str, Any]] = [{"settings": each, "auc": {}} for each in drawn]
        if self.path.exists():
            for trial in json.loads(self.path.read_text(encoding="utf-8"))["trials"]:
                for mine in self.trials:
                    if mine["settings"] == trial["settings"]:
                        mine["auc"] = trial["auc"]

    def run(self) -> None:
        for trial in self.trials:
            self._fit(trial, FIRST)
        finalists = sorted(self.trials, key=lambda trial: -score(trial, FIRST))[:FINALISTS]
        for trial in finalists:
            self._fit(trial, SECOND)
        self._write(max(finalists, key=lambda trial: score(trial, SECOND)))

    def _fit(self, trial: dict[str, Any], cells: tuple[Cell, ...]) -> None:
        for cell in cells:
            if label(cell) in trial["auc"]:
                continue
            network, (layer, head, *kind) = training_network(cell), self.method.split("-")
            started = process_time()
            model = gnn.GraphNetworkLinks(
                layer=layer,  # type: ignore[arg-type]
                head=head,  # type: ignore[arg-type]
                features="sentences" if kind else "lsa",
                random_state=cell[2],
                **trial["settings"],
            ).fit(network)
            trial["auc"][label(cell)] = model.validation_auc_
            seconds = process_time() - started
            auc = 100 * (model.validation_auc_ or 0)
            about = f"{self.method:18} {label(cell):12} {auc:5.1f} {seconds:5.1f} s"
            print(about, trial["settings"], flush=True)
            self._write(None)

    def _write(self, best: dict[str, Any] | None) -> None:
        record = {
            "method": self.method,
            "space": SPACE,
            "trials": self.trials,
            "chosen": best and best["settings"],
            "auc": best and score(best, SECOND),
            "origin": provenance(0),
        }
        with atomic_write(self.path) as temporary:
            temporary.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def label(cell: Cell) -> str:
    return f"{cell[0]}-{percent(cell[1])}-{cell[2]}"


def score(trial: dict[str, Any], cells: tuple[Cell, ...]) -> float:
    return fmean(trial["auc"][label(cell)] for cell in cells)


@cache
def training_network(cell: Cell) -> TextNetwork:
    return split_edges(vhe.load(cell[0]), cell[1], cell[2], "clean")[0]


def share_features() -> None:
    """Compute the features once per network: they do not depend on the trial."""
    shared_lsa = cache(lambda texts, d, seed: lsa(tfidf_rows(texts), d, seed))
    shared_vectors = cache(lambda texts: sentence_vectors(texts, None))
    gnn.tfidf_rows = tuple  # type: ignore[assignment]
    gnn.lsa = shared_lsa  # type: ignore[assignment]
    gnn.sentence_vectors = lambda texts, encoder: shared_vectors(tuple(texts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--trials", type=int, default=10, help="the first is the default")
    parser.add_argument("--results", type=Path, default=Path("results/tuning"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    share_features()
    arguments.results.mkdir(parents=True, exist_ok=True)
    for method in arguments.methods.split(","):
        search = Search(method, arguments.trials, arguments.results)
        search.run()
        print(f"{method}: {search.path}", flush=True)


if __name__ == "__main__":
    main()
