"""The default fit against the first edition's: seconds, AUC and MRR in one interleaved run.

    git worktree add ../first-edition 2aef1b1
    python benchmarks/first_edition.py ../first-edition --datasets cora,hepth --rounds 3

Each round fits the same split with both editions, one after the other, with one thread.
The seconds are CPU seconds of `fit`; imports, reading and the compilation of native code are not
counted.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

CHILD = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import vhe
name, ratio, seed = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
tiny = vhe.TextNetwork.from_edges({i: f"word{i % 3} more text" for i in range(12)},
                                  [(i, (i + 3) % 12) for i in range(12)])
vhe.VHE(random_state=0, verbose=False, threads=1).fit(tiny)  # imports and compiles
train, test = vhe.load(name).split_edges(ratio, seed=seed)
began = time.process_time()
model = vhe.VHE(random_state=seed, verbose=False, threads=1).fit(train)
seconds = time.process_time() - began
scores = vhe.evaluate(model, test)
print(json.dumps({"seconds": seconds, "auc": scores.auc, "mrr": scores.mrr}))
"""


def fit(source: Path, dataset: str, ratio: float, seed: int) -> dict[str, float]:
    environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", CHILD, dataset, str(ratio), str(seed)]
    output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(output.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("first", type=Path, help="checkout of the first edition")
    parser.add_argument("--datasets", default="cora,hepth")
    parser.add_argument("--ratio", type=float, default=0.55)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    editions = {
        "first": arguments.first / "src",
        "second": Path(__file__).resolve().parents[1] / "src",
    }
    for dataset in arguments.datasets.split(","):
        results: dict[str, list[dict[str, float]]] = {name: [] for name in editions}
        for seed in range(arguments.rounds):
            for name, source in editions.items():
                results[name].append(fit(source, dataset, arguments.ratio, seed))
        medians = {}
        for name, found in results.items():
            medians[name] = statistics.median(r["seconds"] for r in found)
            auc, mrr = (100 * statistics.fmean(r[k] for r in found) for k in ("auc", "mrr"))
            print(
                f"{dataset} {name} edition: {medians[name]:.2f} s, AUC {auc:.2f}, MRR {mrr:.2f}",
                flush=True,
            )
        print(f"{dataset}: {medians['first'] / medians['second']:.1f} times as fast", flush=True)


if __name__ == "__main__":
    main()
