"""Print README's "Three ways in" with their true outputs: notes, a bibliography, two tables.

`python docs/three_ways.py` writes the three sources, 150 functions of numpy and scipy that refer to
each other, runs README's commands in their folder, and prints each with its output, without
progress. Times differ between runs; everything else depends on the installed packages alone.
`make docs-test` compares the outputs with those in README.
"""

from __future__ import annotations

import csv
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "data" / "readers"))
from notes import linked_functions, write_exports, write_notes

README = Path(__file__).resolve().parent.parent / "README.md"
BLOCK = re.compile(r"```sh\n(.*?)```\s+<!-- not run: [^>]*-->\s+```text\n(.*?)```", re.DOTALL)


def ways() -> dict[str, tuple[list[str], str]]:
    """Return the commands of each of README's ways in, and the output that README shows."""
    section = README.read_text(encoding="utf-8").split("\n## Three ways in\n")[1]
    found = {}
    for part in section.split("\nThen query the model")[0].split("\n**")[1:]:
        commands, shown = next(BLOCK.finditer(part)).groups()
        lines = [line.partition(" # ")[0].strip() for line in commands.splitlines()]
        found[part.partition("**")[0]] = [line.removeprefix(".venv/bin/") for line in lines], shown
    return found


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
    for title, (commands, _) in ways().items():
        print(f"## {title}\n")
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name) / "functions"
            folder.mkdir()
            write_sources(folder)
            for command in commands:
                print(f"```sh\n{command}\n```\n\n```text\n{run(command, folder)}\n```\n")


if __name__ == "__main__":
    main()
