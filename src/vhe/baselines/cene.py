"""CENE (Sun, Guo, Ding & Liu, arXiv:1610.02906, 2016): a text is a second kind of vertex, linked
with the vertex that carries it.

    Σ_links [log σ(u_i·u_j) + Σ_15 log σ(-u_i·u_n)]
    + Σ_vertices [log σ(u_i·t_i) + Σ_25 log σ(-u_i·t_n) + Σ_25 log σ(-u_n·t_i)]

with t the mean word vector of a text. Links draw their negatives as in all of these baselines;
the negatives of a vertex and its text are others of the same batch, which holds vertices by their
degree. Built so here: u starts at the text of its vertex, the second line counts `TEXT_WEIGHT`
times as much as the first, and the steps are Adam's (in the paper plain ones of .02).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from vhe.baselines.contextual import (
    Bags,
    CANEObjective,
    Contextual,
    ContextualPairs,
    Terms,
    Vectors,
)
from vhe.config import VHEConfig
from vhe.data.text import Corpus
from vhe.graph.posterior import MaskedPosterior
from vhe.pair.model import TextPairs, joined

LINK_NEGATIVES = 15
TEXT_WEIGHT = 0.02
TEXT_NEGATIVES = 25  # texts for each vertex, and vertices for each text


class CENEPairs(ContextualPairs):
    """The vector of a vertex is u alone, which starts at its text; the text has had its say."""

    def __init__(self, config: VHEConfig, weights: CANEObjective, corpus: Corpus) -> None:
        super().__init__(config, weights, corpus)
        self.bags = Bags(corpus)

    def start_layers(self, generator: torch.Generator) -> None:
        self.structure.weight += self.bags.mean(self.words.weight)

    def infer(self, batch: Sequence[TextPairs]) -> Vectors:
        return Vectors.of(self.structure(joined(batch, "i")), self.structure(joined(batch, "j")))

    def texts(self, batch: Sequence[TextPairs]) -> tuple[Tensor, Tensor]:
        mean = self.bags.mean(self.words.weight)
        return mean[joined(batch, "i")], mean[joined(batch, "j")]

    def loss(
        self,
        batch: Sequence[TextPairs],
        generator: torch.Generator,
        left_out: MaskedPosterior | None = None,
    ) -> Terms:
        """``link`` for each pair, ``text`` for each vertex of the batch."""
        i, j = joined(batch, "i"), joined(batch, "j")
        product = (self.structure(i) * self.structure(j)).sum(dim=1)
        link = logsigmoid((2 * joined(batch, "links") - 1) * product)
        once = torch.unique(torch.cat([i, j]))  # each vertex of the batch, with its text
        scores = self.structure(once) @ self.bags.mean(self.words.weight)[once].T  # (m, m)
        own = logsigmoid(scores.diagonal())
        text = own + self._strangers(scores, generator) + self._strangers(scores.T, generator)
        return Terms(link=link, text=text)

    def _strangers(self, scores: Tensor, generator: torch.Generator) -> Tensor:
        """Σ log σ(-score) over some others of each row of (m, m): (m,)."""
        m = len(scores)
        if m < 2:
            return scores.new_zeros(m)
        shift = torch.randint(1, m, (m, TEXT_NEGATIVES), generator=generator, device=scores.device)
        others = (torch.arange(m, device=scores.device).unsqueeze(1) + shift) % m  # never itself
        return logsigmoid(-scores.gather(1, others)).sum(dim=1)

    def objective(self, terms: Terms) -> Tensor:
        """A vertex with its text counts ``weights.text`` times as much as a link."""
        text = self.weights.text * terms["text"].mean()
        return -((1 + self.config.negatives) * terms["link"].mean() + text)


class CENE(Contextual):
    """Texts as vertices; ``embedding_`` has ``structure_dim`` numbers (words have as many).

    See `Contextual`.
    """

    pairs = CENEPairs
    weights = CANEObjective(text=TEXT_WEIGHT)
    settings: ClassVar[dict[str, Any]] = {
        "structure_dim": 200,
        "negatives": LINK_NEGATIVES,
        "batch_size": 64 * (1 + LINK_NEGATIVES),
        "learning_rate": 2e-3,
        "steps": 500,
        "validate_every": 30,
        "patience": 4,
        "contexts": 1,
    }

    @staticmethod
    def sized(config: VHEConfig) -> VHEConfig:
        size = config.structure_dim
        return config.replace(latent_dim=size, word_dim=size)
