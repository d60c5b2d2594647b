"""What was computed for one network, carried over to a changed one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vhe.predict.candidates import DUPLICATE, text_cosines
from vhe.predict.layout import place
from vhe.web.ranking import Ranking

if TYPE_CHECKING:
    from vhe.data.network import TextNetwork
    from vhe.fitted import FittedModel

SUGGESTIONS = 10  # of each new vertex in the ranking


def new_positions(before: TextNetwork, after: TextNetwork) -> np.ndarray:
    """The number of each vertex in a changed network, -1 if it was removed: (n,)."""
    if after.ids[: len(before)] == before.ids:
        return np.arange(len(before))
    return np.array([after.index(v) if v in after else -1 for v in before.ids], dtype=np.int64)


def arranged(model: FittedModel, before: TextNetwork, coordinates: np.ndarray) -> np.ndarray:
    """The map of a changed network: new vertices lie near those with similar embeddings: (n, 2)."""
    network = model.network_
    if network.ids == before.ids:
        return coordinates
    position = new_positions(before, network)
    old = np.flatnonzero(position >= 0)
    placed = np.zeros((len(network), 2))
    placed[position[old]] = coordinates[old]
    new = np.setdiff1d(np.arange(len(network)), position[old])
    if len(new) and len(old):
        rows = model.embedding_
        placed[new] = place(rows[position[old]], coordinates[old], rows[new])
    return placed


def reranked(model: FittedModel, before: TextNetwork, ranking: Ranking) -> Ranking:
    """The ranking of a changed network: new vertices enter with their likeliest links."""
    network = model.network_
    position = new_positions(before, network)
    found = ranking.renumbered(position, network)
    pairs, probability = [], []
    for number in np.setdiff1d(np.arange(len(network)), position).tolist():
        for link in model.suggest_links(network.ids[number], SUGGESTIONS):
            other = network.index(link.id)
            pairs.append((min(number, other), max(number, other)))
            probability.append(link.probability)
    if not pairs:
        return found
    rows, first = np.unique(np.array(pairs, dtype=np.int64), axis=0, return_index=True)
    duplicate = text_cosines(model._rows.words, rows) >= DUPLICATE
    return found.merged(rows, np.array(probability)[first], duplicate)
