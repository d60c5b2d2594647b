"""The packages in the package lists of apt on this machine: a large network without a download.

Vertices are packages; texts are their descriptions (apt's lists often contain only the first line);
labels are sections. Edges lead to the packages in Depends, Pre-Depends, Recommends and Suggests,
including every alternative of `a | b`; virtual packages are omitted.
"""

from __future__ import annotations

import os
import re
import subprocess
from array import array
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from vhe.data.parts import NetworkParts
from vhe.errors import VHEError

LINKS = ("Depends", "Pre-Depends", "Recommends", "Suggests")
DESCRIPTIONS = ("Description", "Description-en")
WANTED = frozenset({"Package", "Section", *LINKS, *DESCRIPTIONS})
PACKAGE = re.compile(r"(?:^|[,|])\s*([a-z0-9][a-z0-9+.\-]+)")


def read_debian(command: Sequence[str] = ("apt-cache", "dumpavail")) -> NetworkParts:
    """Build the network from the output of `command`."""
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
            "use another dataset on this machine."
        ) from error
    with process:
        assert process.stdout is not None
        parts = parse(process.stdout)
    if process.returncode != 0:
        raise VHEError(
            f"{' '.join(command)} failed with status {process.returncode}; run apt-get update."
        )
    return parts


def parse(lines: Iterable[str]) -> NetworkParts:
    """Build the network from the lines of a package list."""
    numbers: dict[str, int] = {}  # of all names, of packages and of dependencies
    order: list[str] = []  # packages in the order of the list
    texts: list[str] = []
    sections: list[str | None] = []
    sources, targets = array("q"), array("q")
    vertex: dict[int, int] = {}  # number of a name -> vertex
    for record in _records(lines):
        name = record["Package"]
        number = numbers.setdefault(name, len(numbers))
        if number in vertex:  # another version or architecture
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
    vertices = np.full(len(numbers), -1, dtype=np.int64)
    vertices[list(vertex)] = list(vertex.values())
    edges = np.stack([np.array(sources), vertices[np.array(targets, dtype=np.int64)]], axis=1)
    return NetworkParts(
        order, texts, edges[edges[:, 1] >= 0], sections, directed=True, name="debian"
    )


def _records(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    """Yield the wanted fields of each package; continuation lines are joined by spaces."""
    record: dict[str, str] = {}
    field = ""
    for line in lines:
        if line[0] in " \t":
            if field and line.strip() != ".":  # a single full stop stands for a blank line
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
