"""Choice of the coupling strengths on validation links.

The candidates are compared by closed-form posteriors of the initial word vectors, which have seen
no link. Where validation links are few, further folds of the training links are held out in turn.
The score is the mean negative logarithm of the share of vertices that rank above a partner, which
weighs first ranks as MRR does and the others as AUC does. A candidate replaces the default only if
it is better by more than a standard error: a choice on few links stays at the default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vhe.data.sampling import random_stream
from vhe.graph.model import TextNeighbours
from vhe.graph.posterior import TRAINING_ITERATIONS
from vhe.graph.prior import GraphPrior, Links
from vhe.graph.validation import win_rates

LINK_STRENGTHS = (1.0, 0.25, 0.5, 2.0, 4.0, 8.0)  # the default first
TEXT_KNN_WEIGHTS = (2.0, 0.0, 1.0, 4.0)
ENOUGH_LINKS = 256  # held-out links beyond which no further fold is used
MOST_FOLDS = 6
BEST_SHARE = 0.3  # added to the share of vertices above a partner, so that no rank dominates


def choose_weights(
    codes: Tensor,
    lengths: NDArray[np.int64],
    neighbours: TextNeighbours,
    links: Links,
    validation: Links,
    *,
    link_strength: float | None,
    text_knn_weight: float | None,
    seed: int,
    progress: Callable[[int], None] = lambda done: None,
) -> tuple[float, float]:
    """link_strength and text_knn_weight; one that is given is returned as it is.

    Parameters
    ----------
    codes : (n, d) text codes
    links, validation : training and held-out links, disjoint
    """
    folds = list(_folds(links, validation, seed))
    done = 0

    @cache
    def scores(strength: float, weight: float) -> NDArray[np.float64]:
        nonlocal done
        rates = [
            _held_out_rates(codes, lengths, neighbours, *fold, strength, weight) for fold in folds
        ]
        done += 1
        progress(done)
        return -np.log(1 - np.concatenate(rates) + BEST_SHARE)

    strength = LINK_STRENGTHS[0] if link_strength is None else link_strength
    weight = TEXT_KNN_WEIGHTS[0] if text_knn_weight is None else text_knn_weight
    if not folds:
        return strength, weight
    if text_knn_weight is None:
        weight = _best(TEXT_KNN_WEIGHTS, lambda w: scores(strength, w))
    if link_strength is None:
        strength = _best(LINK_STRENGTHS, lambda s: scores(s, weight))
    return strength, weight


def _folds(links: Links, validation: Links, seed: int) -> Iterator[tuple[Links, Links]]:
    """Training and held-out links of each fold; the validation links are the first fold."""
    if not len(validation):
        return
    yield links, validation
    size = len(validation)
    more = min(MOST_FOLDS, -(-ENOUGH_LINKS // size)) - 1
    order = random_stream(seed, 10).permutation(len(links))
    for fold in range(min(more, len(links) // size)):
        held_out = np.zeros(len(links), dtype=bool)
        held_out[order[fold * size : (fold + 1) * size]] = True
        yield np.concatenate([links[~held_out], validation]), links[held_out]


def _held_out_rates(
    codes: Tensor,
    lengths: NDArray[np.int64],
    neighbours: TextNeighbours,
    links: Links,
    held_out: Links,
    link_strength: float,
    text_knn_weight: float,
) -> NDArray[np.float64]:
    prior = GraphPrior(
        links,
        lengths,
        neighbours,
        link_strength=link_strength,
        text_knn_weight=text_knn_weight,
        device=codes.device,
    )
    vertices, rows = np.unique(held_out, return_inverse=True)
    with torch.no_grad():
        means = prior.posterior().mean(codes, TRAINING_ITERATIONS)
    return win_rates(means[torch.from_numpy(vertices)].cpu().numpy(), rows.reshape(-1, 2))


def _best(candidates: tuple[float, ...], scores: Callable[[float], NDArray[np.float64]]) -> float:
    """The candidate whose gain over the first is largest, less its standard error."""
    default = scores(candidates[0])

    def gain(candidate: float) -> float:
        difference = scores(candidate) - default
        difference = difference[np.isfinite(difference)]
        if not len(difference):
            return 0.0
        return float(difference.mean() - difference.std() / np.sqrt(len(difference)))

    return max(candidates, key=gain)
