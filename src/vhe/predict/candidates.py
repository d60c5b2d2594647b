"""The likeliest missing links of the whole network."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from vhe.predict.suggest import partners

if TYPE_CHECKING:
    from vhe.data.network import TextNetwork
    from vhe.predict.predictor import Predictor
    from vhe.predict.scoring import Method

SAME_TEXT = 0.5  # TF-IDF cosine from which two texts count as duplicates
PAIRS_PER_LABELS = 2  # pairs between the same two labels, so that no region dominates


def likely_links(model: Predictor, network: TextNetwork, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The ``k`` likeliest partners of each vertex among those it is not linked with.

    Returns
    -------
    pairs : (m, 2) int64, i < j, the likeliest first
    probability : (m,) in a balanced sample
    """
    rows = np.asarray(model.embedding_)
    partner, _ = partners(rows, network.links, k, model.degree_bias_)
    source, position = np.nonzero(partner >= 0)
    pairs = np.column_stack([source, partner[source, position]])
    pairs = np.unique(np.sort(pairs, axis=1), axis=0)
    probability = np.asarray(model.probability_indices(pairs[:, 0], pairs[:, 1]), dtype=np.float64)
    order = np.argsort(-probability, kind="stable")
    return pairs[order], probability[order]


def known_pairs(known: np.ndarray, pairs: np.ndarray, n: int) -> np.ndarray:
    """Which of ``pairs`` (m, 2) are among ``known`` (k, 2), in either direction: (m,) bool."""
    weights = np.array([n, 1])
    return np.isin(np.sort(pairs, axis=1) @ weights, np.sort(known, axis=1) @ weights)


def without_repeats(
    network: TextNetwork, pairs: np.ndarray, text: Method, count: int
) -> np.ndarray:
    """Rows of ``pairs`` that are worth showing, in their order: at most ``count`` row numbers.

    Each vertex occurs once and each pair of labels at most twice. Pairs of vertices with the same
    name (a function that two packages have) or with nearly the same text, by the scores of
    ``text``, are left out: they need no model.
    """
    duplicates = text.score_indices(pairs[:, 0], pairs[:, 1]) >= SAME_TEXT
    names = [str(vertex).rsplit(".", 1)[-1].lower() for vertex in network.ids]
    labels = network.labels
    chosen: list[int] = []
    used: set[int] = set()
    met: Counter[frozenset[object]] = Counter()
    for row in np.flatnonzero(~duplicates).tolist():
        i, j = pairs[row].tolist()
        if len(chosen) == count:
            break
        meeting = frozenset((labels[i], labels[j])) if labels else frozenset((i, j))
        if names[i] == names[j] or used & {i, j} or met[meeting] == PAIRS_PER_LABELS:
            continue
        chosen.append(row)
        used |= {i, j}
        met[meeting] += 1
    return np.array(chosen, dtype=np.int64)
