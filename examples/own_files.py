"""From two CSV files to a table of suggested missing links."""

import csv
import tempfile
from pathlib import Path

import vhe

folder = Path(tempfile.mkdtemp())

# Write the input: a table of vertices and a table of edges of scipy's signal functions.
part = [i for i, name in enumerate(vhe.load("seealso").ids) if name.startswith("scipy.signal.")]
vertices, edges = vhe.load("seealso").subnetwork(part).to_pandas()
vertices.to_csv(folder / "vertices.csv", index=False)  # id, text, label
edges.to_csv(folder / "edges.csv", index=False)  # source, target

network = vhe.TextNetwork.from_files(folder / "vertices.csv", folder / "edges.csv")
print(network)
for note in network.notes:  # remarks of the reader
    print("note:", note)

model = vhe.VHE(random_state=0, verbose=False).fit(network)

# The most likely missing links of the whole network; suggest_each has those of every vertex.
table = model.suggest_all(k=50)
table.to_csv(folder / "suggestions.csv", index=False, quoting=csv.QUOTE_MINIMAL)
for row in table.head(5).itertuples():
    print(f"{row.probability:.2f}  {row.source}  ->  {row.target}")

# Explain the most likely one.
first = table.iloc[0]
why = model.explain(first["source"], first["target"])
print("words:", ", ".join(phrase for phrase, _ in why.source.phrases(3)))
print(f"{100 * why.text_share:.0f} % of the score from the texts, the rest from the links")
