"""Add new documents to a model every day without retraining, and save it."""

import tempfile
from pathlib import Path

import vhe

folder = Path(tempfile.mkdtemp()) / "model"

# The initial network: all of scipy.signal except ten functions.
whole = vhe.load("seealso")
whole = whole.subnetwork([i for i, n in enumerate(whole.ids) if n.startswith("scipy.signal.")])
later = [name for name, degree in zip(whole.ids, whole.degrees, strict=True) if degree > 2][:10]
first = whole.subnetwork([i for i, name in enumerate(whole.ids) if name not in later])
vhe.VHE(random_state=0, verbose=False).fit(first).save(folder)

for day in range(2):
    model = vhe.VHE.load(folder)  # verifies the checksums
    new = {name: whole.texts[whole.index(name)] for name in later[5 * day : 5 * day + 5]}

    # Only the texts are given, no links.
    hits = 0
    model.add_vertices(new)
    for name in new:
        linked = {n for pair in whole.links if whole.index(name) in pair for n in pair}
        found = [whole.index(suggestion.id) for suggestion in model.suggest_links(name, k=5)]
        hits += bool(linked & set(found))
    print(f"day {day + 1}: {hits} of {len(new)} have a true link among 5 suggestions")

    model.save(folder)  # replaces the folder atomically

print(vhe.VHE.load(folder))
print("Refit after some hundred additions: added vertices do not change the model.")
