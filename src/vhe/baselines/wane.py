"""WANE (Shen, Zhang, Henao & Carin, EMNLP 2018): CANE's objective with texts aligned word by word.

    a = softmax(x_i x_j^T / √d)             (L_i, L_j) attention of each word to the other text
    x~ = a x_j                              (L_i, d) the aligned vector of each word
    y = x + C [x - x~ ; x * x~]             the word and the comparison, by subtraction and product
    t_i = mean over words of y

Differences from the paper, which max-pools the comparison alone: maxima of word vectors say little
about a text before they are learned, and the mean differences of the two texts of a pair are
opposite to each other, which training on links cannot correct; so the word itself is added to its
comparison. C is one linear layer, and words are dropped from the texts during training.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vhe.baselines.contextual import CANEObjective, Contextual, ContextualPairs
from vhe.data.text import PADDING
from vhe.pair.alignment import MASKED


class WANEPairs(ContextualPairs):
    """Soft alignment of words, comparison and mean-pooling; both directions share C."""

    def add_layers(self) -> None:
        self.compare = nn.Linear(2 * self.config.word_dim, self.config.word_dim)

    def initialise_layers(self, generator: torch.Generator) -> None:
        nn.init.xavier_uniform_(self.compare.weight, gain=0.1, generator=generator)
        nn.init.zeros_(self.compare.bias)

    def text_vectors(self, tokens_i: Tensor, tokens_j: Tensor) -> tuple[Tensor, Tensor]:
        mask_i, mask_j = tokens_i != PADDING, tokens_j != PADDING
        x_i, x_j = self.words(tokens_i), self.words(tokens_j)
        fits = x_i @ x_j.transpose(1, 2) / self.config.word_dim**0.5  # (batch, L_i, L_j)
        return (
            self._compared(x_i, _aligned(fits, x_j, mask_j), mask_i),
            self._compared(x_j, _aligned(fits.transpose(1, 2), x_i, mask_i), mask_j),
        )

    def _compared(self, words: Tensor, aligned: Tensor, mask: Tensor) -> Tensor:
        """The mean of y over the words; C is linear, so the means are taken first."""
        count = mask.sum(dim=1, keepdim=True).clamp(min=1)
        mean = words.sum(dim=1) / count  # padding is zero
        mean_aligned = (aligned * mask.unsqueeze(2)).sum(dim=1) / count
        product = (words * aligned).sum(dim=1) / count
        compared = mean + self.compare(torch.cat([mean - mean_aligned, product], dim=1))
        return compared * mask.any(dim=1, keepdim=True)  # zero for an empty text


def _aligned(fits: Tensor, others: Tensor, mask: Tensor) -> Tensor:
    """The aligned vector of each word, zero if the other text is empty."""
    attention = torch.softmax(fits.masked_fill(~mask.unsqueeze(1), MASKED), dim=2)
    return (attention * mask.unsqueeze(1)) @ others


class WANE(Contextual):
    """Word-by-word alignment with CANE's objective; see `Contextual`."""

    pairs = WANEPairs
    weights = CANEObjective(word_dropout=0.5)
