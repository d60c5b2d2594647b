"""node2vec (Grover & Leskovec, KDD 2016): skip-gram on biased random walks; texts are not used.

The weights of returning (1/p) and of moving away (1/q) are chosen on validation links.

max Σ_walks Σ_{0 < |a-b| <= 10} [log σ(u_a·c_b) + Σ_{5 negatives n} log σ(-u_a·c_n)], negatives
drawn proportionally to frequency^.75.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from vhe.baselines.deepwalk import DeepWalk
from vhe.baselines.matrices import centred
from vhe.baselines.validation import Validation
from vhe.baselines.walks import Walker
from vhe.data.network import TextNetwork
from vhe.predict.scoring import CosineMethod

GRID = (0.25, 0.5, 1.0, 2.0, 4.0)


@dataclass(kw_only=True)
class Node2Vec(DeepWalk):
    """Skip-gram with five negatives on (p, q)-biased walks.

    If p or q is not given, it is chosen from {.25, .5, 1, 2, 4} by the AUC on validation links,
    with a fifth of the walks of half the length: first q (with p = 1), then p. The final embedding
    is trained on all links. The paper fits a classifier on products of rows; here a pair is scored
    by the cosine of centred rows. A vertex without links has a row of zeros.

    Parameters
    ----------
    dimensions, window : of skip-gram.
    walks, length : number of walks from each vertex, and of vertices in a walk.
    p, q : return and in-out parameter; walks return more often for a smaller p, and move away more
        often for a smaller q.
    random_state : seed.

    Attributes
    ----------
    p_, q_ : the values used.
    """

    length: int = 80
    window: int = 10
    p: float | None = None
    q: float | None = None

    negatives: ClassVar[int] = 5

    def fit(self, network: TextNetwork) -> Self:
        """Choose p and q, draw walks over the links and train skip-gram on them."""
        self.p_, self.q_ = self._choose(network)
        walker = Walker(network.links, len(network))
        self.embedding_ = self._embed(walker, self.walks, self.length, self.p_, self.q_)
        return self

    def _embed(
        self, walker: Walker, walks: int, length: int, p: float = 1.0, q: float = 1.0
    ) -> np.ndarray:
        return centred(super()._embed(walker, walks, length, p, q))

    def _choose(self, network: TextNetwork) -> tuple[float, float]:
        """The p and q with the highest AUC on validation links; 1 if there are none."""
        validation = Validation(network, self.random_state)
        if not validation:
            return self.p or 1.0, self.q or 1.0
        walker = Walker(validation.training, len(network))
        walks, length = max(self.walks // 5, 1), max(self.length // 2, 2)

        def auc(p: float, q: float) -> float:
            trial = CosineMethod()
            trial.embedding_ = self._embed(walker, walks, length, p, q)
            return validation.auc(trial.score_indices)

        p, q = self.p or 1.0, self.q
        if q is None:
            q = max(GRID, key=lambda choice: auc(p, choice))
        if self.p is None:
            p = max(GRID, key=lambda choice: auc(choice, q))
        return p, q
