"""DeepWalk (Perozzi, Al-Rfou & Skiena, KDD 2014): vertices that are near in uniform random walks
become near in the embedding; texts are not used.

max Σ_walks Σ_{0 < |a-b| <= 5} log p(v_b | v_a), p a hierarchical softmax over the vertices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np

from vhe.baselines.skip_gram import skip_gram
from vhe.baselines.walks import Walker
from vhe.predict.scoring import CosineMethod

if TYPE_CHECKING:
    from vhe.data.network import TextNetwork


class DeepWalk(CosineMethod):
    """Skip-gram with hierarchical softmax on uniform walks.

    The paper predicts no links; a pair is scored by cosine. A vertex without links has a row of
    zeros: no walk tells anything about it.

    Parameters
    ----------
    dimensions, window : of skip-gram.
    walks, length : how many walks start at each vertex, and how many vertices each has.
    random_state : seed.
    """

    def __init__(
        self,
        *,
        dimensions: int = 200,
        walks: int = 10,
        length: int = 40,
        window: int = 5,
        random_state: int = 0,
    ) -> None:
        self.dimensions = dimensions
        self.walks = walks
        self.length = length
        self.window = window
        self.random_state = random_state

    def fit(self, network: TextNetwork) -> Self:
        """Walk over the links and learn from the walks."""
        rng = np.random.default_rng(self.random_state)
        self.embedding_ = skip_gram(
            Walker(network.links, len(network)).corpus(self.walks, self.length, rng),
            len(network),
            dimensions=self.dimensions,
            window=self.window,
            negatives=0,
            seed=self.random_state,
        )
        return self
