"""node2vec (Grover & Leskovec, KDD 2016): skip-gram on walks whose taste for going back (1/p) and
for going away (1/q) is chosen on links held out of training; texts are not used.

max Σ_walks Σ_{0 < |a-b| <= 10} [log σ(u_a·c_b) + Σ_{5 negatives n} log σ(-u_a·c_n)], negatives
drawn in proportion to frequency^.75.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np

from vhe.baselines.centred import centred
from vhe.baselines.skip_gram import skip_gram
from vhe.baselines.walks import Walker
from vhe.data.splits import NonNeighbourSampler, validation_links
from vhe.predict.scoring import CosineMethod

if TYPE_CHECKING:
    from vhe.data.network import TextNetwork

GRID = (0.25, 0.5, 1.0, 2.0, 4.0)
VALIDATION = 0.1  # of the training links decide on p and q, but no more than a thousand
NEGATIVES = 20  # unlinked pairs that each of these is compared with


class Node2Vec(CosineMethod):
    """Skip-gram with five negatives on (p, q)-biased walks.

    Where q or p is not given, it is chosen from {.25, .5, 1, 2, 4} by the AUC of links held out of
    the training links; to save time, on a fifth of the walks, half as long, and one after the
    other: first q (with p = 1), then p. In the end all links are learned from. The paper fits a
    classifier on products of rows; here a pair is scored by cosine, as with DeepWalk, of centred
    rows. A vertex without links has a row of zeros.

    Parameters
    ----------
    dimensions, window : of skip-gram.
    walks, length : how many walks start at each vertex, and how many vertices each has.
    p, q : the smaller, the likelier a walk goes back (p) or away (q).
    random_state : seed.

    Attributes
    ----------
    p_, q_ : what was used.
    """

    def __init__(
        self,
        *,
        dimensions: int = 200,
        walks: int = 10,
        length: int = 80,
        window: int = 10,
        p: float | None = None,
        q: float | None = None,
        random_state: int = 0,
    ) -> None:
        self.dimensions = dimensions
        self.walks = walks
        self.length = length
        self.window = window
        self.p = p
        self.q = q
        self.random_state = random_state

    def fit(self, network: TextNetwork) -> Self:
        """Choose p and q, walk over the links and learn from the walks."""
        self.p_, self.q_ = self._choose(network)
        walker = Walker(network.links, len(network))
        self.embedding_ = self._embed(walker, self.walks, self.length, self.p_, self.q_)
        return self

    def _embed(self, walker: Walker, walks: int, length: int, p: float, q: float) -> np.ndarray:
        rng = np.random.default_rng(self.random_state)
        rows = skip_gram(
            walker.corpus(walks, length, rng, p, q),
            walker.vertices,
            dimensions=self.dimensions,
            window=self.window,
            negatives=5,
            seed=self.random_state,
        )
        return centred(rows)

    def _choose(self, network: TextNetwork) -> tuple[float, float]:
        """The p and q with the highest AUC of held-out links (1 where there are none)."""
        kept, held_out = validation_links(network.links, VALIDATION, self.random_state, 1000)
        strangers = NonNeighbourSampler(network.links, len(network))
        held_out = held_out[strangers.count[held_out[:, 0]] > 0]
        if not len(held_out):
            return self.p or 1.0, self.q or 1.0
        source, target = np.repeat(held_out, NEGATIVES, axis=0).T
        other = strangers.draw(source, np.random.default_rng([self.random_state, 1]))
        walker = Walker(kept, len(network))
        walks, length = max(self.walks // 5, 1), max(self.length // 2, 2)

        def auc(p: float, q: float) -> float:
            trial = CosineMethod()
            trial.embedding_ = self._embed(walker, walks, length, p, q)
            ahead = trial.score_indices(source, target) - trial.score_indices(source, other)
            return float((np.sign(ahead) + 1).mean() / 2)

        p, q = self.p or 1.0, self.q
        if q is None:
            q = max(GRID, key=lambda choice: auc(p, choice))
        if self.p is None:
            p = max(GRID, key=lambda choice: auc(choice, q))
        return p, q
