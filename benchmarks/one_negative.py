"""How much an AUC with one random negative per test line varies, for one fixed model.

    VHE_DATA_DIR=... python benchmarks/one_negative.py [cora hepth] [--out results/one-negative]

CANE's evaluation script draws one negative per test line and skips lines with an end that has no
training link. For each ratio of the paper, `VHE` is fitted once (protocol lines, seed 10) and
evaluated 2,000 times in that way. Writes the exact expectation, the standard deviation of one
evaluation and the expected best of 10, 50 and 200 evaluations; docs/compare-with-paper.md shows
them.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import vhe
from vhe.evaluation.link import edge_points
from vhe.evaluation.methods import make
from vhe.runtime.provenance import provenance

METHOD, SEED = "vhe", 10
RATIOS = tuple(percent / 100 for percent in range(15, 100, 10))  # those of the paper
EVALUATIONS, BEST_OF = 2000, (10, 50, 200)


def measure(network: vhe.TextNetwork, ratio: float) -> dict[str, Any]:
    """Return the figures of one fitted model."""
    train, test = network.split_edges(ratio, seed=SEED, protocol="lines")
    model = make(METHOD, SEED).fit(train)
    seen = (train.degrees[test.pairs] > 0).all(axis=1)
    points = edge_points(model, replace(test, pairs=test.pairs[seen]))
    evaluations = repeated(points, EVALUATIONS, np.random.default_rng(SEED))
    return {
        "all_lines": float(edge_points(model, test).mean()),
        "expectation": float(points.mean()),
        "std": float(evaluations.std(ddof=1)),
        "best": {str(k): expected_best(evaluations, k) for k in BEST_OF},
        "lines": len(seen),
        "skipped": int((~seen).sum()),
    }


def repeated(points: np.ndarray, times: int, rng: np.random.Generator) -> np.ndarray:
    """AUCs of ``times`` evaluations with one random negative per line: (times,).

    ``points`` (m,) are the shares of negatives that each line outscores; a tie is a coin toss.
    """
    return np.array([(rng.random(len(points)) < points).mean() for _ in range(times)])


def expected_best(evaluations: np.ndarray, k: int) -> float:
    """Expected maximum of k evaluations, by the mean over disjoint groups of k."""
    groups = evaluations[: len(evaluations) // k * k].reshape(-1, k)
    return float(groups.max(axis=1).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="*", default=["cora", "hepth"])
    parser.add_argument("--out", type=Path, default=Path("results/one-negative"))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for dataset in arguments.datasets:
        network = vhe.load(dataset)
        found = {}
        for ratio in RATIOS:
            found[str(ratio)] = measure(network, ratio)
            print(dataset, ratio, found[str(ratio)], flush=True)
        about = {"dataset": dataset, "method": METHOD, "ratios": found}
        path = arguments.out / f"{dataset}.json"
        text = json.dumps(about | {"origin": provenance(SEED)}, indent=1)
        path.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
