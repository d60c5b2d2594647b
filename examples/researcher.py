"""Researcher: compare methods on the same held-out links, with the deviation over splits."""

from statistics import mean, stdev

import vhe
from vhe.evaluation.methods import make, names

# For your own data: network = vhe.read("library.bib")
whole = vhe.load("seealso")
network = whole.subnetwork([i for i, n in enumerate(whole.ids) if n.startswith("scipy.signal.")])
print(network)
print("available methods:", ", ".join(names()))

settings = {"vhe": {"verbose": False}}
scores: dict[str, list[tuple[float, float]]] = {}
for seed in range(3):
    # Links are undirected and distinct; negatives are never links of the network.
    train, test = network.split_edges(0.8, seed=seed)
    for name in ("tfidf", "diffused-text", "tadw", "vhe"):
        method = make(name, seed=seed, **settings.get(name, {})).fit(train)
        found = vhe.evaluate(method, test)
        scores.setdefault(name, []).append((found.auc, found.mrr))

print(f"{'method':<14} {'AUC':>15} {'MRR':>15}")
for name, runs in scores.items():
    columns = (f"{mean(column):.3f} ± {stdev(column):.3f}" for column in zip(*runs, strict=True))
    print(f"{name:<14}", *(f"{column:>15}" for column in columns))
print(f"{len(test)} held-out links: a difference below the deviation is noise.")
