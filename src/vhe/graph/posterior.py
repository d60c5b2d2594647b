"""Structure embeddings from the joint posterior: the graph prior met by the words of a model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vhe.data.text import Corpus
from vhe.graph.bound import graph_bound
from vhe.graph.local_posterior import LocalPosterior
from vhe.graph.prior import ROUNDS, ROUNDS_TRAINING, STRENGTH, GraphPrior, TextCodes, near_texts
from vhe.pair.protocol import PairModel

WHOLE = 10_000  # vertices up to which each step solves for all of them


@dataclass(frozen=True)
class MaskedPosterior:
    """The posterior means of vertices without some links, and these links: what a step of training
    reads and what it learns from."""

    mean: Tensor  # (k, d)
    links: Tensor  # (m, 2)
    vertices: Tensor | None = None  # (k,) whose means they are, sorted; None is all
    part: tuple[int, int] = (0, 1)  # k and n: of n parts of their ends, the k-th asks for partners
    weight: float = 1.0  # of what these say, beside the pairs of a batch

    def of(self, vertices: Tensor) -> Tensor:
        """The means of some of the vertices."""
        if self.vertices is None:
            return self.mean[vertices]
        return self.mean[torch.searchsorted(self.vertices, vertices.contiguous())]


class JointStructure:
    """The posterior mean of every vertex, as a function of the word vectors of a `PairVAE`.

    Near texts, the soft links, are those of the word vectors that the model starts with.
    """

    def __init__(self, model: PairModel, corpus: Corpus) -> None:
        self.model, self.corpus = model, corpus
        self.codes = TextCodes(corpus, model.words.weight.device)
        with torch.no_grad():
            codes = self.codes(model.words.weight).cpu().numpy()
        speaking = np.flatnonzero(~self.codes.silent)
        pairs, cosine = near_texts(codes[speaking])
        self.near = speaking[pairs], cosine
        self.prior: GraphPrior | None = None

    def use(
        self, links: NDArray[np.int64], text_knn_weight: float, link_strength: float = STRENGTH
    ) -> None:
        """Couple the codes by these links (m, 2)."""
        device = self.model.words.weight.device
        self.prior = GraphPrior(
            links, self.corpus.lengths, self.near, text_knn_weight, device, link_strength
        )
        self._local: LocalPosterior | None = None

    @property
    def local(self) -> LocalPosterior | None:
        """What solves for a few vertices at a time, where there are many."""
        assert self.prior is not None, "call use() first"
        if self._local is None and len(self.corpus) > WHOLE:
            self._local = LocalPosterior(self.prior, self.codes, self.model.structure.weight.data)
        return self._local

    def leaving_out(
        self, numbers: NDArray[np.int64], readers: NDArray[np.int64] | None = None
    ) -> MaskedPosterior:
        """The posterior means without some links, and these links.

        Where vertices are many, only those of the links and the ``readers`` are solved for.
        """
        assert self.prior is not None, "call use() first"
        device = self.model.words.weight.device
        ends = self.prior.links[numbers]
        links = torch.from_numpy(ends).to(device)
        if self.local is None:
            return MaskedPosterior(self.mean(numbers), links)
        asked = np.unique(np.append(ends, [] if readers is None else readers).astype(np.int64))
        mean = self.local.mean(asked, self.model.words.weight, numbers)
        return MaskedPosterior(mean, links, torch.from_numpy(asked).to(device))

    def mean(
        self, without: NDArray[np.int64] | None = None, rounds: int = ROUNDS_TRAINING
    ) -> Tensor:
        """The posterior means (n, d), without some links (by number) while training on them."""
        assert self.prior is not None, "call use() first"
        codes = self.codes(self.model.words.weight)
        return self.prior.coupling(without).posterior_mean(codes, rounds)

    @torch.no_grad()
    def store(self, without: NDArray[np.int64] | None = None) -> None:
        """Put the posterior means, without some links, into the model's table."""
        self.model.structure.weight.copy_(self.mean(without, rounds=ROUNDS))

    @torch.no_grad()
    def renew(self, vertices: NDArray[np.int64]) -> None:
        """Renew the means of some vertices in the table; of all of them, where these are few."""
        if self.local is None:
            self.store()
        else:
            self.leaving_out(np.zeros(0, np.int64), vertices)

    @torch.no_grad()
    def variance(self, seed: int) -> NDArray[np.float32]:
        """The posterior variance of each number of a vertex: (n,)."""
        assert self.prior is not None, "call use() first"
        variance: NDArray[np.float32] = self.prior.coupling().variance(seed).cpu().numpy()
        return variance

    @torch.no_grad()
    def bound(self, seed: int) -> dict[str, float]:
        """The evidence lower bound of the means in the model's table, in nats a vertex."""
        assert self.prior is not None, "call use() first"
        codes = self.codes(self.model.words.weight)
        mean, coupling = self.model.structure.weight, self.prior.coupling()
        return graph_bound(codes, mean, coupling, seed).record()
