"""CENE (Sun, Guo, Ding & Liu, arXiv:1610.02906, 2016): a text is a second kind of vertex, linked
with the vertex that carries it.

    Σ_links [log σ(u_i·u_j) + Σ_15 log σ(-u_i·u_n)]
    + Σ_vertices [log σ(u_i·t_i) + Σ_25 log σ(-u_i·t_n) + Σ_25 log σ(-u_n·t_i)]

with t the mean word vector of a text. Links draw their negatives as in all of these baselines;
the negatives of a vertex and its text are others of the same batch, which holds vertices by their
degree. Differences from the paper: u starts at the text of its vertex, the second line has the
weight `TEXT_WEIGHT`, and the optimiser is Adam (in the paper SGD with a rate of .02).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from vhe.baselines.contextual import (
    CANEObjective,
    Contextual,
    ContextualPairs,
    ContextualSettings,
    points,
)
from vhe.pair.elbo import Terms
from vhe.pair.integrator import PairPosterior
from vhe.pair.model import TextPairs, joined

LINK_NEGATIVES = 15
TEXT_WEIGHT = 0.02
TEXT_NEGATIVES = 25  # texts for each vertex, and vertices for each text


class CENEPairs(ContextualPairs):
    """The vector of a vertex is u alone, which starts at its text."""

    def initialise_layers(self, generator: torch.Generator) -> None:
        self.structure.weight += self.mean_words()

    def infer(self, batch: Sequence[TextPairs]) -> PairPosterior:
        return points(self.structure(joined(batch, "i")), self.structure(joined(batch, "j")))

    def loss(self, batch: Sequence[TextPairs], generator: torch.Generator) -> Terms:
        """``link`` for each pair, ``text`` for each vertex of the batch."""
        i, j = joined(batch, "i"), joined(batch, "j")
        product = (self.structure(i) * self.structure(j)).sum(dim=1)
        link = logsigmoid((2 * joined(batch, "links") - 1) * product)
        vertices = torch.unique(torch.cat([i, j]))
        scores = self.structure(vertices) @ self.mean_words()[vertices].T  # (m, m)
        own = logsigmoid(scores.diagonal())
        text = own + self._negatives(scores, generator) + self._negatives(scores.T, generator)
        return Terms(link=link, text=text)

    def _negatives(self, scores: Tensor, generator: torch.Generator) -> Tensor:
        """Σ log σ(-score) over some others of each row of (m, m): (m,)."""
        m = len(scores)
        if m < 2:
            return scores.new_zeros(m)
        shift = torch.randint(1, m, (m, TEXT_NEGATIVES), generator=generator, device=scores.device)
        others = (torch.arange(m, device=scores.device).unsqueeze(1) + shift) % m  # not the row
        return logsigmoid(-scores.gather(1, others)).sum(dim=1)

    def objective(self, terms: Terms) -> Tensor:
        """A vertex with its text has ``weights.text`` times the weight of a link."""
        text = self.weights.text * terms["text"].mean()
        return -((1 + self.config.negatives) * terms["link"].mean() + text)


@dataclass(frozen=True, kw_only=True)
class CENESettings(ContextualSettings):
    """The embedding is the structure vector alone; words have the same dimension."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "word_dim", self.structure_dim)

    @property
    def latent_dim(self) -> int:
        return self.structure_dim


class CENE(Contextual):
    """Texts as vertices; ``embedding_`` and words have the dimension ``structure_dim``.

    See `Contextual`.
    """

    pairs = CENEPairs
    config_class = CENESettings
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
