"""Fit time of the default against one scale (no link features), interleaved.

    python benchmarks/fit_time.py [--datasets cora] [--ratio 55] [--rounds 5] [--threads 1]
                                  [--out results/speed]

Prints CPU seconds of both in each round, and the ratio of the medians, and writes one file per
dataset, which docs/speed.md uses.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np

import vhe
from vhe.runtime.provenance import provenance

METHODS = {"default": {}, "one scale": {"link_features": ""}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", default="cora")
    parser.add_argument("--ratio", type=int, default=55)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("results/speed"))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in arguments.datasets.split(","):
        train, _ = vhe.load(name).split_edges(arguments.ratio / 100, seed=0)
        seconds: dict[str, list[float]] = {method: [] for method in METHODS}
        for number in range(arguments.rounds + 1):
            for method, settings in METHODS.items():
                model = vhe.VHE(
                    random_state=0, threads=arguments.threads, verbose=False, **settings
                )
                began = time.process_time()
                model.fit(train)
                if number:  # the first round warms up
                    seconds[method].append(time.process_time() - began)
            if number:
                last = ", ".join(f"{k} {v[-1]:.2f} s" for k, v in seconds.items())
                print(f"{name}, round {number}: {last}", flush=True)
        default, one = (float(np.median(seconds[method])) for method in METHODS)
        print(f"{name}: {default:.2f} s over {one:.2f} s, ratio {default / one:.2f}")
        stored = {"ratio": default / one, "cpu_seconds": seconds, "origin": provenance(0)}
        arguments.out.mkdir(parents=True, exist_ok=True)
        (arguments.out / f"fit-time-{name}.json").write_text(json.dumps(stored, indent=1) + "\n")


if __name__ == "__main__":
    main()
