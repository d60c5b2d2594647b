"""Recall and time of the suggestions for all vertices, against a comparison of all pairs.

python benchmarks/suggestions.py [--dataset debian] [--sample 500] [-k 10]
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

import vhe
from vhe.predict.suggest import exact_partners, partners


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", default="debian")
    parser.add_argument("--sample", type=int, default=500)
    parser.add_argument("-k", type=int, default=10)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    network = vhe.load(arguments.dataset)
    began = time.perf_counter()
    model = vhe.VHE(random_state=0).fit(network)
    print(f"{len(network):,} vertices: fit {time.perf_counter() - began:.0f} s")
    print({name: round(w, 2) for name, w in model.result_["link_posterior"].items()})
    posterior, rows = model._link_posterior, model._rows
    began = time.perf_counter()
    found, _ = partners(posterior, rows, arguments.k)
    print(f"suggestions for all vertices: {time.perf_counter() - began:.0f} s")
    sample = np.random.default_rng(0).permutation(len(network))[: arguments.sample]
    began = time.perf_counter()
    exact, _ = exact_partners(posterior, rows, arguments.k, sample)
    seconds = (time.perf_counter() - began) * len(network) / len(sample)
    shared = [
        len(set(a) & set(b)) / len(b) for a, b in zip(found[sample].tolist(), exact, strict=True)
    ]
    print(f"recall {np.mean(shared):.3f}; comparing all pairs would take {seconds:.0f} s")


if __name__ == "__main__":
    main()
