"""The packages that apt knows of on this machine: a large network that is there without download.

A vertex is a package, its text the description (apt's lists often hold only its first line), its
label the section. An edge is a package named in Depends, Pre-Depends, Recommends or Suggests, each
alternative of `a | b` for itself, as far as it is a package and not a virtual one.
"""

from __future__ import annotations

import os
import re
import subprocess
from array import array
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from vhe.data.network import TextNetwork
from vhe.errors import VHEError

LINKS = ("Depends", "Pre-Depends", "Recommends", "Suggests")
DESCRIPTIONS = ("Description", "Description-en")
WANTED = frozenset({"Package", "Section", *LINKS, *DESCRIPTIONS})
PACKAGE = re.compile(r"(?:^|[,|])\s*([a-z0-9][a-z0-9+.\-]+)")


def load(command: Sequence[str] = ("apt-cache", "dumpavail")) -> TextNetwork:
    """Build the network from what `command` prints, a line at a time."""
    try:
        process = subprocess.Popen(
            list(command),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
            encoding="utf-8",
            errors="replace",
        )
    except OSError as error:
        raise VHEError(
            f"{command[0]} cannot be run ({error.strerror}); the dataset 'debian' needs apt, so "
            "take another one here."
        ) from error
    with process:
        assert process.stdout is not None
        network = parse(process.stdout)
    if process.returncode != 0:
        raise VHEError(
            f"{' '.join(command)} failed with status {process.returncode}; run apt-get update."
        )
    return network


def parse(lines: Iterable[str]) -> TextNetwork:
    """Build the network from the lines of a package list."""
    numbers: dict[str, int] = {}  # of every name, a package's or only a dependency's
    order: list[str] = []  # packages as they come
    texts: list[str] = []
    sections: list[str | None] = []
    sources, targets = array("q"), array("q")
    vertex: dict[int, int] = {}  # a name's number -> its vertex
    for record in _records(lines):
        name = record["Package"]
        number = numbers.setdefault(name, len(numbers))
        if number in vertex:  # another version or architecture of the same package
            continue
        named = {
            numbers.setdefault(other, len(numbers)): None
            for field in LINKS
            for other in PACKAGE.findall(record.get(field, ""))
        }
        named.pop(number, None)
        sources.extend([len(order)] * len(named))
        targets.extend(named)
        vertex[number] = len(order)
        order.append(name)
        texts.append(max((record.get(field, "") for field in DESCRIPTIONS), key=len))
        sections.append(record.get("Section", "").rpartition("/")[2] or None)
    if not order:
        raise VHEError("apt's package lists are empty; run apt-get update.")
    places = np.full(len(numbers), -1, dtype=np.int64)
    places[list(vertex)] = list(vertex.values())
    edges = np.stack([np.array(sources), places[np.array(targets, dtype=np.int64)]], axis=1)
    return TextNetwork(
        order, texts, edges[edges[:, 1] >= 0], sections, directed=True, name="debian"
    )


def _records(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    """Yield the wanted fields of each package; a field that goes on is joined by spaces."""
    record: dict[str, str] = {}
    field = ""
    for line in lines:
        if line[0] in " \t":
            if field and line.strip() != ".":  # a full stop alone stands for a blank line
                record[field] += " " + line.strip()
            continue
        if line == "\n":
            if "Package" in record:
                yield record
            record, field = {}, ""
            continue
        field, _, value = line.partition(":")
        if field in WANTED:
            record[field] = value.strip()
        else:
            field = ""
    if "Package" in record:
        yield record
