"""From embeddings to scores, and to probabilities that mean what they say: calibrated on links that
nobody trained on.

The score of a pair is the cosine of its embeddings and what the degree_weight of its ends adds. Where
a few vertices are linked with many, as libraries that every package needs, a link with one of them
says little of likeness: the prior of a link is the higher the more links its ends have (as in the
degree-corrected block model of Karrer and Newman, 2011). Held-out links tell how much; on many
networks nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vhe.data.sampling import LinkSet, stream
from vhe.data.text import Corpus
from vhe.pair.embedding import embedding_of
from vhe.pair.model import PairVAE
from vhe.predict.calibration import ReliabilityCurve, fit_platt, reliability_curve, sigmoid

NEGATIVES = 10  # unlinked pairs for each link; together they weigh as much as the links
MOST_LINKS = 512
FOLDS = 3  # parts of the held-out links that the model has to do without at a time
KNEE = 0.15  # score from which on the log odds of a link grow as its logarithm
POPULARITY = (0.0, 0.01, 0.02, 0.04, 0.08, 0.16)  # what a unit of log_degree may add to a score


@dataclass(frozen=True)
class Calibration:
    """What held-out links say of scores: sigmoid(slope · asinh_transform(score) + offset) is the probability
    of a link where links and non-links are equally many; and what a unit of log_degree adds to a score.
    """

    slope: float
    offset: float
    degree_weight: float = 0.0

    def probability(self, scores: NDArray[np.floating]) -> NDArray[np.float64]:
        return sigmoid(self.slope * asinh_transform(scores) + self.offset)


def log_degree(degree: NDArray[np.int64]) -> NDArray[np.float32]:
    """How popular vertices are, by their numbers of links (n,): 0 is usual."""
    log = np.log1p(degree)
    return np.asarray(log - log.mean(), dtype=np.float32)


def cosine(first: NDArray[np.float32], second: NDArray[np.float32]) -> NDArray[np.float32]:
    """The cosine of each row with the same row of the other: (m,)."""
    length = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return np.einsum("md,md->m", first, second) / np.where(length > 0, length, 1)


def asinh_transform(score: NDArray[np.floating]) -> NDArray[np.float64]:
    """asinh(score / KNEE): in proportion to the score up to the knee, to its logarithm beyond.

    The log odds of a link grow so. In proportion throughout they would be too high at large
    scores, by a factor of 20 in the odds where suggestions are.
    """
    return np.arcsinh(np.asarray(score, dtype=np.float64) / KNEE)


def calibrate(
    model: PairVAE,
    corpus: Corpus,
    known: LinkSet,
    held_out: NDArray[np.int64],
    *,
    degree: NDArray[np.int64],
    contexts: int,
    seed: int,
    leave_out: Callable[[NDArray[np.int64]], None] = lambda rows: None,
) -> tuple[Calibration, ReliabilityCurve]:
    """Fit probabilities to held-out links (m, 2) and pairs drawn at random, both of equal weight.

    For another share π of links than a half, add log(π / (1 - π)) to the offset. The curve is what
    half of the pairs say of a fit to the other half.

    Parameters
    ----------
    degree : (n,)
        links of each vertex, held-out ones among them
    leave_out
        is called with the rows of ``held_out`` whose scores come next, a few at a time, so that
        whoever knows how can make the model forget them, and no more than them
    """
    links = stream(seed, 8).permutation(len(held_out))[:MOST_LINKS]
    everything = LinkSet(held_out, len(corpus))
    parts = []
    for fold, rows in enumerate(np.array_split(links, FOLDS)):
        if not len(rows):
            continue
        leave_out(rows)
        chosen, rng = held_out[rows], stream(seed, 8, fold)
        i = np.tile(rng.permuted(chosen, axis=1)[:, 0], NEGATIVES)  # either end
        j = rng.integers(0, len(corpus), len(i))
        fine = (i != j) & ~known.linked(i, j) & ~everything.linked(i, j)
        pairs = np.concatenate([np.tile(chosen, (NEGATIVES, 1)), np.column_stack([i, j])[fine]])
        vertices, place = np.unique(pairs, return_inverse=True)
        codes = embedding_of(model, corpus, known, vertices, contexts=contexts, seed=seed)
        first, second = codes[place.reshape(-1, 2)].transpose(1, 0, 2)
        known_fame = log_degree(degree - np.bincount(chosen.ravel(), minlength=len(degree)))
        linked = np.arange(len(pairs)) < len(i)
        half = np.tile(np.arange(len(rows)) % 2 == 0, NEGATIVES)  # all pairs of a link are in one
        both = cosine(first, second), known_fame[pairs].sum(axis=1)
        parts.append((*both, linked, np.append(half, half[fine])))
    likeness, famous, labels, halves = (np.concatenate(part) for part in zip(*parts, strict=True))
    degree_weight = model.config.degree_weight
    if degree_weight is None:
        degree_weight = _choose_popularity(likeness, famous, labels)
    scores = asinh_transform(likeness + degree_weight * famous)
    calibration = Calibration(*_platt(scores, labels), degree_weight)
    return calibration, _judged_by_halves(scores, labels, halves)


def _choose_popularity(
    likeness: NDArray[np.float32], famous: NDArray[np.float32], linked: NDArray[np.bool_]
) -> float:
    """What a unit of log_degree adds to a score so that links are told best from other pairs.

    Nothing, unless that is worse by more than a standard error.
    """
    weights = _balanced(linked)

    def surprise(degree_weight: float) -> NDArray[np.float64]:
        scores = asinh_transform(likeness + degree_weight * famous)
        slope, offset = _platt(scores, linked)
        return np.logaddexp(0, np.where(linked, -1, 1) * (slope * scores + offset))

    surprises = {degree_weight: surprise(degree_weight) for degree_weight in POPULARITY}
    gains = {degree_weight: surprises[0.0] - found for degree_weight, found in surprises.items()}
    best = max(gains, key=lambda degree_weight: weights @ gains[degree_weight])
    gain = gains[best]
    error = np.sqrt(NEGATIVES * (weights**2 @ gain**2))  # a link comes as often as its negatives
    return best if weights @ gain > error else 0.0


def _balanced(linked: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Weights of pairs, of which links have as much as the others together, and both 1."""
    count = np.where(linked, linked.sum(), (~linked).sum())
    return 0.5 / count


def _platt(scores: NDArray[np.float64], linked: NDArray[np.bool_]) -> tuple[float, float]:
    slope, offset = fit_platt(scores, linked)
    # few links may score below the others by chance; a higher score is still no lower probability
    return (slope, offset) if slope >= 0 else (0.0, 0.0)


def _judged_by_halves(
    scores: NDArray[np.float64], linked: NDArray[np.bool_], half: NDArray[np.bool_]
) -> ReliabilityCurve:
    """The reliability of probabilities that were fitted without the pairs they are of."""
    told = np.empty(len(scores))
    for own in (half, ~half):
        if own.any():
            other = ~own if (~own).any() else own
            slope, offset = _platt(scores[other], linked[other])
            told[own] = sigmoid(slope * scores[own] + offset)
    return reliability_curve(told, linked, weights=2 * linked.sum() * _balanced(linked))
