"""CANE (Tu, Liu, Liu & Sun, ACL 2017): the text vector of a vertex depends on the neighbour, by
mutual attention over the phrases of the two texts.

    P, Q    convolution of width 2 over the words of each text, 100 filters
    F = tanh(P^T A Q)                       (L_i, L_j)
    t_i = P softmax(mean over j of F)       t_j = Q softmax(mean over i of F)
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vhe.baselines.contextual import Contextual, ContextualPairs
from vhe.data.text import PADDING
from vhe.pair.alignment import MASKED

WIDTH = 2


class CANEPairs(ContextualPairs):
    """Convolution and mutual attention.

    A is made symmetric, (A + A^T)/2, because links are undirected here. The filters start at the
    mean of adjacent words plus some noise, which preserves what the initial words say.
    """

    def add_layers(self) -> None:
        size = self.config.word_dim
        self.filters = nn.Linear(WIDTH * size, size)
        self.attention = nn.Parameter(torch.empty(size, size))  # A

    def initialise_layers(self, generator: torch.Generator) -> None:
        size = self.config.word_dim
        nn.init.xavier_uniform_(self.filters.weight, gain=0.1, generator=generator)
        self.filters.weight += torch.eye(size).repeat(1, WIDTH) / WIDTH
        nn.init.zeros_(self.filters.bias)
        nn.init.xavier_uniform_(self.attention, generator=generator)

    def text_vectors(self, tokens_i: Tensor, tokens_j: Tensor) -> tuple[Tensor, Tensor]:
        mask_i, mask_j = tokens_i != PADDING, tokens_j != PADDING
        p, q = self._phrases(tokens_i), self._phrases(tokens_j)  # (batch, L, size)
        symmetric = (self.attention + self.attention.T) / 2
        fits = torch.tanh(p @ symmetric @ q.transpose(1, 2))  # (batch, L_i, L_j)
        both = mask_i.unsqueeze(2) & mask_j.unsqueeze(1)
        fits = fits * both
        t_i = _attended(p, fits.sum(2) / mask_j.sum(1, keepdim=True).clamp(min=1), mask_i)
        t_j = _attended(q, fits.sum(1) / mask_i.sum(1, keepdim=True).clamp(min=1), mask_j)
        return t_i, t_j

    def _phrases(self, tokens: Tensor) -> Tensor:
        """The convolution over each word and the next; zero follows the last word."""
        words = self.words(tokens)
        following = nn.functional.pad(words[:, 1:], (0, 0, 0, 1))
        return self.filters(torch.cat([words, following], dim=2))


def _attended(phrases: Tensor, scores: Tensor, mask: Tensor) -> Tensor:
    """The mean of the phrases (batch, L, d), weighted by the softmax of scores (batch, L)."""
    weight = torch.softmax(scores.masked_fill(~mask, MASKED), dim=1) * mask
    return (weight.unsqueeze(1) @ phrases).squeeze(1)


class CANE(Contextual):
    """Mutual attention over phrases with CANE's objective; see `Contextual`."""

    pairs = CANEPairs
