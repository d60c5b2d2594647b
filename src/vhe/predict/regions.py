"""Names of the regions of a map: the words that distinguish their texts (class-based TF-IDF)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from vhe.data.text import Corpus

MOST_REGIONS, VERTICES_PER_REGION = 16, 30
WORDS = 3  # in the name of a region
SHORTEST = 3  # letters of such a word
LIFT = 1.5  # such a word is at least so many times as frequent in its region as in all texts


@dataclass(frozen=True)
class Region:
    """A part of a map.

    Attributes
    ----------
    x, y : median of the coordinates of its vertices
    """

    words: tuple[str, ...]
    x: float
    y: float
    vertices: int


def regions(coordinates: np.ndarray, corpus: Corpus) -> list[Region]:
    """Divide a map (n, 2) by k-means, and name its parts by the words of their texts."""
    from scipy.cluster.vq import kmeans2  # its import takes long

    n = len(coordinates)
    count = int(np.clip(round(np.sqrt(n / VERTICES_PER_REGION)), 1, MOST_REGIONS))
    scale = coordinates.std() or 1.0
    _, region = kmeans2(coordinates / scale, count, minit="++", seed=0, missing="warn")
    weights = class_tfidf(corpus, region, count)
    named = [k for k, word in enumerate(corpus.vocabulary) if len(word) >= SHORTEST]
    found = []
    for k in range(count):
        inside = np.flatnonzero(region == k)
        if not len(inside):
            continue
        row = weights[k, named]
        best = np.argsort(-row, kind="stable")[: np.count_nonzero(row > 0)]
        words = _distinct(corpus.vocabulary[named[j]] for j in best)
        x, y = np.median(coordinates[inside], axis=0).tolist()
        if words:
            found.append(Region(words, x, y, len(inside)))
    return found


def _distinct(words: Iterable[str]) -> tuple[str, ...]:
    """The first words, without those that continue another one (network, networks)."""
    found: list[str] = []
    for word in words:
        if not any(word.startswith(w) or w.startswith(word) for w in found):
            found.append(word)
        if len(found) == WORDS:
            break
    return tuple(found)


def class_tfidf(corpus: Corpus, classes: np.ndarray, count: int) -> np.ndarray:
    """The weight of each word in each class: (count, V).

    √tf(w, c) · log(1 + A / f(w)), where tf is the share of the word in the words of the class, f
    its frequency in all texts, and A the mean number of words per class; 0 if the share is less
    than `LIFT` times that in all texts (there are several classes). The square root weakens words
    that are frequent everywhere.
    """
    size = len(corpus.vocabulary)
    text = np.repeat(np.arange(len(corpus)), corpus.lengths)
    ones = np.ones(len(text))
    words = np.asarray(corpus.tokens, dtype=np.int64) - 1  # 0 is padding
    counts = sparse.csr_array((ones, (classes[text], words)), shape=(count, size)).toarray()
    totals = counts.sum(axis=1, keepdims=True)
    frequency = np.maximum(counts.sum(axis=0), 1)
    shares = counts / np.maximum(totals, 1)
    weights: np.ndarray = np.sqrt(shares) * np.log1p(totals.mean() / frequency)
    if count > 1:
        weights[shares < LIFT * frequency / max(totals.sum(), 1)] = 0
    return weights
