"""Phrase-to-word alignment (PWA): which words of a text matter beside another text.

Section 3.2 and appendix B of the paper. With word vectors x_i (L_i, d) and x_j (L_j, d):

    M = x_i x_j^T                       (L_i, L_j)  similarity of each word with each word
    F_i = tanh(conv1d(M; U))            (L_i, K)    over the positions of x_i, the positions of x_j
                                                    being the input channels
    w_i = softmax(max_k F_i)            (L_i,)      the weight of each word
    x~_i = w_i^T x_i                    (d,)        the text, as its context sees it
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

MASKED = -1e9  # the score of a place that holds no word


class Aligned(NamedTuple):
    """What the alignment of two texts gives."""

    text_i: Tensor  # (batch, d)  x~_i
    text_j: Tensor  # (batch, d)  x~_j
    weight_i: Tensor  # (batch, L_i)  w_i, 0 where there is no word
    weight_j: Tensor  # (batch, L_j)


class PhraseToWordAlignment(nn.Module):
    """The alignment of pairs of texts; both directions share their kernels U.

    The two ends of an undirected link play the same part, so the row-wise kernels U and the
    column-wise kernels V of the paper are one: swapping i and j swaps the result.
    """

    def __init__(self, kernels: int, width: int, max_words: int) -> None:
        super().__init__()
        self.width = width
        # (K, width, longest text): `kernels[:, t, q]` meets word q of the other text at offset t
        self.kernels = nn.Parameter(torch.empty(kernels, width, max_words))

    def reset(self, generator: torch.Generator) -> None:
        bound = 1 / math.sqrt(self.width * self.kernels.shape[2])
        with torch.no_grad():
            self.kernels.uniform_(-bound, bound, generator=generator)

    def forward(self, words_i: Tensor, words_j: Tensor, mask_i: Tensor, mask_j: Tensor) -> Aligned:
        """Align texts ``words_i`` (batch, L_i, d) with ``words_j`` (batch, L_j, d).

        The masks (batch, L) are true where there is a word; word vectors elsewhere are zero.
        """
        similarity = words_i @ words_j.transpose(1, 2)  # (batch, L_i, L_j)
        weight_i = self.weights(similarity, mask_i)  # (batch, L_i)
        weight_j = self.weights(similarity.transpose(1, 2), mask_j)  # (batch, L_j)
        text_i = (weight_i.unsqueeze(1) @ words_i).squeeze(1)
        text_j = (weight_j.unsqueeze(1) @ words_j).squeeze(1)
        return Aligned(text_i, text_j, weight_i, weight_j)

    def weights(self, similarity: Tensor, mask: Tensor) -> Tensor:
        """w = softmax(max_k tanh(conv(M))) over the words of each text: (batch, L)."""
        scores = torch.tanh(best_phrase(similarity, self.kernels, mask))
        # a text without a word has a weight of zero everywhere, not a uniform one
        return torch.softmax(scores.masked_fill(~mask, MASKED), dim=1) * mask


def best_phrase(similarity: Tensor, kernels: Tensor, mask: Tensor) -> Tensor:
    """max_k conv1d(M; U_k) at each position that holds a word, 0 elsewhere.

    tanh grows with its argument, so max_k tanh(.) = tanh(max_k .): the maximum comes first and
    the gradient goes through the one winning kernel of each position, which is exact.

    Parameters
    ----------
    similarity : (batch, L, C)
    kernels : (K, width, at least C)
    mask : (batch, L), bool

    Returns
    -------
    (batch, L)
    """
    best = _BestPhrase.apply(similarity, kernels, mask)
    assert isinstance(best, Tensor)
    return best


class _BestPhrase(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, similarity: Tensor, kernels: Tensor, mask: Tensor) -> Tensor:
        channels = similarity.shape[2]
        rows = _phrases(similarity, kernels.shape[1], mask)  # (words, width * C)
        flat = kernels[:, :, :channels].reshape(kernels.shape[0], -1)  # (K, width * C)
        best, winner = (rows @ flat.T).max(dim=1)  # (words,)
        ctx.save_for_backward(similarity, kernels, mask, winner)
        return similarity.new_zeros(mask.shape).masked_scatter_(mask, best)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        similarity, kernels, mask, winner = ctx.saved_tensors
        batch, length, channels = similarity.shape
        width = kernels.shape[1]
        gradient = gradients[0][mask].unsqueeze(1)  # (words, 1)

        rows = _phrases(similarity, width, mask).mul_(gradient)
        to_kernels = torch.zeros_like(kernels)
        flat = rows.new_zeros(kernels.shape[0], width * channels)
        flat.index_add_(0, winner, rows)
        to_kernels[:, :, :channels] = flat.view(-1, width, channels)

        # what position p sends to the position p + t - width // 2 that its kernel looked at
        won = kernels[:, :, :channels].reshape(kernels.shape[0], -1)[winner].mul_(gradient)
        sent = similarity.new_zeros(batch, length, width, channels)
        sent[mask] = won.view(-1, width, channels)
        padded = similarity.new_zeros(batch, length + width - 1, channels)
        for t in range(width):
            padded[:, t : t + length] += sent[:, :, t]
        half = width // 2
        return padded[:, half : half + length], to_kernels, None


def _phrases(similarity: Tensor, width: int, mask: Tensor) -> Tensor:
    """The ``width`` rows of M around each word, side by side: (words, width * C)."""
    half = width // 2
    padded = nn.functional.pad(similarity, (0, 0, half, half)).contiguous()
    batch, length, channels = padded.shape
    windows = padded.as_strided(
        (batch, length - width + 1, width * channels), (length * channels, channels, 1)
    )
    return windows[mask]
