"""Diffused text: LSA of the texts, averaged over the links of the training network.

It has no trained parameters and takes about a second, and is a strong baseline.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from vhe.baselines.matrices import lsa, normalised_adjacency
from vhe.baselines.tfidf import tfidf_rows
from vhe.data.network import TextNetwork
from vhe.predict.scoring import CosineMethod

OWN_TEXT = 0.3  # weight of the vertex's own text in each iteration


@dataclass(kw_only=True)
class DiffusedText(CosineMethod):
    """Z = .3 X + .7 S Z, from Z = X, with X the LSA of TF-IDF and S the normalised adjacency.

    ``embedding_`` is Z minus half of its mean row: what all texts share does not distinguish pairs.

    Parameters
    ----------
    dimensions : dimension of the LSA; fewer if the texts have a lower rank.
    iterations : diffusion steps, the number of links over which a text spreads.
    random_state : seed of the LSA.
    """

    reads_all_texts: ClassVar = True

    dimensions: int = 300
    iterations: int = 8
    random_state: int = 0

    def fit(self, network: TextNetwork) -> Self:
        """Compute the LSA of the texts and diffuse it over the links."""
        text = lsa(tfidf_rows(network.texts), self.dimensions, self.random_state)
        adjacency = normalised_adjacency(network.links, len(network))
        z = text
        for _ in range(self.iterations):
            z = OWN_TEXT * text + (1 - OWN_TEXT) * (adjacency @ z)
        self.embedding_ = (z - z.mean(axis=0) / 2).astype(np.float32)
        return self
