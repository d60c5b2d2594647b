"""CENE (Sun, Guo, Ding & Liu, arXiv:1610.02906, 2016): a text is a second kind of vertex, linked
with the vertex that carries it.

    Σ_links [log σ(u_i·u_j) + Σ_15 log σ(-u_i·u_n)]
    + Σ_vertices [log σ(u_i·t_i) + Σ_25 log σ(-u_i·t_n) + Σ_25 log σ(-u_n·t_i)]

with t the mean word vector of a text. Links draw their negatives as in all of these baselines;
the negatives of a vertex and its text are others of the same batch, which holds vertices by their
degree. The paper learns by plain gradient steps of .02, here it is Adam.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from vhe.baselines.contextual import Contextual, ContextualPairs, Terms, Vectors
from vhe.config import VHEConfig
from vhe.data.text import PADDING
from vhe.nn.pair_vae import TextPairs

LINK_NEGATIVES = 15
TEXT_NEGATIVES = 25  # texts for each vertex, and vertices for each text


class CENEPairs(ContextualPairs):
    """The vector of a vertex is u alone; its text has had its say in training."""

    def infer(self, pairs: TextPairs) -> Vectors:
        return Vectors.of(self.structure(pairs.i), self.structure(pairs.j))

    def texts(self, tokens_i: Tensor, tokens_j: Tensor, pairs: TextPairs) -> tuple[Tensor, Tensor]:
        return self._mean(tokens_i), self._mean(tokens_j)

    def _mean(self, tokens: Tensor) -> Tensor:
        return nn.functional.embedding_bag(
            tokens, self.words.weight, mode="mean", padding_idx=PADDING
        )

    def loss(
        self,
        batch: Sequence[TextPairs],
        generator: torch.Generator,
        structure: Tensor | None = None,
    ) -> Terms:
        """``link`` for each pair, ``text`` for each vertex of the batch."""
        links: list[Tensor] = []
        vertices: list[Tensor] = []
        texts: list[Tensor] = []
        for pairs in batch:
            product = (self.structure(pairs.i) * self.structure(pairs.j)).sum(dim=1)
            links.append(logsigmoid((2 * pairs.links - 1) * product))
            vertices += [pairs.i, pairs.j]
            texts += self.texts(pairs.tokens_i, pairs.tokens_j, pairs)
        # each vertex of the batch once, with its text
        once, place = torch.unique(torch.cat(vertices), return_inverse=True)
        row = torch.empty_like(once).scatter_(
            0, place, torch.arange(len(place), device=place.device)
        )
        scores = self.structure(once) @ torch.cat(texts)[row].T  # (m, m)
        own = logsigmoid(scores.diagonal())
        text = own + self._strangers(scores, generator) + self._strangers(scores.T, generator)
        return Terms(link=torch.cat(links), text=text)

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
    settings: ClassVar[dict[str, Any]] = {
        "structure_dim": 200,
        "negatives": LINK_NEGATIVES,
        "batch_size": 64 * (1 + LINK_NEGATIVES),
        "learning_rate": 5e-3,
        "contexts": 1,
    }

    @staticmethod
    def sized(config: VHEConfig) -> VHEConfig:
        size = config.structure_dim
        return config.replace(latent_dim=size, word_dim=size)
