"""What was computed for one network, carried over to a changed one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vhe.predict.candidates import DUPLICATE, text_cosines
from vhe.predict.layout import place
from vhe.predict.suggest import EXACT_UP_TO
from vhe.web.ranking import Ranking

if TYPE_CHECKING:
    from vhe.data.network import TextNetwork
    from vhe.fitted import FittedModel

SUGGESTIONS = 10  # of each new vertex in the ranking
SCORES_AT_ONCE = 2**20


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
    new = np.setdiff1d(np.arange(len(network)), position)
    if not len(new):
        return found
    pairs, probability = likeliest(model, new)
    rows, first = np.unique(pairs, axis=0, return_index=True)
    duplicate = text_cosines(model._rows.words, rows) >= DUPLICATE
    return found.merged(rows, probability[first], duplicate)


def likeliest(model: FittedModel, vertices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Missing links of some vertices, as `suggest_links`: (m, 2), i < j, and probabilities (m,)."""
    network = model.network_
    n, links = len(network), network.links
    ends: list[np.ndarray] = [np.zeros((0, 2), np.int64)]
    probability: list[np.ndarray] = [np.zeros(0)]
    if n > EXACT_UP_TO:
        for number in vertices.tolist():
            suggested = model.suggest_links(network.ids[number], SUGGESTIONS)
            others = network.indices([link.id for link in suggested])
            ends.append(np.column_stack([np.full(len(others), number), others]))
            probability.append(np.array([link.probability for link in suggested]))
        return np.sort(np.concatenate(ends), axis=1), np.concatenate(probability)
    both = np.concatenate([links, links[:, ::-1]])
    at_once = max(SCORES_AT_ONCE // n, 1)
    for start in range(0, len(vertices), at_once):
        part = vertices[start : start + at_once]
        scores = model.score_matrix(part, np.arange(n))
        row = np.full(n, -1)
        row[part] = np.arange(len(part))
        linked = both[row[both[:, 0]] >= 0]
        scores[row[linked[:, 0]], linked[:, 1]] = -np.inf
        scores[np.arange(len(part)), part] = -np.inf
        best = np.argpartition(-scores, min(SUGGESTIONS, n - 1), axis=1)[:, :SUGGESTIONS]
        found = np.take_along_axis(scores, best, axis=1)
        i, k = np.nonzero(found > -np.inf)
        ends.append(np.column_stack([part[i], best[i, k]]))
        probability.append(model.probability(found[i, k], balanced=False))
    return np.sort(np.concatenate(ends), axis=1), np.concatenate(probability)
