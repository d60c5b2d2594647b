"""Upper bounds of the AUC under the line protocol.

    VHE_DATA_DIR=... python benchmarks/ceiling.py [cora hepth] [--out results/ceiling]

Diffused text, a method without training: its AUC over all test lines, over those with an end that
has no training links, over those whose ends have many, and the AUC of an oracle that sees the test
edges: the same method fitted on the whole network. The oracle bounds what any method can claim.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

import vhe
from vhe.evaluation.link import edge_points
from vhe.evaluation.methods import make
from vhe.predict.scoring import Method

METHOD = "diffused-text"
RATIOS = tuple(percent / 100 for percent in range(15, 100, 10))  # those of the paper
SEEDS = range(10, 20)
MANY = 3  # training links of each end


def measure(network: vhe.TextNetwork, ratio: float, seed: int, oracle: Method) -> list[float]:
    """Return the AUC of all lines, of those with an end without links, of those whose ends have
    many, and of the oracle; and the fraction of lines with an end without links."""
    train, test = network.split_edges(ratio, seed=seed, protocol="lines")
    points = edge_points(make(METHOD, seed).fit(train), test)
    bound = edge_points(oracle, test)
    fewest = np.bincount(train.links.ravel(), minlength=len(network))[test.pairs].min(axis=1)
    groups = (points, points[fewest == 0], points[fewest >= MANY], bound, fewest == 0)
    return [float(group.mean()) for group in groups]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="*", default=["cora", "hepth"])
    parser.add_argument("--out", type=Path, default=Path("results/ceiling"))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    names = ("auc", "without_links", "many_links", "answers_known", "share_without_links")
    for dataset in arguments.datasets:
        network = vhe.load(dataset)
        oracle = make(METHOD, 0).fit(network)
        found = {}
        for ratio in RATIOS:
            rows = [measure(network, ratio, seed, oracle) for seed in SEEDS]
            found[str(ratio)] = dict(zip(names, np.mean(rows, axis=0).tolist(), strict=True))
            print(dataset, ratio, {k: round(v, 4) for k, v in found[str(ratio)].items()})
        about = {"dataset": dataset, "method": METHOD, "seeds": len(SEEDS), "ratios": found}
        path = arguments.out / f"{dataset}.json"
        path.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
