"""Calibration error of the probabilities of links, per seed and over all test links of the seeds.

    VHE_DATA_DIR=... python benchmarks/calibration.py [--datasets cora,hepth] [--ratio 95]
        [--seeds 10-19]

An expected calibration error of few test links is mostly noise: with 100 of them, resampled
outcomes of a perfectly calibrated model have one of about 0.03. Over the test links of all seeds
together the noise averages out and the bias remains.
"""

from __future__ import annotations

import argparse
from statistics import fmean

import vhe
from vhe.evaluation.experiment import parse_seeds
from vhe.predict.calibration import pooled_curve


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", default="cora,hepth")
    parser.add_argument("--ratio", type=int, default=95, help="percentage of the links seen")
    parser.add_argument("--seeds", default="10-19")
    arguments = parser.parse_args()
    seeds = parse_seeds(arguments.seeds)
    print(f"{arguments.ratio} % of the links: mean error per seed, error over all seeds")
    for name in arguments.datasets.split(","):
        network = vhe.load(name)
        for protocol in ("lines", "clean"):
            curves = []
            for seed in seeds:
                train, test = network.split_edges(arguments.ratio / 100, seed, protocol)
                model = vhe.VHE(random_state=seed, verbose=False).fit(train)
                curves.append(vhe.evaluate(model, test).reliability)
            each, together = fmean(c.error for c in curves), pooled_curve(curves).error
            print(f"{name} {protocol}: {each:.3f} {together:.3f}", flush=True)


if __name__ == "__main__":
    main()
