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
        batch, length, channels = similarity.shape
        width = kernels.shape[1]
        padded = _padded(similarity, width)
        # the `width` rows around each position lie side by side in memory already
        phrases = padded.as_strided(
            (batch, length, width * channels), (padded.shape[1] * channels, channels, 1)
        ).reshape(-1, width * channels)
        flat = kernels[:, :, :channels].reshape(kernels.shape[0], -1)
        scores = phrases @ flat.T  # (batch * L, K)
        best = scores.amax(dim=1, keepdim=True)
        # as argmax, which takes twenty times as long as amax
        number = torch.arange(kernels.shape[0], device=scores.device, dtype=torch.int32)
        winner = torch.where(scores == best, number, 0).amax(dim=1)
        ctx.save_for_backward(similarity, kernels, mask, winner)
        return best.view(batch, length).masked_fill(~mask, 0)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        """Position p of a text used row p + t of the padded M and row t of its winner U_k.

        With the gradients g in a sparse matrix G of one row for each (t, k) and one column for
        each row of M, g at (t, k), (p + t): dU = G M and dM = G^T U.
        """
        similarity, kernels, mask, winner = ctx.saved_tensors
        batch, length, channels = similarity.shape
        count, width = kernels.shape[:2]
        padded = _padded(similarity, width)
        rows = batch * padded.shape[1]
        gradient = gradients[0].masked_fill(~mask, 0)
        steps = torch.arange(width, device=mask.device, dtype=torch.int32)

        # G by its rows: the positions in the order of their winners, once for each t
        order = torch.argsort(winner.flatten(), stable=True)
        start = torch.arange(rows, device=mask.device, dtype=torch.int32)
        start = start.view(batch, -1)[:, :length].reshape(-1)[order]
        taken = torch.bincount(winner.flatten(), minlength=count).repeat(width).cumsum(0)
        by_kernel = torch.sparse_csr_tensor(
            nn.functional.pad(taken, (1, 0)).int(),
            (start + steps.unsqueeze(1)).flatten(),
            gradient.flatten()[order].repeat(width),
            (width * count, rows),
            check_invariants=False,
        )
        to_kernels = torch.zeros_like(kernels)
        summed = by_kernel @ padded.view(rows, channels)
        to_kernels[:, :, :channels] = summed.view(width, count, channels).transpose(0, 1)

        # G by its columns: row q of the padded M was used from the positions q - t
        def from_before(values: Tensor) -> Tensor:
            placed = nn.functional.pad(values.view(batch, length), (0, width - 1)).flatten()
            windows = nn.functional.pad(placed, (width - 1, 0)).unfold(0, width, 1)
            return windows.flip(1)  # (rows, width), column t from q - t

        by_row = torch.sparse_csr_tensor(
            torch.arange(0, rows * width + 1, width, device=mask.device, dtype=torch.int32),
            (from_before(winner) + steps * count).flatten(),
            from_before(gradient).flatten(),
            (rows, width * count),
            check_invariants=False,
        )
        flat = kernels[:, :, :channels].transpose(0, 1).reshape(width * count, channels)
        half = width // 2
        to_padded = (by_row @ flat).view(batch, -1, channels)
        return to_padded[:, half : half + length], to_kernels, None


def _padded(similarity: Tensor, width: int) -> Tensor:
    """M with room for half a kernel before its first and after its last row."""
    half = width // 2
    return nn.functional.pad(similarity, (0, 0, half, half)).contiguous()
