"""Structure embeddings from the joint posterior: the graph prior met by the words of a model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vhe.data.text import Corpus
from vhe.nn.graph_prior import ROUNDS, ROUNDS_TRAINING, GraphPrior, TextCodes, near_texts
from vhe.nn.pair_model import PairModel


@dataclass(frozen=True)
class LeftOut:
    """The posterior means of all vertices without some links, and these links: what a step of
    training reads and what it learns from."""

    mean: Tensor  # (n, d)
    links: Tensor  # (m, 2)


class JointStructure:
    """The posterior mean of every vertex, as a function of the word vectors of a `PairVAE`.

    Near texts, the soft links, are those of the word vectors that the model starts with.
    """

    def __init__(self, model: PairModel, corpus: Corpus) -> None:
        self.model, self.corpus = model, corpus
        self.codes = TextCodes(corpus, model.words.weight.device)
        with torch.no_grad():
            self.near = near_texts(self.codes(model.words.weight[1:]).cpu().numpy())
        self.prior: GraphPrior | None = None

    def use(self, links: NDArray[np.int64], softness: float) -> None:
        """Couple the codes by these links (m, 2)."""
        self.prior = GraphPrior(
            links, self.corpus.lengths, self.near, softness, self.model.words.weight.device
        )

    def leaving_out(self, numbers: NDArray[np.int64]) -> LeftOut:
        """The posterior means without some links, and these links."""
        assert self.prior is not None, "call use() first"
        links = torch.from_numpy(self.prior.links[numbers]).to(self.model.words.weight.device)
        return LeftOut(self.mean(numbers), links)

    def mean(
        self, without: NDArray[np.int64] | None = None, rounds: int = ROUNDS_TRAINING
    ) -> Tensor:
        """The posterior means (n, d), without some links (by number) while training on them."""
        assert self.prior is not None, "call use() first"
        codes = self.codes(self.model.words.weight[1:])
        return self.prior.coupling(without).posterior_mean(codes, rounds)

    @torch.no_grad()
    def store(self, without: NDArray[np.int64] | None = None) -> None:
        """Put the posterior means, without some links, into the model's table."""
        self.model.structure.weight.copy_(self.mean(without, rounds=ROUNDS))

    @torch.no_grad()
    def variance(self, seed: int) -> NDArray[np.float32]:
        """The posterior variance of each number of a vertex: (n,)."""
        assert self.prior is not None, "call use() first"
        variance: NDArray[np.float32] = self.prior.coupling().variance(seed).cpu().numpy()
        return variance
