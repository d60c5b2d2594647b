"""Phrase-to-word alignment (PWA): which words of a text matter beside another text.

Section 3.2 and appendix B of the paper. With word vectors x_i (L_i, d) and x_j (L_j, d):

    M = x_i x_j^T                       (L_i, L_j)  similarity of each word with each word
    F_i = tanh(conv1d(M; U))            (L_i, K)    over the positions of x_i, the positions of x_j
                                                    being the input channels
    w_i = softmax(max_k F_i)            (L_i,)      the weight of each word
    x~_i = w_i^T x_i                    (d,)        the text, as its context sees it

tanh grows with its argument, so max_k tanh(.) = tanh(max_k .): the maximum comes first, and the
gradient goes through the one winning kernel of each position. That is exact, and makes the way
back cheap: what remains is the convolution forward, 2,000 L_i L_j operations for each direction.
It is done on rows without padding, for a whole batch in one function of autograd.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from vhe.data.text import PADDING
from vhe.nn.parallel import in_shares

MASKED = -1e9  # the score of a place that holds no word

Texts = tuple[Tensor, Tensor]  # tokens (batch, L_i) and (batch, L_j) of some pairs


@dataclass(frozen=True)
class Aligned:
    """What the alignment of pairs of texts gives; pairs of all parts follow each other."""

    text_i: Tensor  # (pairs, d)  x~_i
    text_j: Tensor  # (pairs, d)  x~_j
    weights: list[Texts]  # of each part, w_i (batch, L_i) and w_j; 0 where there is no word


class PhraseToWordAlignment(nn.Module):
    """The alignment of pairs of texts; both directions share their kernels U.

    The two ends of an undirected link play the same part, so the row-wise kernels U and the
    column-wise kernels V of the paper are one: swapping i and j swaps the result.
    """

    def __init__(self, kernels: int, width: int, max_words: int) -> None:
        super().__init__()
        # (K, width, longest text): `kernels[:, t, q]` meets word q of the other text at offset t
        self.kernels = nn.Parameter(torch.empty(kernels, width, max_words))

    def reset(self, generator: torch.Generator) -> None:
        bound = 1 / math.sqrt(self.kernels.shape[1] * self.kernels.shape[2])
        with torch.no_grad():
            self.kernels.uniform_(-bound, bound, generator=generator)

    def forward(self, words: Tensor, parts: Sequence[Texts]) -> Aligned:
        """Align the texts of pairs that come in parts, each of texts of about equal length.

        ``words`` (V, d) are the vectors of the tokens; that of `PADDING` has to be zero. The
        weights pass no gradient on, the texts do.
        """
        seen: list[_Part] = []
        learns = torch.is_grad_enabled()
        text_i, text_j = _Align.apply(words, self.kernels, parts, seen, learns)
        return Aligned(text_i, text_j, [(part.i.weights, part.j.weights) for part in seen])


class _Side:
    """One text of each pair of a part.

    Its rows of M lie one after the other, with half a kernel of zero rows around each text, so
    that no kernel reads from two texts and hardly any padding is computed.
    """

    weights: Tensor  # (batch, L)  w
    scores: Tensor  # (batch, L)  tanh of the winner
    winner: Tensor  # (rows between the first and the last gap,)  which kernel

    def __init__(self, tokens: Tensor, width: int) -> None:
        batch, longest = tokens.shape
        self.tokens, self.mask, self.half = tokens, tokens != PADDING, width // 2
        # many small steps, for which numpy takes a third of the time
        position, place = np.arange(longest), np.arange(batch * longest)
        length = ((position + 1) * self.mask.cpu().numpy()).max(axis=1, initial=0)
        after = np.cumsum(length + self.half)
        inside = (position < length[:, None]).ravel()
        word = ((after - length - self.half)[:, None] + position).ravel()
        self.count = int((length + self.half).sum()) + self.half  # rows
        # which row of M is in each row, the one after the last where none is
        rows = np.full(self.count + 1, batch * longest)
        rows[np.where(inside, word + self.half, self.count)] = place
        self.rows = torch.from_numpy(rows[: self.count]).to(tokens.device)
        # where each word is among the places of a kernel; what is no word is anywhere
        self.place = torch.from_numpy(np.where(inside, word, 0)).to(tokens.device)

    def weigh(self, similarity: Tensor, kernels: Tensor) -> Tensor:
        """w = softmax(max_k tanh(conv(M))), M (batch * L + 1, C) and kernels (width, >= C, K).

        Returns M in rows.
        """
        rows = similarity.index_select(0, self.rows)
        scores = self._convolve(rows, kernels[:, : rows.shape[1]])  # (places, K)
        # numpy's argmax is six times as fast as torch's
        at = torch.from_numpy(scores.numpy().argmax(1)) if scores.is_cpu else scores.argmax(1)
        self.winner = at
        best = scores.gather(1, at.unsqueeze(1)).squeeze(1) if len(at) else scores.new_zeros(1)
        self.scores = torch.tanh(best.index_select(0, self.place).view(self.mask.shape))
        # a text without a word has a weight of zero everywhere, not a uniform one
        masked = self.scores.masked_fill(~self.mask, MASKED)
        self.weights = torch.softmax(masked, dim=1) * self.mask
        return rows

    def _convolve(self, rows: Tensor, kernels: Tensor) -> Tensor:
        places = self.count - 2 * self.half
        scores = rows[:places] @ kernels[0]
        for t in range(1, len(kernels)):
            scores.addmm_(rows[t : t + places], kernels[t])
        return scores

    def back(
        self, gradient: Tensor, words: Tensor, rows: Tensor, kernels: Tensor, to_kernels: Tensor
    ) -> Tensor:
        """From the gradient of x~ (batch, d) to that of M, (batch, L, C); adds that of U.

        ``rows`` are those of M, kernels and ``to_kernels`` are (K, width, at least C).
        """
        weights, places, channels = self.weights, len(self.winner), rows.shape[1]
        to_weights = (gradient.unsqueeze(1) @ words.transpose(1, 2)).squeeze(1)  # (batch, L)
        to_scores = weights * (to_weights - (weights * to_weights).sum(dim=1, keepdim=True))
        to_scores *= 1 - self.scores.square()
        at = self.rows[self.half : self.half + places]
        to_best = nn.functional.pad(to_scores.flatten(), (0, 1)).index_select(0, at).unsqueeze(1)
        width = kernels.shape[1]
        phrases = rows.as_strided((places, width * channels), (channels, 1))
        summed = rows.new_zeros(len(kernels), width * channels)
        summed.index_add_(0, self.winner, to_best * phrases)
        to_kernels[:, :, :channels] += summed.view(-1, width, channels)
        to_rows = torch.zeros_like(rows)
        for t in range(width):
            winners = kernels[:, t, :channels].index_select(0, self.winner)
            to_rows[t : t + places].addcmul_(to_best, winners)
        # what is no word gets a gradient that is not its own: its vector is zero, and stays so
        found = to_rows.index_select(0, self.place + self.half) if len(rows) else to_rows
        return found.view(*self.mask.shape, channels)


class _Part:
    """The alignment of some pairs, and its way back."""

    def __init__(self, words: Tensor, kernels: Tensor, texts: Texts, learns: bool) -> None:
        """``kernels`` (width, longest, K); what only `back` needs is kept if it ``learns``."""
        self.i, self.j = (_Side(tokens, len(kernels)) for tokens in texts)
        words_i, words_j = _vectors(words, texts[0]), _vectors(words, texts[1])
        room, similarity = _with_empty_row(words_i, texts[1].shape[1])
        torch.bmm(words_i, words_j.transpose(1, 2), out=similarity)
        rows_i = self.i.weigh(room, kernels)
        room, turned = _with_empty_row(words_j, texts[0].shape[1])
        turned.copy_(similarity.transpose(1, 2))
        rows_j = self.j.weigh(room, kernels)
        if learns:
            self.words, self.rows = (words_i, words_j), (rows_i, rows_j)
        self.text_i = (self.i.weights.unsqueeze(1) @ words_i).squeeze(1)
        self.text_j = (self.j.weights.unsqueeze(1) @ words_j).squeeze(1)

    def back(self, gradients: Texts, kernels: Tensor, to_words: Tensor, to_kernels: Tensor) -> None:
        """Adds to the gradients of the words and of the kernels."""
        i, j = self.i, self.j
        to_similarity = i.back(gradients[0], self.words[0], self.rows[0], kernels, to_kernels)
        turned = j.back(gradients[1], self.words[1], self.rows[1], kernels, to_kernels)
        to_similarity = to_similarity + turned.transpose(1, 2)
        for side, gradient, similarity, others in (
            (i, gradients[0], to_similarity, self.words[1]),
            (j, gradients[1], to_similarity.transpose(1, 2), self.words[0]),
        ):
            direct = side.weights.unsqueeze(2) * gradient.unsqueeze(1)
            found = direct.baddbmm_(similarity, others)
            to_words.index_add_(0, side.tokens.flatten(), found.flatten(0, 1))


class _Align(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        words: Tensor,
        kernels: Tensor,
        parts: Sequence[Texts],
        seen: list[_Part],
        learns: bool,
    ) -> Texts:
        by_place = kernels.permute(1, 2, 0).contiguous()  # (width, longest, K)

        def work(share: Sequence[Texts]) -> list[_Part]:
            return [_Part(words, by_place, texts, learns) for texts in share]

        shares = in_shares(work, parts)
        seen.extend(shares[k % len(shares)][k // len(shares)] for k in range(len(parts)))
        ctx.save_for_backward(words, kernels)
        ctx.parts = seen
        return torch.cat([part.text_i for part in seen]), torch.cat([part.text_j for part in seen])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        words, kernels = ctx.saved_tensors
        sizes = [len(part.text_i) for part in ctx.parts]
        of_part = list(zip(*(gradient.split(sizes) for gradient in gradients), strict=True))

        def work(share: Sequence[int]) -> tuple[Tensor, Tensor]:
            found = torch.zeros_like(words), torch.zeros_like(kernels)
            for k in share:
                ctx.parts[k].back(of_part[k], kernels, *found)
            return found

        shares = in_shares(work, range(len(sizes)))
        to_words, to_kernels = (reduce(Tensor.add_, found) for found in zip(*shares, strict=True))
        to_words[PADDING] = 0
        return to_words, to_kernels, None, None, None


def _vectors(words: Tensor, tokens: Tensor) -> Tensor:
    """`words[tokens]`, which takes five times as long."""
    return words.index_select(0, tokens.flatten()).view(*tokens.shape, words.shape[1])


def _with_empty_row(words: Tensor, channels: int) -> Texts:
    """Room for rows of M for all words (batch, L, .) and an empty row after them; and as M."""
    batch, longest = words.shape[:2]
    rows = words.new_empty(batch * longest + 1, channels)
    rows[-1] = 0
    return rows, rows[:-1].view(batch, longest, channels)
