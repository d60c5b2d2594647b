"""The data of a map: positions, labels and links as the scripts of a page read them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vhe.predict.regions import regions

if TYPE_CHECKING:
    from vhe.data.network import TextNetwork
    from vhe.data.text import Corpus

COLOURS = 12  # labels that have their own colour in map.css
SIDE = 30_000  # coordinates are integers up to this: finer than a screen, short in JSON

Labels = Sequence[Hashable | None] | None


def map_data(
    network: TextNetwork,
    coordinates: np.ndarray,
    texts: Sequence[str],
    labels: Labels,
    suggestions: np.ndarray | None = None,
    probabilities: np.ndarray | None = None,
    corpus: Corpus | None = None,
) -> dict[str, Any]:
    """Vertices with their positions, and pairs of vertices as flat lists.

    With a corpus, regions are named by the words that distinguish them, otherwise by their labels.
    """
    length = 150 if len(network) <= 10_000 else 70
    names, ranks = label_ranks(labels, len(network))
    positions = drawn(coordinates)
    return {
        "ids": [str(vertex_id) for vertex_id in network.ids],
        "x": positions[:, 0].round().astype(int).tolist(),
        "y": positions[:, 1].round().astype(int).tolist(),
        "labels": names,
        "label": ranks.tolist(),
        "regions": [
            {"name": name, "x": round(x), "y": round(y), "vertices": count}
            for name, x, y, count in region_names(positions, names, ranks, corpus)
        ],
        "texts": [first_words(text, length) for text in texts],
        "links": network.links.ravel().tolist(),
        "suggested": [] if suggestions is None else suggestions.ravel().tolist(),
        "probability": [] if probabilities is None else probabilities.round(4).tolist(),
    }


def drawn(coordinates: np.ndarray) -> np.ndarray:
    """Where vertices are drawn, before rounding: (n, 2); y points downwards."""
    positions: np.ndarray = (coordinates - coordinates.min(axis=0)).astype(np.float64)
    positions *= SIDE / (positions.max() or 1.0)
    positions[:, 1] = positions[:, 1].max() - positions[:, 1]
    return positions


def region_names(
    positions: np.ndarray, names: Sequence[str], ranks: np.ndarray, corpus: Corpus | None
) -> list[tuple[str, float, float, int]]:
    """The name of each region, where to write it, and its number of vertices."""
    if corpus is not None:
        return [(" · ".join(r.words), r.x, r.y, r.vertices) for r in regions(positions, corpus)]
    found = []
    for k, name in enumerate(names[:COLOURS]):
        x, y = np.median(positions[ranks == k], axis=0).tolist()
        found.append((name, x, y, int((ranks == k).sum())))
    return found


def label_ranks(labels: Labels, n: int) -> tuple[list[str], np.ndarray]:
    """Label names, most frequent first, and the rank of each vertex's label, -1 for none: (n,)."""
    names = ["" if label is None else str(label) for label in labels or [None] * n]
    counts = Counter(filter(None, names))
    ordered = sorted(counts, key=lambda name: (-counts[name], name))
    rank = {name: k for k, name in enumerate(ordered)}
    return ordered, np.array([rank.get(name, -1) for name in names])


def grouped_labels(labels: Labels) -> Labels:
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


def first_words(text: str, length: int = 150) -> str:
    """The beginning of a text on one line, cut at a space."""
    words = " ".join(text[: 4 * length].split())
    if len(words) <= length:
        return words
    return words[: length + 1].rsplit(" ", 1)[0][:length].rstrip(" ,;:.") + "…"
