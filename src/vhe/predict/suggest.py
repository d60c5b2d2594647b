"""Links that are not in a network but are likely, over all pairs of its vertices."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from vhe.predict.neighbours import partners

if TYPE_CHECKING:
    from vhe.data.network import TextNetwork
    from vhe.estimators import VHE
    from vhe.predict.scoring import Method

SAME_TEXT = 0.5  # TF-IDF cosine from which two texts say much the same
OF_ONE_LABEL = 2  # pairs between the same two labels, so that no corner of the network has them all


def likely_links(model: VHE, network: TextNetwork, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The ``k`` likeliest partners of each vertex among those it has no link with.

    Returns
    -------
    pairs : (m, 2) int64, i < j, the likeliest first
    probability : (m,)
    """
    rows = np.asarray(model.embedding_)
    partner, _ = partners(rows, network.links, k, model.degree_bias_)
    source, place = np.nonzero(partner >= 0)
    pairs = np.column_stack([source, partner[source, place]])
    pairs = np.unique(np.sort(pairs, axis=1), axis=0)
    probability = np.asarray(model.probability_indices(pairs[:, 0], pairs[:, 1]), dtype=np.float64)
    order = np.argsort(-probability, kind="stable")
    return pairs[order], probability[order]


def known_pairs(known: np.ndarray, pairs: np.ndarray, n: int) -> np.ndarray:
    """Which of ``pairs`` (m, 2) are among ``known`` (k, 2), in either direction: (m,) bool."""
    weights = np.array([n, 1])
    return np.isin(np.sort(pairs, axis=1) @ weights, np.sort(known, axis=1) @ weights)


def at_density(probability: np.ndarray, density: float) -> np.ndarray:
    """What a probability for as many links as non-links is where ``density`` of all pairs link."""
    linked = probability * density
    return linked / (linked + (1 - probability) * (1 - density))


def without_repeats(
    network: TextNetwork, pairs: np.ndarray, text: Method, count: int
) -> np.ndarray:
    """Which of ``pairs``, in their order, tell something new: row numbers, at most ``count``.

    Every vertex comes once, two labels meet twice at most. Left out are pairs of the same name (a
    function that two packages have) and pairs whose texts, by the scores of ``text``, are much the
    same: nobody needs a model for those.
    """
    copies = text.score_indices(pairs[:, 0], pairs[:, 1]) >= SAME_TEXT
    names = [str(vertex).rsplit(".", 1)[-1].lower() for vertex in network.ids]
    labels = network.labels
    chosen: list[int] = []
    used: set[int] = set()
    met: Counter[frozenset[object]] = Counter()
    for row in np.flatnonzero(~copies).tolist():
        i, j = pairs[row].tolist()
        if len(chosen) == count:
            break
        meeting = frozenset((labels[i], labels[j])) if labels else frozenset((i, j))
        if names[i] == names[j] or used & {i, j} or met[meeting] == OF_ONE_LABEL:
            continue
        chosen.append(row)
        used |= {i, j}
        met[meeting] += 1
    return np.array(chosen, dtype=np.int64)
