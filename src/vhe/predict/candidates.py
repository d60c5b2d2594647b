"""The likeliest missing links of the whole network."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from vhe.predict.calibration import sigmoid
from vhe.predict.suggest import partners

if TYPE_CHECKING:
    from scipy import sparse

    from vhe.data.network import TextNetwork
    from vhe.predict.predictor import Predictor
    from vhe.predict.scoring import Method

DUPLICATE = 0.8  # TF-IDF cosine from which two texts count as duplicates
SAME_TEXT = 0.5  # TF-IDF cosine from which the texts alone predict a link
PAIRS_PER_LABELS = 2  # pairs between the same two labels, so that no region dominates
FREQUENT = 100  # a word in more texts is ignored in the search for duplicates
PAIRS_AT_ONCE, ROWS_AT_ONCE = 2**15, 2**11  # gathered at a time, to limit memory


def likely_links(model: Predictor, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The ``k`` likeliest partners of each vertex among those it is not linked with.

    Returns
    -------
    pairs : (m, 2) int64, i < j, the likeliest first
    probability : (m,) in a balanced sample
    """
    partner, score = partners(model._link_posterior, model._rows, k)
    source, position = np.nonzero(partner >= 0)
    pairs = np.sort(np.column_stack([source, partner[source, position]]), axis=1)
    pairs, first = np.unique(pairs, axis=0, return_index=True)
    probability = sigmoid(score[source, position][first])
    order = np.argsort(-probability, kind="stable")
    return pairs[order], probability[order]


def text_cosines(words: sparse.csr_array, pairs: np.ndarray) -> np.ndarray:
    """Cosines of the texts of ``pairs`` (m, 2), of unit rows of ``words`` (n, V): (m,)."""
    cosines = np.empty(len(pairs))
    for start in range(0, len(pairs), PAIRS_AT_ONCE):
        part = slice(start, start + PAIRS_AT_ONCE)
        ends = pairs[part].T
        cosines[part] = words[ends[0]].multiply(words[ends[1]]).sum(axis=1)
    return cosines


def duplicate_texts(words: sparse.csr_array) -> np.ndarray:
    """Pairs of vertices with nearly the same text, linked or not: (m, 2), i < j, sorted.

    ``words`` (n, V) are TF-IDF rows of unit length. Texts that have only frequent words in common
    are not found.
    """
    frequent = np.bincount(words.indices, minlength=words.shape[1]) > FREQUENT
    rare = words[:, ~frequent].tocsr()
    transposed = rare.T.tocsr()
    found = [np.zeros((0, 2), dtype=np.int64)]
    for start in range(0, words.shape[0], ROWS_AT_ONCE):
        product = (rare[start : start + ROWS_AT_ONCE] @ transposed).tocoo()
        i, j = product.row.astype(np.int64) + start, product.col.astype(np.int64)
        found.append(np.column_stack([i, j])[(i < j) & (product.data >= DUPLICATE / 2)])
    pairs = np.concatenate(found)
    pairs = pairs[text_cosines(words, pairs) >= DUPLICATE]
    return pairs[np.lexsort(pairs.T[::-1])]


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
    ``text``, are left out, because they can be found without a model.
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
