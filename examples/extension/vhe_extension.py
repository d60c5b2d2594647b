"""A method and a reader that `vhe` finds by the entry points in pyproject.toml."""

from __future__ import annotations

from typing import Self
from xml.etree import ElementTree

import numpy as np

import vhe


class SharedWords(vhe.CosineMethod):
    """Cosine of random projections of the sets of words: a baseline without training.

    Parameters
    ----------
    random_state : int
        random seed of the projection
    dimension : int
        of the embedding
    """

    def __init__(self, random_state: int = 0, dimension: int = 128) -> None:
        self.random_state = random_state
        self.dimension = dimension

    def fit(self, network: vhe.TextNetwork) -> Self:
        """Set ``embedding_``, one row per vertex."""
        words = [set(text.lower().split()) for text in network.texts]
        number = {word: k for k, word in enumerate(sorted(set().union(*words)))}
        rng = np.random.default_rng(self.random_state)
        vectors = rng.normal(size=(len(number), self.dimension)).astype(np.float32)
        rows = [vectors[[number[word] for word in own]].sum(axis=0) for own in words]
        self.embedding_ = np.stack(rows)
        return self


def read_opml(location: str) -> vhe.TextNetwork:
    """Read an outline: each item is a vertex, linked to the item that contains it."""
    try:
        root = ElementTree.parse(location).getroot()
    except (OSError, ElementTree.ParseError) as error:
        raise vhe.VHEError(f"{location}: cannot read the outline: {error}") from None
    texts: dict[str, str] = {}
    edges: list[tuple[str, str]] = []

    def add(item: ElementTree.Element, parent: str | None) -> None:
        vertex = str(len(texts) + 1)
        texts[vertex] = f"{item.get('text', '')} {item.get('_note', '')}".strip()
        if parent is not None:
            edges.append((parent, vertex))
        for child in item.findall("outline"):
            add(child, vertex)

    for item in root.findall("body/outline"):
        add(item, None)
    return vhe.TextNetwork.from_edges(texts, edges, name="outline")
