"""The link posterior against one scale and the baselines, on networks of different kinds.

    python benchmarks/link_posterior.py [--networks perl,headers,...] [--ratio 15,55,95]
                                        [--seeds 0-1] [--methods ...] [--out FOLDER]

Prints AUC and MRR (clean protocol) and writes one file per network, ratio, method and seed;
finished ones are not repeated.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import networks
import numpy as np

import vhe
from vhe.evaluation import methods
from vhe.evaluation.experiment import parse_seeds

METHODS = {
    "vhe": ("vhe", {}),
    "one scale": ("vhe", {"link_features": ""}),
    "no scales": ("vhe", {"link_features": "words,degree,structure"}),
    "no words": ("vhe", {"link_features": "scales,degree,structure"}),
    "no degree": ("vhe", {"link_features": "scales,words,structure"}),
    "no structure": ("vhe", {"link_features": "scales,words,degree"}),
    "tfidf": ("tfidf", {}),
    "diffused-text": ("diffused-text", {}),
    "adamic-adar": ("adamic-adar", {}),
    "deepwalk": ("deepwalk", {}),
    "tadw": ("tadw", {}),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", default="cora,hepth,seealso,debian-core")
    parser.add_argument("--ratio", default="15,55,95")
    parser.add_argument("--seeds", default="0-1")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--out", type=Path, default=Path("results/networks"))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.networks.split(","):
        network = networks.load(name)
        degree = 2 * len(network.links) / len(network)
        print(f"{name}: {len(network):,} vertices, {degree:.1f} links per vertex")
        for percent in map(int, arguments.ratio.split(",")):
            for method in arguments.methods.split(","):
                found = [
                    measure(network, name, percent, method, seed, arguments.out)
                    for seed in parse_seeds(arguments.seeds)
                ]
                means = [100 * np.mean([row[key] for row in found]) for key in ("auc", "mrr")]
                print(f"  {percent} % {method}: {means[0]:.2f} / {means[1]:.2f}", flush=True)


def measure(
    network: vhe.TextNetwork, name: str, percent: int, method: str, seed: int, out: Path
) -> dict[str, float]:
    file = out / f"{name}-{percent}-{method.replace(' ', '-')}-{seed}.json"
    if file.exists():
        return json.loads(file.read_text())
    registered, settings = METHODS[method]
    train, test = network.split_edges(percent / 100, seed=seed)
    began = time.process_time()
    model = methods.make(registered, seed, **settings)
    if hasattr(model, "verbose"):
        model.verbose = False
    model.fit(train)
    scores = vhe.evaluate(model, test).as_dict() | {"cpu_seconds": time.process_time() - began}
    file.write_text(json.dumps(scores))
    return scores


if __name__ == "__main__":
    main()
