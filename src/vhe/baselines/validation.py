"""Validation links of the baselines: held out of training, each with unlinked pairs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from vhe.data.network import TextNetwork
from vhe.data.splits import NonNeighbourSampler, validation_links

SHARE = 0.1  # of the training links
MAX_LINKS = 1000
NEGATIVES = 20  # unlinked pairs per validation link


class Validation:
    """Links of a network that are held out to choose settings and to stop training.

    Attributes
    ----------
    training : (k, 2) links that remain.
    """

    def __init__(self, network: TextNetwork, seed: int) -> None:
        self.training, held_out = validation_links(network.links, SHARE, seed, MAX_LINKS)
        sampler = NonNeighbourSampler(network.links, len(network))
        held_out = held_out[sampler.count[held_out[:, 0]] > 0]
        self._held_out = held_out
        self._source = np.repeat(held_out[:, 0], NEGATIVES)
        self._negative = sampler.draw(self._source, np.random.default_rng([seed, 1]))

    def __bool__(self) -> bool:
        return len(self._source) > 0

    def auc(self, score: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> float:
        """Share of unlinked pairs that score below their link; ties count one half."""
        linked = np.repeat(score(*self._held_out.T), NEGATIVES)
        margin = linked - score(self._source, self._negative)
        return float((np.sign(margin) + 1).mean() / 2)
