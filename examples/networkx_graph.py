"""Add embeddings and suggested edges to a NetworkX graph."""

import networkx as nx

import vhe

# Any graph whose vertices have a text attribute; ids may be any hashable values.
graph = vhe.load("seealso").to_networkx().to_undirected()
graph = graph.subgraph([name for name in graph if name.startswith("networkx.")])
graph = nx.Graph(graph.subgraph(max(nx.connected_components(graph), key=len)))
print(graph)

network = vhe.TextNetwork.from_networkx(graph, text="text", label="label")
model = vhe.VHE(random_state=0, verbose=False).fit(network)

embedded = model.to_networkx()  # the graph with the vertex attribute `embedding`
first = next(iter(embedded))
print(first, "has", embedded.nodes[first]["embedding"].shape[0], "dimensions")

# Compare with a score from the graph alone.
pairs = [(row.source, row.target) for row in model.suggest_each(k=1).itertuples()]
shared = {(u, v): score for u, v, score in nx.jaccard_coefficient(graph, pairs)}
unseen = [pair for pair, score in shared.items() if score == 0]
print(f"{len(unseen)} of {len(shared)} suggestions link vertices without a common neighbour")

# Add likely links as edges with an attribute.
for row in model.suggest_each(k=1).itertuples():
    if row.probability > 0.1:
        embedded.add_edge(row.source, row.target, suggested=row.probability)
print(embedded.number_of_edges() - graph.number_of_edges(), "edges added")
