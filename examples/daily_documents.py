"""Documents that come every day: taken in without learning anew, and saved as one model."""

import tempfile
from pathlib import Path

import vhe

folder = Path(tempfile.mkdtemp()) / "model"

# What was there on the first day: all of scipy.signal but ten functions.
whole = vhe.load("seealso")
whole = whole.subnetwork([i for i, n in enumerate(whole.ids) if n.startswith("scipy.signal.")])
later = [name for name, degree in zip(whole.ids, whole.degrees, strict=True) if degree > 2][:10]
first = whole.subnetwork([i for i, name in enumerate(whole.ids) if name not in later])
vhe.VHE(random_state=0, steps=20, verbose=False).fit(first).save(folder)

for day in range(2):
    model = vhe.VHE.load(folder)  # every byte is checked
    arrived = {name: whole.texts[whole.index(name)] for name in later[5 * day : 5 * day + 5]}

    # A new text alone is enough: where does it belong?
    right = 0
    model.add_vertices(arrived)
    for name in arrived:
        linked = {n for pair in whole.links if whole.index(name) in pair for n in pair}
        found = [whole.index(suggestion.id) for suggestion in model.suggest_links(name, k=5)]
        right += bool(linked & set(found))
    print(f"day {day + 1}: {right} of {len(arrived)} have a true link among 5 suggestions")

    model.save(folder)  # the old folder is replaced when the new one is complete

print(vhe.VHE.load(folder))
print("Some hundred vertices later, fit again: what was added teaches the model nothing.")
