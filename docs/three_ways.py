"""Print README's "Three ways in" with their true outputs: notes, a bibliography, two tables.

`python docs/three_ways.py` writes the three sources, 150 functions of numpy and scipy that refer to
each other, runs the commands in their folder, and prints each with what it printed (progress lines
left out). Times differ between runs; everything else depends on the installed packages alone.
"""

from __future__ import annotations

import csv
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "data" / "readers"))
from notes import linked_functions, write_exports, write_notes

WAYS = {
    "A folder of notes": (
        "vhe fit notes --out model --seed 0",
        "vhe suggest model -k 3 --no-duplicates",
        "vhe suggest model -k 3 --no-duplicates --format markdown",
    ),
    "A bibliography": (
        "vhe fit library.bib --out model --seed 0",
        "vhe report model --out report.html",
    ),
    "Two tables": (
        "vhe fit --vertices vertices.csv --edges edges.csv --out mymodel --seed 0",
        "vhe suggest mymodel numpy.mean -k 3",
        "vhe score mymodel numpy.mean numpy.ma.var",
        "vhe explain mymodel numpy.mean numpy.ma.var",
    ),
}


def write_sources(folder: Path) -> None:
    """Write a folder of notes, a BibTeX file and two CSV files of the same network."""
    network = linked_functions()
    write_notes(folder / "notes", network)
    write_exports(folder, network)["a.bib"].rename(folder / "library.bib")
    edges = [(network.ids[i], network.ids[j]) for i, j in network.edges.tolist()]
    texts = zip(network.ids, network.texts, strict=True)
    for name, header, rows in (
        ("vertices", ("id", "text"), texts),
        ("edges", ("source", "target"), edges),
    ):
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([header, *rows])


def run(command: str, folder: Path) -> str:
    """Run a command in a terminal of 80 columns; return its output, notes first."""
    words = [sys.executable, "-m", *shlex.split(command)]
    environment = os.environ | {"COLUMNS": "80", "PYTHONWARNINGS": "ignore"}
    ran = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    notes = [line for line in ran.stderr.splitlines() if line.startswith("note:")]
    return "\n".join([*notes, ran.stdout.strip("\n")])


def main() -> None:
    for title, commands in WAYS.items():
        print(f"## {title}\n")
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name) / "functions"
            folder.mkdir()
            write_sources(folder)
            for command in commands:
                print(f"```sh\n{command}\n```\n\n```text\n{run(command, folder)}\n```\n")


if __name__ == "__main__":
    main()
