"""DeepWalk (Perozzi, Al-Rfou & Skiena, KDD 2014): skip-gram on uniform random walks; texts are not
used.

max Σ_walks Σ_{0 < |a-b| <= 5} log p(v_b | v_a), p a hierarchical softmax over the vertices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from vhe.baselines.skip_gram import SkipGramOnWalks
from vhe.baselines.walks import Walker

if TYPE_CHECKING:
    from vhe.data.network import TextNetwork


class DeepWalk(SkipGramOnWalks):
    """Skip-gram with hierarchical softmax on uniform walks.

    The paper does not predict links; here a pair is scored by cosine. A vertex without links is in
    no walk and has a row of zeros.

    Parameters
    ----------
    dimensions, window : of skip-gram.
    walks, length : number of walks from each vertex, and of vertices in a walk.
    random_state : seed.
    """

    negatives = 0

    def __init__(
        self,
        *,
        dimensions: int = 200,
        walks: int = 10,
        length: int = 40,
        window: int = 5,
        random_state: int = 0,
    ) -> None:
        super().__init__(dimensions, walks, length, window, random_state)

    def fit(self, network: TextNetwork) -> Self:
        """Draw walks over the links and train skip-gram on them."""
        walker = Walker(network.links, len(network))
        self.embedding_ = self._embed(walker, self.walks, self.length)
        return self
