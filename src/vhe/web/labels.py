"""Labels on a map: which get a colour, how many are merged, and where their names are written."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np

COLOURS = 12  # labels that have their own colour in map.css


def label_ranks(labels: Sequence[Hashable | None] | None, n: int) -> tuple[list[str], np.ndarray]:
    """Label names, most frequent first, and the rank of each vertex's label, -1 for none: (n,)."""
    names_of = ["" if label is None else str(label) for label in (labels or [None] * n)]
    names, inverse, counts = np.unique(names_of, return_inverse=True, return_counts=True)
    order = np.lexsort((names, -counts))
    order = order[names[order] != ""]
    rank = np.full(len(names), -1)
    rank[order] = np.arange(len(order))
    return names[order].tolist(), rank[inverse]


def grouped_labels(labels: Sequence[Hashable | None] | None) -> Sequence[Hashable | None] | None:
    """Merge dotted labels such as ``package.module`` if there are more than there are colours."""
    names = set(labels or ()) - {None}
    if labels is None or len(names) <= COLOURS:
        return labels
    if sum(bool(re.fullmatch(r"\w+(\.\w+)+", str(name))) for name in names) < len(names) / 2:
        return labels
    groups = iter(subpackages([str(label) for label in labels if label is not None], COLOURS))
    return [None if label is None else next(groups) for label in labels]


def subpackages(labels: Sequence[str], count: int) -> list[str]:
    """Shorten dotted labels to at most ``count`` names of packages and subpackages.

    The largest subpackages keep their names, the others get the name of their package. With more
    than ``count`` packages the result has one name per package.
    """
    parts = [label.split(".") for label in labels]
    packages = {first for first, *_ in parts}
    second = Counter(".".join(part[:2]) for part in parts if len(part) > 1)
    largest = {name for name, _ in second.most_common(max(count - len(packages), 0))}
    return [name if (name := ".".join(part[:2])) in largest else part[0] for part in parts]


def label_positions(
    positions: np.ndarray, names: Sequence[str], ranks: np.ndarray
) -> list[tuple[str, float, float]]:
    """Where to write each label: the mean of its vertices around its densest grid cell."""
    low = positions.min(axis=0) if len(positions) else np.zeros(2)
    extent = float((positions - low).max()) if len(positions) else 0.0
    cells = ((positions - low) * (20 / (extent or 1.0))).astype(int)
    found = []
    for k, name in enumerate(names):
        members = np.flatnonzero(ranks == k)
        occupied, counts = np.unique(cells[members], axis=0, return_counts=True)
        distance = np.abs(cells[members] - occupied[counts.argmax()]).max(axis=1)
        x, y = positions[members[distance <= 1]].mean(axis=0).tolist()
        found.append((name, x, y))
    return found
