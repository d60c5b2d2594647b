"""Data scientist: embeddings as features of a scikit-learn pipeline, links as a NetworkX graph."""

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import vhe

# Vertices with a label. Embeddings depend on texts and links, not on labels.
whole = vhe.load("seealso")
wanted = ("scipy.signal", "scipy.stats", "scipy.ndimage", "scipy.linalg")
network = whole.subnetwork([i for i, label in enumerate(whole.labels) if label in wanted])
model = vhe.VHE(random_state=0, verbose=False).fit(network)

# The first step of the pipeline maps ids to embeddings.
embedded = FunctionTransformer(lambda ids: model.embed(ids))
by_model = make_pipeline(embedded, StandardScaler(), LogisticRegression(max_iter=500))
by_text = make_pipeline(TfidfVectorizer(), LogisticRegression(max_iter=500))

ids, labels = np.array(network.ids, dtype=object), np.array(network.labels)
print(f"{len(network)} functions, {len(wanted)} labels")
print(f"embedding: accuracy {cross_val_score(by_model, ids, labels, cv=5).mean():.3f}")
print(f"TF-IDF:    accuracy {cross_val_score(by_text, network.texts, labels, cv=5).mean():.3f}")

# The same model as a graph, with likely links as edges of their own.
graph = model.to_networkx()  # vertex attributes: text, label, embedding
known = graph.number_of_edges()
for row in model.suggest_each(k=1).itertuples():
    if row.probability > 0.1:
        graph.add_edge(row.source, row.target, suggested=row.probability)
print(graph.number_of_edges() - known, "edges added")
