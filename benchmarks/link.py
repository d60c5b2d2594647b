"""Held-out links: AUC, average precision, MRR and Hits@10 of VHE beside text alone.

    .venv/bin/python benchmarks/link.py cora --ratios 0.15 0.55 0.95 --seeds 0 1 2

prints a JSON line for each run, and the means at the end.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import warnings

import vhe
from vhe.baselines.contract import Method
from vhe.baselines.diffused_text import DiffusedText
from vhe.baselines.tfidf import TFIDF


def make(name: str, seed: int) -> Method:
    if name == "tfidf":
        return TFIDF()
    if name == "diffused-text":
        return DiffusedText(random_state=seed)
    config = vhe.VHEConfig.paper() if name == "vhe-paper" else vhe.VHEConfig()
    return vhe.VHE.from_config(config, random_state=seed).set_params(verbose=False)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset")
    parser.add_argument("--methods", nargs="+", default=["vhe", "diffused-text", "tfidf"])
    parser.add_argument("--ratios", nargs="+", type=float, default=[0.15, 0.55, 0.95])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--protocol", choices=["lines", "clean"], default="lines")
    a = parser.parse_args()
    warnings.simplefilter("ignore")
    network = vhe.load(a.dataset)
    found: dict[tuple[str, float], list[float]] = {}
    for method in a.methods:
        for ratio in a.ratios:
            for seed in a.seeds:
                train, test = network.split_edges(ratio, seed=seed, protocol=a.protocol)
                began = time.monotonic()
                model = make(method, seed).fit(train)
                seconds = time.monotonic() - began
                scores = vhe.evaluate(model, test).as_dict()
                found.setdefault((method, ratio), []).append(scores["auc"])
                run = {"dataset": a.dataset, "method": method, "ratio": ratio, "seed": seed}
                print(json.dumps(run | scores | {"seconds": round(seconds, 1)}), flush=True)
    for method in a.methods:
        cells = (found[method, ratio] for ratio in a.ratios)
        means = (
            f"{100 * statistics.mean(c):.1f} ± {100 * statistics.pstdev(c):.1f}" for c in cells
        )
        print(f"{a.dataset} {a.protocol} {method}: " + "  ".join(means))
