"""The link posterior without one group of features, or without all, on networks of all kinds.

    python benchmarks/ablation.py [--networks cora,small-cora,...] [--ratio 15,55,95] [--seeds 0]
                                  [--out results/ablation]

Word vectors and embeddings do not depend on the features: one fit serves all variants, whose link
posteriors are fitted to the same held-out links. Prints differences in AUC and MRR (protocol
`clean`, at most 3,000 test links) and writes one file per network; finished fits are not repeated.
"""

from __future__ import annotations

import argparse
import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import networks
import numpy as np

import vhe
from vhe.evaluation.experiment import parse_seeds
from vhe.predict.calibration import ReliabilityCurve
from vhe.predict.link_posterior import LinkPosterior
from vhe.predict.pair_features import GROUPS, structure_factors
from vhe.runtime.files import atomic_write
from vhe.runtime.provenance import provenance

REMOVED = ("", *GROUPS, ",".join(GROUPS))  # nothing, each group, all groups
TESTED_LINKS = 3_000


class AllPosteriors(vhe.VHE):
    """A fit whose ``posteriors_`` are without each of `REMOVED`."""

    def _fit_link_posterior(self, prepared: Any) -> ReliabilityCurve:
        self.posteriors_: dict[str, LinkPosterior] = {}
        for removed in REMOVED[::-1]:
            kept = [group for group in GROUPS if group not in removed.split(",")]
            self.link_features = ",".join(kept)
            curve = super()._fit_link_posterior(prepared)
            self.posteriors_[removed] = self._link_posterior
        # the tables of all features, whatever the weights of the last posterior
        self._link_posterior = LinkPosterior(dict.fromkeys(self._feature_names(), 1.0), 0.0)
        links = prepared.network.links
        self._structure = structure_factors(links, len(prepared.network), prepared.seed)
        return curve


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", default="cora,hepth,seealso,debian-core,perl,headers")
    parser.add_argument("--ratio", default="15,55,95")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--out", type=Path, default=Path("results/ablation"))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.networks.split(","):
        network = networks.load(name)
        file = arguments.out / f"{name}.json"
        stored = {"network": name, "origin": provenance(0), "fits": []}
        if file.exists():
            stored = json.loads(file.read_text())
        for percent in map(int, arguments.ratio.split(",")):
            for seed in parse_seeds(arguments.seeds):
                key = {"ratio": percent, "seed": seed}
                if any(key.items() <= fit.items() for fit in stored["fits"]):
                    continue
                scores = measure(network(seed), percent / 100, seed)
                stored["fits"].append(key | {"scores": scores})
                with atomic_write(file) as temporary:
                    temporary.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
                print(f"{name}, {percent} %, seed {seed}: {differences(scores)}", flush=True)


def measure(network: vhe.TextNetwork, ratio: float, seed: int) -> dict[str, list[float]]:
    """AUC and MRR, fractions, by what is removed."""
    train, test = network.split_edges(ratio, seed=seed)
    part = np.random.default_rng(seed).permutation(len(test))[:TESTED_LINKS]
    test = replace(test, pairs=test.pairs[np.sort(part)])
    model = AllPosteriors(random_state=seed, verbose=False).fit(train)
    found = {}
    for removed, posterior in model.posteriors_.items():
        model._link_posterior = posterior
        scores = vhe.evaluate(model, test)
        found[removed] = [scores.auc, scores.mrr]
    return found


def differences(scores: dict[str, list[float]]) -> str:
    default = np.array(scores[""])
    changes = {name: 100 * (np.array(found) - default) for name, found in scores.items() if name}
    return ", ".join(f"without {k} {auc:+.2f} / {mrr:+.2f}" for k, (auc, mrr) in changes.items())


if __name__ == "__main__":
    main()
