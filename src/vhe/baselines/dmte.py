"""DMTE (Zhang, Li, Shen, Wang & Carin, NeurIPS 2018): CANE's objective on texts that are diffused
over the links of the whole training network.

    T = x W_0 + .3 P x W_1 + .1 P² x W_2

with x the mean word vector of each text and P the transition matrix of the network.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from vhe.baselines.contextual import Contextual, ContextualPairs
from vhe.baselines.matrices import as_tensor, transition_matrix
from vhe.pair.model import TextPairs, joined

IMPORTANCE = (1.0, 0.3, 0.1)  # of the text itself, of its neighbours, of their neighbours


class DMTEPairs(ContextualPairs):
    """Text vectors that depend on the network but not on the partner."""

    def add_layers(self) -> None:
        size = self.config.word_dim
        self.steps = nn.ModuleList(nn.Linear(size, size, bias=False) for _ in IMPORTANCE)
        self.use_links(np.empty((0, 2), dtype=np.int64))

    def initialise_layers(self, generator: torch.Generator) -> None:
        for step in self.steps:
            assert isinstance(step, nn.Linear)
            nn.init.xavier_uniform_(step.weight, gain=0.1, generator=generator)
            step.weight += torch.eye(self.config.word_dim)

    def use_links(self, links: np.ndarray) -> None:
        self.transition = as_tensor(transition_matrix(links, self.structure.num_embeddings))  # P

    def texts(self, batch: Sequence[TextPairs]) -> tuple[Tensor, Tensor]:
        diffused = self.diffused()
        return diffused[joined(batch, "i")], diffused[joined(batch, "j")]

    def diffused(self) -> Tensor:
        """T: (n, word_dim)."""
        x = self.mean_words()  # (n, word_dim)
        total = torch.zeros_like(x)
        for importance, step in zip(IMPORTANCE, self.steps, strict=True):
            total = total + importance * step(x)
            x = torch.sparse.mm(self.transition, x)
        return total


class DMTE(Contextual):
    """Diffused mean words with CANE's objective; see `Contextual`."""

    pairs = DMTEPairs
    settings: ClassVar[dict[str, Any]] = {"contexts": 1, "batch_size": 512, "learning_rate": 5e-3}
