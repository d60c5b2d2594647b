"""How long it takes to add vertices to a model, and how well they are placed, by both ways.

    VHE_DATA_DIR=... python benchmarks/unseen.py [cora] [--ratio 0.55] [--seed 3] [--steps 100]

Fits a model on the seen vertices, adds all unseen ones by their texts, and prints the seconds for
1,000 texts, the AUC of their links (line protocol), and the ratio between the two ways.
"""

from __future__ import annotations

import argparse
import copy
import time

import vhe
from vhe.data.splits import split_vertices


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", nargs="?", default="cora")
    parser.add_argument("--ratio", type=float, default=0.55)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--paper", action="store_true", help="the paper's settings")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE")
    given = parser.parse_args()
    train, test = split_vertices(vhe.load(given.source), given.ratio, given.seed, "lines")
    config = vhe.VHEConfig.paper() if given.paper else vhe.VHEConfig()
    changes = (setting.split("=") for setting in given.set)
    config = config.replace(**{k: vhe.VHEConfig.parse_setting(k, v) for k, v in changes})
    model = vhe.VHE.from_config(config, random_state=given.seed).fit(train)
    texts = dict(zip(test.unseen.ids, test.unseen.texts, strict=True))
    print(f"{given.source}: {len(train):,} vertices seen, {len(texts):,} added")
    took = {}
    for way in ("fast", "paper"):
        grown = copy.copy(model).set_params(verbose=False)
        began = time.perf_counter()
        grown.add_vertices(texts, method=way)
        took[way] = time.perf_counter() - began
        each = 1000 * took[way] / len(texts)
        auc = 100 * vhe.evaluate(grown, test).auc
        print(f"{way:5s}  {each:7.2f} s for 1,000 texts   AUC {auc:.1f} %")
    print(f"ratio {took['paper'] / took['fast']:.1f}x")


if __name__ == "__main__":
    main()
