"""Search for the settings of the graph neural networks (`vhe.baselines.gnn`) on validation links.

    VHE_DATA_DIR=... python benchmarks/tune_gnn.py [--datasets hepth,cora] [--ratios 15,55]
        [--seeds 0-2] [--features lsa] [--trials 12] [--methods gcn-ncn,...]

Random search: each trial draws learning rate, width, dropout, weight decay and the fraction of
masked links. Prints the mean AUC of the validation links, which are part of the training links:
test links are never read.
"""

from __future__ import annotations

import argparse
from functools import cache
from statistics import fmean
from time import process_time
from typing import Any

import numpy as np

import vhe
from vhe.baselines import gnn
from vhe.baselines.matrices import lsa
from vhe.baselines.tfidf import tfidf_rows
from vhe.data.splits import split_edges
from vhe.evaluation.experiment import parse_seeds, parse_shares

SPACE: dict[str, tuple[float, ...]] = {
    "learning_rate": (1e-3, 3e-3, 1e-2),
    "width": (64, 128, 256),
    "dropout": (0.3, 0.6, 0.75),
    "weight_decay": (0.0, 1e-2, 1e-1),
    "masked": (0.1, 0.2, 0.4),
}
METHODS = "gcn-mlp,gcn-ncn,sage-mlp,sage-ncn"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", default="hepth,cora")
    parser.add_argument("--ratios", default="15,55")
    parser.add_argument("--seeds", default="0-2")
    parser.add_argument("--methods", default=METHODS)
    parser.add_argument("--features", default="lsa", choices=("lsa", "sentences"))
    parser.add_argument("--trials", type=int, default=12, help="the first is the default")
    arguments = parser.parse_args()
    networks = [
        (seed, split_edges(vhe.load(name), ratio, seed, "clean")[0])
        for name in arguments.datasets.split(",")
        for ratio in parse_shares(arguments.ratios, "--ratios")
        for seed in parse_seeds(arguments.seeds)
    ]
    shared = cache(lambda texts, seed: lsa(tfidf_rows(texts), gnn.LSA_DIMENSIONS, seed))
    rng = np.random.default_rng(0)
    trials: list[dict[str, Any]] = [{}] + [
        {name: values[rng.integers(len(values))] for name, values in SPACE.items()}
        for _ in range(arguments.trials - 1)
    ]
    for settings in trials:
        for method in arguments.methods.split(","):
            layer, head = method.split("-")
            started, found = process_time(), []
            for seed, network in networks:
                # The texts do not depend on the trial: their LSA is computed once.
                gnn.lsa = lambda rows, d, s, t=tuple(network.texts): shared(t, s)  # type: ignore
                model = gnn.GraphNetworkLinks(
                    layer=layer,
                    head=head,
                    features=arguments.features,
                    random_state=seed,
                    **settings,
                ).fit(network)
                found.append(model.validation_auc_ or 0.5)
            seconds = (process_time() - started) / len(networks)
            print(
                f"{100 * fmean(found):6.2f}  {method:9} {seconds:5.1f} s  "
                f"{' '.join(f'{100 * auc:.1f}' for auc in found)}  {settings}",
                flush=True,
            )


if __name__ == "__main__":
    main()
