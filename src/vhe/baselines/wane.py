"""WANE (Shen, Zhang, Henao & Carin, EMNLP 2018): CANE's objective with texts aligned word by word.

    a = softmax(x_i x_j^T)                  for each word of one text, which of the other it meets
    x~ = a x_j                              (L_i, d) what it meets
    y = C [x - x~ ; x * x~]                 the comparison, by subtraction and product
    t_i = max over words of y

Built so here: C is one linear layer to as many numbers as the other baselines have, and words are
dropped from the texts while training.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vhe.baselines.contextual import CANEObjective, Contextual, ContextualPairs
from vhe.config import VHEConfig
from vhe.data.text import PADDING, Corpus
from vhe.nn.alignment import MASKED
from vhe.nn.pair_vae import TextPairs

START = 0.1  # maxima are all positive: were they large, each text would be near each other


class WANEPairs(ContextualPairs):
    """Soft alignment of words, comparison and max-pooling; both directions share C."""

    def __init__(self, config: VHEConfig, weights: CANEObjective, corpus: Corpus) -> None:
        super().__init__(config, weights, corpus)
        self.compare = nn.Linear(2 * config.word_dim, config.word_dim)

    def start_layers(self, generator: torch.Generator) -> None:
        nn.init.xavier_uniform_(self.compare.weight, gain=START, generator=generator)
        # at the difference, which keeps what the words start with
        self.compare.weight[:, : self.config.word_dim] += START * torch.eye(self.config.word_dim)
        nn.init.zeros_(self.compare.bias)

    def texts(self, tokens_i: Tensor, tokens_j: Tensor, pairs: TextPairs) -> tuple[Tensor, Tensor]:
        mask_i, mask_j = tokens_i != PADDING, tokens_j != PADDING
        x_i, x_j = self.words(tokens_i), self.words(tokens_j)
        fits = x_i @ x_j.transpose(1, 2)  # (batch, L_i, L_j)
        return (
            self._compared(x_i, _met(fits, x_j, mask_j), mask_i),
            self._compared(x_j, _met(fits.transpose(1, 2), x_i, mask_i), mask_j),
        )

    def _compared(self, words: Tensor, met: Tensor, mask: Tensor) -> Tensor:
        compared = self.compare(torch.cat([words - met, words * met], dim=2))
        highest = compared.masked_fill(~mask.unsqueeze(2), MASKED).amax(dim=1)
        return highest * mask.any(dim=1, keepdim=True)  # nothing for a text without words


def _met(fits: Tensor, others: Tensor, mask: Tensor) -> Tensor:
    """For each word what it meets in the other text, nothing if that has no words."""
    share = torch.softmax(fits.masked_fill(~mask.unsqueeze(1), MASKED), dim=2)
    return (share * mask.unsqueeze(1)) @ others


class WANE(Contextual):
    """Word-by-word alignment with CANE's objective; see `Contextual`."""

    pairs = WANEPairs
    weights = CANEObjective(word_dropout=0.5)
