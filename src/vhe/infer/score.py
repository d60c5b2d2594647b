"""From scores to probabilities that mean what they say: calibrated on links nobody trained on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vhe.data.pairs import LinkSet, stream
from vhe.data.text import Corpus
from vhe.evaluate.calibration import fit_platt
from vhe.infer.embed import embedding_of
from vhe.nn.pair_vae import PairVAE

NEGATIVES = 10  # unlinked pairs for each link; together they weigh as much as the links
MOST_LINKS = 512


def cosine(first: NDArray[np.float32], second: NDArray[np.float32]) -> NDArray[np.float32]:
    """The cosine of each row with the same row of the other: (m,)."""
    length = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return np.einsum("md,md->m", first, second) / np.where(length > 0, length, 1)


def calibrate(
    model: PairVAE,
    corpus: Corpus,
    known: LinkSet,
    held_out: NDArray[np.int64],
    *,
    contexts: int,
    seed: int,
) -> tuple[float, float]:
    """(a, b) such that sigmoid(a · cosine + b) is the probability of a link.

    Fitted on held-out links (m, 2) and pairs drawn at random, both of the same weight: it is the
    probability where links and non-links are equally many. For another share π of links add
    log(π / (1 - π)) to b.
    """
    rng = stream(seed, 8)
    links = rng.permutation(held_out)[:MOST_LINKS]
    i, j = np.tile(links[:, 0], NEGATIVES), rng.integers(0, len(corpus), NEGATIVES * len(links))
    fine = (i != j) & ~known.linked(i, j) & ~LinkSet(held_out, len(corpus)).linked(i, j)
    pairs = np.concatenate([np.tile(links, (NEGATIVES, 1)), np.column_stack([i, j])[fine]])
    linked = np.arange(len(pairs)) < NEGATIVES * len(links)
    vertices, place = np.unique(pairs, return_inverse=True)
    codes = embedding_of(model, corpus, known, vertices, contexts=contexts, seed=seed)
    first, second = codes[place.reshape(-1, 2)].transpose(1, 0, 2)
    slope, offset = fit_platt(cosine(first, second), linked)
    # few links may score below the others by chance; a higher score is still no lower probability
    return (slope, offset) if slope >= 0 else (0.0, 0.0)
