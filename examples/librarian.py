"""Librarian: which papers of a bibliography should cite each other, and where does a new one go?"""

import json
import tempfile
from pathlib import Path

import vhe

library = Path(tempfile.mkdtemp()) / "library.json"

# Write a CSL-JSON export, as Zotero makes it: here, the functions of scipy.stats as "papers".
whole = vhe.load("seealso")
part = whole.subnetwork([i for i, n in enumerate(whole.ids) if n.startswith("scipy.stats.")])
cited: dict[str, list[str]] = {name: [] for name in part.ids}
for i, j in part.links.tolist():
    cited[part.ids[i]].append(part.ids[j])
entries = [
    {
        "id": name,
        "type": "article",
        "title": name.rpartition(".")[2],
        "abstract": text,
        "references": cited[name],
    }
    for name, text in zip(part.ids, part.texts, strict=True)
]
library.write_text(json.dumps(entries), encoding="utf-8")

# Everything below works with your own export: .bib, .ris or CSL-JSON.
network = vhe.read(library)
print(network)

# Measure first: hide a tenth of the references and see how well they are found again.
known, hidden = network.split_edges(0.9, seed=0)
model = vhe.VHE(random_state=0, verbose=False).fit(known)
scores = vhe.evaluate(model, hidden)
print(f"hidden references: AUC {scores.auc:.2f}, {scores.hits10:.0%} among the first 10 of 101")

# Then use all of them.
model = vhe.VHE(random_state=0, verbose=False).fit(network)
for row in model.suggest_all(k=5, duplicates=False).itertuples():
    print(f"{row.probability:.2f}  {row.source}  ->  {row.target}")

# A paper that arrived today: neighbours by content, before anybody has cited it.
abstract = "A test whether two independent samples have the same mean, without equal variances."
model.add_vertices({"new": abstract})
for suggestion in model.suggest_links("new", k=3):
    print(f"new  ->  {suggestion.id}")
mean, std = model.embed(["new"], return_std=True)
print(f"uncertainty {std.mean():.2f}, of the others {model.embedding_std_.mean():.2f}")
