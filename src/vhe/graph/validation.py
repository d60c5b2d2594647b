"""Held-out links and their ranking scores.

One fold of held-out links is enough where links are many. Where they are few, choices on one fold
would be choices by chance: further parts of the training links are held out in turn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vhe.data.sampling import random_stream

ENOUGH_LINKS = 256  # held-out links beyond which no further fold is used
MOST_FOLDS = 6


@dataclass(frozen=True)
class Fold:
    """Disjoint training and held-out links, (m, 2) each."""

    links: NDArray[np.int64]
    held_out: NDArray[np.int64]


def validation_folds(
    links: NDArray[np.int64], validation: NDArray[np.int64], seed: int
) -> list[Fold]:
    """The folds of training and validation links; the validation links are held out in the first.

    In the others, as many of the training links are held out, each of them once at most.
    """
    found = [Fold(links, validation)]
    size = len(validation)
    if not size:
        return found
    more = min(MOST_FOLDS, -(-ENOUGH_LINKS // size)) - 1
    order = random_stream(seed, 10).permutation(len(links))
    for fold in range(min(more, len(links) // size)):
        held_out = np.zeros(len(links), dtype=bool)
        held_out[order[fold * size : (fold + 1) * size]] = True
        found.append(Fold(np.concatenate([links[~held_out], validation]), links[held_out]))
    return found


def ranking_auc(codes: NDArray[np.float32], links: NDArray[np.int64]) -> float | None:
    """P(cosine of a link > cosine of one of its ends with a vertex that it is not linked with).

    ``codes`` (n, d) belong to the vertices at the ends of the links (m, 2), given by row numbers;
    each end is compared with all of these vertices. None where there is nothing to compare.
    """
    wins = win_rates(codes, links)
    found = wins[np.isfinite(wins)]
    return float(found.mean()) if len(found) else None


def win_rates(codes: NDArray[np.float32], links: NDArray[np.int64]) -> NDArray[np.float64]:
    """For both ends of each link the share of other vertices that score below its partner: (2m,).

    A tie counts one half; NaN where an end has no other vertex to be compared with.
    """
    unit = codes / np.maximum(np.linalg.norm(codes, axis=1, keepdims=True), 1e-12)
    scores = unit @ unit.T
    allowed = ~np.eye(len(codes), dtype=bool)
    allowed[links[:, 0], links[:, 1]] = allowed[links[:, 1], links[:, 0]] = False
    ends, partners = links.ravel(), links[:, ::-1].ravel()
    reached = scores[ends, partners][:, None]
    wins = (scores[ends] < reached) + 0.5 * (scores[ends] == reached)
    counted = allowed[ends]
    with np.errstate(invalid="ignore"):
        return (wins * counted).sum(axis=1) / counted.sum(axis=1)
