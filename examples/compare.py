"""Compare several methods on the same held-out links of a network."""

import time

import vhe
from vhe.evaluation.methods import make, names

# For your own data: vhe.TextNetwork.from_files("vertices.csv", "edges.csv")
whole = vhe.load("seealso")
network = whole.subnetwork([i for i, n in enumerate(whole.ids) if n.startswith("scipy.signal.")])
print(network)
print("available methods:", ", ".join(names()))

# Links are undirected and distinct; negatives are never links of the network.
train, test = network.split_edges(0.8, seed=0)

settings = {"vhe": {"verbose": False}}
print(f"{'method':<14} {'AUC':>6} {'MRR':>6} {'Hits@10':>8} {'seconds':>8}")
for name in ("tfidf", "diffused-text", "tadw", "vhe"):
    start = time.process_time()
    method = make(name, seed=0, **settings.get(name, {})).fit(train)
    seconds = time.process_time() - start
    scores = vhe.evaluate(method, test)
    print(f"{name:<14} {scores.auc:>6.3f} {scores.mrr:>6.3f} {scores.hits10:>8.3f} {seconds:>8.1f}")

print(f"{len(test)} held-out links: differences of one or two points are not significant.")
