"""Note taker: from a folder of Markdown notes to a checklist of links that are missing."""

import tempfile
from pathlib import Path

import vhe

folder = Path(tempfile.mkdtemp())
notes = folder / "notes"
notes.mkdir()

# Write a folder of notes, such as an Obsidian vault: here, one note per function of scipy.signal.
whole = vhe.load("seealso")
part = whole.subnetwork([i for i, n in enumerate(whole.ids) if n.startswith("scipy.signal.")])
linked: dict[int, list[int]] = {i: [] for i in range(len(part))}
for i, j in part.links.tolist():
    linked[i].append(j)
names = [name.removeprefix("scipy.signal.") for name in part.ids]
for i, text in enumerate(part.texts):
    links = "\n".join(f"- [[{names[j]}]]" for j in linked[i])
    (notes / f"{names[i]}.md").write_text(f"{text}\n\nSee also:\n{links}\n", encoding="utf-8")

# Everything below works with your own folder: vhe.read("path/to/notes").
network = vhe.read(notes)
print(network)
for note in network.notes:  # broken links and everything that was left out
    print("note:", note)
model = vhe.VHE(random_state=0, verbose=False).fit(network)

# The best missing links of the whole folder, without pairs of nearly the same text.
missing = model.suggest_all(k=10, duplicates=False)
lines = []
for row in missing.itertuples():
    words = [phrase for phrase, _ in model.explain(row.source, row.target).target.phrases(2)]
    lines.append(f"- [ ] [[{row.source}]] - [[{row.target}]] ({', '.join(words)})")
checklist = folder / "missing links.md"
checklist.write_text("\n".join(lines) + "\n", encoding="utf-8")
print(checklist.read_text(encoding="utf-8"))

# Where does a thought belong that has no links yet?
thought = "I want to remove slow drift from a signal before I look at its spectrum."
scores = model.score_texts([thought])[0]
for i in (-scores).argsort()[:3]:
    print("related:", network.ids[i])
