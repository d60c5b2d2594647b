"""From scores to probabilities that mean what they say: calibrated on links nobody trained on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from vhe.data.pairs import LinkSet, stream
from vhe.data.text import Corpus
from vhe.evaluate.calibration import ReliabilityCurve, fit_platt, reliability_curve, sigmoid
from vhe.infer.embed import embedding_of
from vhe.nn.pair_vae import PairVAE

NEGATIVES = 10  # unlinked pairs for each link; together they weigh as much as the links
MOST_LINKS = 512
FOLDS = 3  # parts of the held-out links that the model has to do without at a time
KNEE = 0.15  # cosine from which on the log odds of a link grow as its logarithm


def cosine(first: NDArray[np.float32], second: NDArray[np.float32]) -> NDArray[np.float32]:
    """The cosine of each row with the same row of the other: (m,)."""
    length = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return np.einsum("md,md->m", first, second) / np.where(length > 0, length, 1)


def warped(score: NDArray[np.floating]) -> NDArray[np.float64]:
    """asinh(cosine / KNEE): in proportion to the cosine up to the knee, to its logarithm beyond.

    The log odds of a link grow so. In proportion throughout they would be too high at large
    cosines, by a factor of 20 in the odds where suggestions are.
    """
    return np.arcsinh(np.asarray(score, dtype=np.float64) / KNEE)


def calibrate(
    model: PairVAE,
    corpus: Corpus,
    known: LinkSet,
    held_out: NDArray[np.int64],
    *,
    contexts: int,
    seed: int,
    leave_out: Callable[[NDArray[np.int64]], None] = lambda rows: None,
) -> tuple[tuple[float, float], ReliabilityCurve]:
    """(a, b) such that sigmoid(a · warped(cosine) + b) is the probability of a link.

    Fitted on held-out links (m, 2) and pairs drawn at random, both of the same weight: it is the
    probability where links and non-links are equally many. For another share π of links add
    log(π / (1 - π)) to b. The curve is what half of the pairs say of a fit to the other half.

    Parameters
    ----------
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
        chosen = held_out[rows]
        i = np.tile(chosen[:, 0], NEGATIVES)
        j = stream(seed, 8, fold).integers(0, len(corpus), len(i))
        fine = (i != j) & ~known.linked(i, j) & ~everything.linked(i, j)
        pairs = np.concatenate([np.tile(chosen, (NEGATIVES, 1)), np.column_stack([i, j])[fine]])
        vertices, place = np.unique(pairs, return_inverse=True)
        codes = embedding_of(model, corpus, known, vertices, contexts=contexts, seed=seed)
        first, second = codes[place.reshape(-1, 2)].transpose(1, 0, 2)
        linked = np.arange(len(pairs)) < len(i)
        half = np.tile(np.arange(len(rows)) % 2 == 0, NEGATIVES)  # all pairs of a link are in one
        parts.append((warped(cosine(first, second)), linked, np.append(half, half[fine])))
    scores, labels, halves = (np.concatenate(part) for part in zip(*parts, strict=True))
    return _platt(scores, labels), _judged_by_halves(scores, labels, halves)


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
    weights = np.where(linked, 1 / linked.sum(), 1 / max((~linked).sum(), 1)) * linked.sum()
    return reliability_curve(told, linked, weights=weights)
