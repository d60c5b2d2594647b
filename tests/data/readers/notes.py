"""Write linked notes from the docstrings of installed packages, and the same network as exports.

`python tests/data/readers/notes.py FOLDER [COUNT]` writes the notes in Markdown.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from vhe.data.network import TextNetwork
from vhe.data.readers.seealso import read_seealso


def linked_functions(count: int = 150) -> TextNetwork:
    """Return the See Also network of functions that are reached first from `numpy.mean`."""
    network = TextNetwork.from_parts(read_seealso(words=40), count_oddities=False)
    neighbours: dict[int, list[int]] = {}
    for i, j in network.links.tolist():
        neighbours.setdefault(i, []).append(j)
        neighbours.setdefault(j, []).append(i)
    reached = dict.fromkeys([network.index("numpy.mean")])
    for vertex in (waiting := list(reached)):
        for other in neighbours.get(vertex, []):
            if other not in reached:
                reached[other] = None
                waiting.append(other)
    return network.subnetwork(list(reached)[:count])


def references(network: TextNetwork) -> list[list[str]]:
    """Return the ids that each vertex refers to."""
    found: list[list[str]] = [[] for _ in network.ids]
    for i, j in network.edges.tolist():
        found[i].append(str(network.ids[j]))
    return found


def write_notes(folder: Path, network: TextNetwork) -> None:
    """Write one Markdown file per vertex, in a folder per package, with links of several styles."""
    paths = {str(i): f"{str(i).partition('.')[0]}/{i}.md" for i in network.ids}
    labels = network.labels or (None,) * len(network)
    rows = zip(network.ids, network.texts, labels, references(network), strict=True)
    for vertex, text, label, targets in rows:
        links = []
        for k, target in enumerate(targets):
            relative = f"../{paths[target]}#notes"
            styles = (f"[[{target}]]", f"[[{target.upper()}|{target}]]", f"[{target}]({relative})")
            links.append(styles[k % 3])
        path = folder / paths[str(vertex)]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            f"---\ntitle: {vertex}\ntags: [{label}]\n---\n\n# {vertex}\n\n{text}\n\n## See also\n\n"
            + "".join(f"- {link}\n" for link in links)
            + "\n```python\n[[not a link]]\n```\n",
            encoding="utf-8",
        )
    (folder / "index.md").write_text("[[numpy.mean]] and [[A note to write]]\n", encoding="utf-8")


def write_exports(folder: Path, network: TextNetwork) -> dict[str, Path]:
    """Write the network in the formats of reference managers, OpenAlex and tables."""
    cited = references(network)
    entries: list[dict[str, Any]] = [
        {"id": str(i), "title": str(i), "abstract": text.replace("\n", " "), "label": str(label)}
        for i, text, label in zip(network.ids, network.texts, network.labels or (), strict=True)
    ]
    paths = {n: folder / n for n in ("a.bib", "a.ris", "a.json", "works.jsonl", "table.csv")}

    def braced(value: str) -> str:
        for character in "\\{}%&$#_~^":
            value = value.replace(character, " ")
        return "{" + value + "}"

    paths["a.bib"].write_text(
        "\n".join(
            f"@misc{{{e['id']},\n title = {braced(e['title'])},\n abstract = "
            f"{braced(e['abstract'])},\n keywords = {braced(e['label'])},\n "
            f"cites = {{{', '.join(targets)}}}\n}}"
            for e, targets in zip(entries, cited, strict=True)
        ),
        encoding="utf-8",
    )
    paths["a.ris"].write_text(
        "\n".join(
            "\n".join(
                [f"TY  - JOUR\nID  - {e['id']}\nTI  - {e['title']}\nAB  - {e['abstract']}"]
                + [f"KW  - {e['label']}"]
                + [f"CR  - {target}" for target in targets]
                + ["ER  - \n"]
            )
            for e, targets in zip(entries, cited, strict=True)
        ),
        encoding="utf-8",
    )
    items = [
        {**e, "type": "article", "author": [], "keyword": e["label"], "references": targets}
        for e, targets in zip(entries, cited, strict=True)
    ]
    paths["a.json"].write_text(json.dumps(items), encoding="utf-8")
    number = {e["id"]: f"https://openalex.org/W{k}" for k, e in enumerate(entries)}
    works = []
    for e, targets in zip(entries, cited, strict=True):
        index: dict[str, list[int]] = {}
        for k, word in enumerate(e["abstract"].split()):
            index.setdefault(word, []).append(k)
        works.append(
            {
                "id": number[e["id"]],
                "title": e["title"],
                "abstract_inverted_index": index,
                "referenced_works": [number[t] for t in targets] + ["https://openalex.org/W0000"],
                "primary_topic": {"display_name": e["label"]},
            }
        )
    paths["works.jsonl"].write_text("".join(json.dumps(w) + "\n" for w in works), encoding="utf-8")
    cells = [
        [e["id"], e["title"], e["abstract"], "; ".join(t)]
        for e, t in zip(entries, cited, strict=True)
    ]
    rows = [["Key", "Title", "Abstract Note", "Cites"], *cells]
    paths["table.csv"].write_text(
        "".join(";".join('"' + c.replace('"', '""') + '"' for c in row) + "\n" for row in rows),
        encoding="utf-8",
    )
    return paths


if __name__ == "__main__":
    write_notes(Path(sys.argv[1]), linked_functions(int(sys.argv[2]) if sys.argv[2:] else 150))
