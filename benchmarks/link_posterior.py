"""The link posterior against one scale and the baselines, on networks of different kinds.

    python benchmarks/link_posterior.py [--networks perl,small-cora,...] [--ratio 15,55,95]
                                        [--seeds 0-1] [--methods ...] [--out FOLDER]

Prints AUC and MRR (clean protocol) and writes one file per network, `results/networks/NAME.json`;
finished measurements are not repeated. `python docs/generate.py` writes docs/results/networks.md.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import networks
import numpy as np

import vhe
from vhe.evaluation import methods
from vhe.evaluation.experiment import parse_seeds
from vhe.runtime.files import atomic_write
from vhe.runtime.provenance import provenance

METHODS = {
    "vhe": ("vhe", {}),
    "one scale": ("vhe", {"link_features": ""}),
    "tfidf": ("tfidf", {}),
    "diffused-text": ("diffused-text", {}),
    "adamic-adar": ("adamic-adar", {}),
    "deepwalk": ("deepwalk", {}),
    "tadw": ("tadw", {}),
}
MANY_LINKS, TESTED_LINKS = 100_000, 5_000  # of more test links, a random part is scored


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
    seeds = parse_seeds(arguments.seeds)
    for name in arguments.networks.split(","):
        network = networks.load(name)
        file = arguments.out / f"{name}.json"
        stored = json.loads(file.read_text()) if file.exists() else about(name, network(seeds[0]))
        print(f"{name}: {stored['vertices']:,} vertices, {stored['links']:,} links")
        for percent in map(int, arguments.ratio.split(",")):
            for method in arguments.methods.split(","):
                found = []
                for seed in seeds:
                    key = {"ratio": percent, "method": method, "seed": seed}
                    old = [row for row in stored["scores"] if key.items() <= row.items()]
                    if not old:
                        scores = measure(network(seed), percent, method, seed)
                        old = [key | {"git": provenance(0)["git"]} | scores]
                        stored["scores"] += old
                        with atomic_write(file) as temporary:
                            temporary.write_text(written(stored), encoding="utf-8")
                    found += old
                means = [100 * np.mean([row[key] for row in found]) for key in ("auc", "mrr")]
                print(f"  {percent} % {method}: {means[0]:.2f} / {means[1]:.2f}", flush=True)


def about(name: str, network: vhe.TextNetwork) -> dict[str, Any]:
    return {
        "network": name,
        "vertices": len(network),
        "links": len(network.links),
        "origin": provenance(0),
        "scores": [],
    }


def written(stored: dict[str, Any]) -> str:
    """JSON with one line per measurement."""
    lines = ",\n  ".join(map(json.dumps, stored["scores"]))
    head = json.dumps({key: value for key, value in stored.items() if key != "scores"}, indent=1)
    return f'{head[:-2]},\n "scores": [\n  {lines}\n ]\n}}\n'


def measure(network: vhe.TextNetwork, percent: int, method: str, seed: int) -> dict[str, Any]:
    registered, settings = METHODS[method]
    train, test = network.split_edges(percent / 100, seed=seed)
    if len(test) > MANY_LINKS:
        part = np.random.default_rng(seed).permutation(len(test))[:TESTED_LINKS]
        test = replace(test, pairs=test.pairs[np.sort(part)])
    began = time.process_time()
    model = methods.make(registered, seed, **settings).fit(train)
    seconds = time.process_time() - began
    return vhe.evaluate(model, test).as_dict() | {"cpu_seconds": round(seconds, 2)}


if __name__ == "__main__":
    main()
