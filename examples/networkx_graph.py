"""A NetworkX graph in, the same graph with embeddings and new edges out."""

import networkx as nx

import vhe

# Any graph whose vertices have an attribute with their text; ids may be anything hashable.
graph = vhe.load("seealso").to_networkx().to_undirected()
graph = graph.subgraph([name for name in graph if name.startswith("networkx.")])
graph = nx.Graph(graph.subgraph(max(nx.connected_components(graph), key=len)))
print(graph)

network = vhe.TextNetwork.from_networkx(graph, text="text", label="label")
model = vhe.VHE(random_state=0, steps=10, verbose=False).fit(network)

embedded = model.to_networkx()  # the graph, and at each vertex its embedding
some = next(iter(embedded))
print(some, "has", embedded.nodes[some]["embedding"].shape[0], "numbers")

# What the graph says alone, beside what texts and graph say together.
pairs = [(row.source, row.target) for row in model.suggest_all(k=1).itertuples()]
shared = {(u, v): score for u, v, score in nx.jaccard_coefficient(graph, pairs)}
unseen = [pair for pair, score in shared.items() if score == 0]
print(f"{len(unseen)} of {len(shared)} suggestions join vertices without a common neighbour")

# Links that are likely become edges that say so.
for row in model.suggest_all(k=1).itertuples():
    if row.probability > 0.1:
        embedded.add_edge(row.source, row.target, suggested=row.probability)
print(embedded.number_of_edges() - graph.number_of_edges(), "edges were added")
