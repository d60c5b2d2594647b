"""From scores to calibrated probabilities, fitted on held-out links.

The score of a pair is the cosine of its embeddings, plus a degree term: where a few vertices have
most links, a link is likelier the more links its ends have (as in the degree-corrected block model
of Karrer and Newman, 2011). Held-out links decide its weight, which is 0 on many networks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vhe.data.sampling import LinkSet, random_stream
from vhe.predict.calibration import ReliabilityCurve, fit_platt, reliability_curve, sigmoid

NEGATIVES = 10  # unlinked pairs per link; both classes have the same total weight
MOST_LINKS = 512
FOLDS = 3  # parts of the held-out links that are masked in turn
KNEE = 0.15  # score beyond which the log odds of a link grow like its logarithm
DEGREE_WEIGHTS = (0.0, 0.01, 0.02, 0.04, 0.08, 0.16)  # candidates

Floats = NDArray[np.float64]
# embeddings (k, d) of some vertices, computed without some of the held-out links (row numbers)
MaskedEmbedding = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.float32]]


@dataclass(frozen=True)
class Calibration:
    """sigmoid(slope · asinh_transform(score) + offset): the probability of a link in a balanced
    sample. ``degree_weight`` is the weight of the degree term in the score."""

    slope: float
    offset: float
    degree_weight: float = 0.0

    def probability(self, scores: NDArray[np.floating]) -> Floats:
        return sigmoid(self.slope * asinh_transform(scores) + self.offset)


def log_degree(degree: NDArray[np.int64]) -> NDArray[np.float32]:
    """log(1 + degree), centred: (n,)."""
    log = np.log1p(degree)
    return np.asarray(log - log.mean(), dtype=np.float32)


def asinh_transform(score: NDArray[np.floating]) -> Floats:
    """asinh(score / KNEE): linear in small scores, logarithmic in large ones.

    The log odds of a link grow like this. If they were linear throughout, they would be too high at
    large scores: by a factor of 20 in the odds where suggestions are.
    """
    return np.arcsinh(np.asarray(score, dtype=np.float64) / KNEE)


def at_density(probability: Floats, density: float) -> Floats:
    """The probability where ``density`` of all pairs are linked, from that in a balanced sample."""
    linked = probability * density
    return linked / (linked + (1 - probability) * (1 - density))


def calibrate(
    embedding: MaskedEmbedding,
    held_out: NDArray[np.int64],
    known: LinkSet,
    degree: NDArray[np.int64],
    *,
    degree_weight: float | None,
    seed: int,
) -> tuple[Calibration, ReliabilityCurve]:
    """Fit probabilities to held-out links (m, 2) and to random unlinked pairs of their ends.

    The curve is cross-fitted: each half of the pairs is judged by a fit to the other half.

    Parameters
    ----------
    embedding
        called with the row numbers of some held-out links, which it must mask, and with vertices
    known : the other links
    degree : (n,) number of links of each vertex, including the held-out ones
    degree_weight : None chooses it on the same pairs
    """
    links = random_stream(seed, 8).permutation(len(held_out))[:MOST_LINKS]
    held_out_set = LinkSet(held_out, len(degree))
    parts = []
    for fold, rows in enumerate(np.array_split(links, FOLDS)):
        if not len(rows):
            continue
        chosen, rng = held_out[rows], random_stream(seed, 8, fold)
        i = np.tile(rng.permuted(chosen, axis=1)[:, 0], NEGATIVES)  # a random end of each link
        j = rng.integers(0, len(degree), len(i))
        unlinked = (i != j) & ~known.linked(i, j) & ~held_out_set.linked(i, j)
        negatives = np.column_stack([i, j])[unlinked]
        pairs = np.concatenate([np.tile(chosen, (NEGATIVES, 1)), negatives])
        vertices, position = np.unique(pairs, return_inverse=True)
        codes = embedding(rows, vertices)
        first, second = codes[position.reshape(-1, 2)].transpose(1, 0, 2)
        masked_degree = degree - np.bincount(chosen.ravel(), minlength=len(degree))
        linked = np.arange(len(pairs)) < len(i)
        half = np.tile(np.arange(len(rows)) % 2 == 0, NEGATIVES)  # the same for a link's negatives
        terms = _cosine(first, second), log_degree(masked_degree)[pairs].sum(axis=1)
        parts.append((*terms, linked, np.append(half, half[unlinked])))
    cosines, degrees, labels, halves = (np.concatenate(part) for part in zip(*parts, strict=True))
    if degree_weight is None:
        degree_weight = _choose_degree_weight(cosines, degrees, labels)
    scores = asinh_transform(cosines + degree_weight * degrees)
    calibration = Calibration(*_platt(scores, labels), degree_weight)
    return calibration, _cross_fitted_curve(scores, labels, halves)


def _cosine(first: NDArray[np.float32], second: NDArray[np.float32]) -> NDArray[np.float32]:
    length = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return np.einsum("md,md->m", first, second) / np.where(length > 0, length, 1)


def _choose_degree_weight(
    cosines: NDArray[np.float32], degrees: NDArray[np.float32], linked: NDArray[np.bool_]
) -> float:
    """The weight of least cross-entropy; 0 unless it is worse by two standard errors."""
    weights = _balanced(linked)

    def cross_entropy(degree_weight: float) -> Floats:
        scores = asinh_transform(cosines + degree_weight * degrees)
        slope, offset = _platt(scores, linked)
        return np.logaddexp(0, np.where(linked, -1, 1) * (slope * scores + offset))

    losses = {weight: cross_entropy(weight) for weight in DEGREE_WEIGHTS}
    gains = {weight: losses[0.0] - loss for weight, loss in losses.items()}
    best = max(gains, key=lambda weight: weights @ gains[weight])
    gain = gains[best]
    error = np.sqrt(NEGATIVES * (weights**2 @ gain**2))  # each link occurs `NEGATIVES` times
    return best if weights @ gain > 2 * error else 0.0


def _balanced(linked: NDArray[np.bool_]) -> Floats:
    """Weights of pairs that sum to ½ in each class."""
    count = np.where(linked, linked.sum(), (~linked).sum())
    return 0.5 / count


def _platt(scores: Floats, linked: NDArray[np.bool_]) -> tuple[float, float]:
    slope, offset = fit_platt(scores, linked)
    # few links may score below the negatives by chance; probability never falls with the score
    return (slope, offset) if slope >= 0 else (0.0, 0.0)


def _cross_fitted_curve(
    scores: Floats, linked: NDArray[np.bool_], half: NDArray[np.bool_]
) -> ReliabilityCurve:
    """The reliability of probabilities that were fitted without the pairs they are of."""
    predicted = np.empty(len(scores))
    for own in (half, ~half):
        if own.any():
            other = ~own if (~own).any() else own
            slope, offset = _platt(scores[other], linked[other])
            predicted[own] = sigmoid(slope * scores[own] + offset)
    return reliability_curve(predicted, linked, weights=2 * linked.sum() * _balanced(linked))
