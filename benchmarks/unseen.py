"""Speed and AUC of adding vertices to a pair model by the two inductive methods.

    VHE_DATA_DIR=... python benchmarks/unseen.py [cora] [--ratio 0.55] [--seed 3] [--set steps=30]

Fits `PairVHE` on the seen vertices, adds all unseen ones by their texts, and prints the seconds per
1,000 texts, the AUC of their links (line protocol), and the ratio of the two methods.
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
    arguments = parser.parse_args()
    train, test = split_vertices(
        vhe.load(arguments.source), arguments.ratio, arguments.seed, "lines"
    )
    config = vhe.PairVHEConfig.paper() if arguments.paper else vhe.PairVHEConfig()
    changes = (setting.split("=") for setting in arguments.set)
    config = config.replace(**{k: vhe.PairVHEConfig.parse_setting(k, v) for k, v in changes})
    model = vhe.PairVHE.from_config(config, random_state=arguments.seed).fit(train)
    texts = dict(zip(test.unseen.ids, test.unseen.texts, strict=True))
    print(f"{arguments.source}: {len(train):,} vertices seen, {len(texts):,} added")
    seconds = {}
    for method in ("fast", "paper"):
        extended = copy.copy(model).set_params(verbose=False)
        started = time.perf_counter()
        extended.add_vertices(texts, method=method)
        seconds[method] = time.perf_counter() - started
        each = 1000 * seconds[method] / len(texts)
        auc = 100 * vhe.evaluate(extended, test).auc
        print(f"{method:5s}  {each:7.2f} s per 1,000 texts   AUC {auc:.1f} %")
    print(f"ratio {seconds['paper'] / seconds['fast']:.1f}x")


if __name__ == "__main__":
    main()
