"""Small networks: `vhe` against diffused text on neighbourhoods of 100 to 300 vertices.

    python benchmarks/small_networks.py [--seeds 100-109] [--datasets cora,hepth,seealso]

Each neighbourhood is the breadth-first ball around a random vertex, cut at a random size. 85 % of
its links are for training. Prints the mean AUC and MRR of both methods, the mean difference and its
standard error.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

import vhe
from vhe.baselines.diffused_text import DiffusedText
from vhe.data.network import TextNetwork
from vhe.evaluation.experiment import parse_seeds

RATIO = 0.85


def neighbourhood(network: TextNetwork, seed: int) -> TextNetwork:
    """The vertices around a random one, 100 to 300 of them, and the links among them."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(100, 301))
    ends = np.concatenate([network.links, network.links[:, ::-1]])
    ends = ends[np.argsort(ends[:, 0], kind="stable")]
    first = np.searchsorted(ends[:, 0], np.arange(len(network) + 1))
    while True:
        chosen = [int(rng.choice(np.flatnonzero(network.degrees > 0)))]
        seen = set(chosen)
        for vertex in chosen:  # grows while it is read
            if len(chosen) >= size:
                break
            for other in rng.permutation(ends[first[vertex] : first[vertex + 1], 1]).tolist():
                if other not in seen and len(chosen) < size:
                    seen.add(other)
                    chosen.append(other)
        if len(chosen) >= 100:
            return network.subnetwork(np.array(chosen))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="100-109")
    parser.add_argument("--datasets", default="cora,hepth,seealso")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for name in arguments.datasets.split(","):
        network = vhe.load(name)
        for seed in parse_seeds(arguments.seeds):
            train, test = neighbourhood(network, seed).split_edges(RATIO, seed=seed)
            model = vhe.VHE(random_state=seed, verbose=False).fit(train)
            scores = [vhe.evaluate(m, test) for m in (model, DiffusedText().fit(train))]
            rows.append([(100 * s.auc, 100 * s.mrr) for s in scores])
            chosen = ", ".join(f"{k} {v:g}" for k, v in model.result_["chosen"].items())
            (auc, mrr), (other_auc, other_mrr) = rows[-1]
            print(
                f"{name} {seed}: {len(train)} vertices, {len(train.links)} links: vhe {auc:.1f} / "
                f"{mrr:.1f}, diffused text {other_auc:.1f} / {other_mrr:.1f} ({chosen}, "
                f"best step {model.result_['best_step']})",
                flush=True,
            )
    table = np.array(rows)  # (networks, methods, measures)
    for k, measure in enumerate(("AUC", "MRR")):
        difference = table[:, 0, k] - table[:, 1, k]
        error = difference.std(ddof=1) / np.sqrt(len(difference))
        print(
            f"{measure}: vhe {table[:, 0, k].mean():.2f}, diffused text "
            f"{table[:, 1, k].mean():.2f}, difference {difference.mean():+.2f} ± {error:.2f}"
        )


if __name__ == "__main__":
    main()
