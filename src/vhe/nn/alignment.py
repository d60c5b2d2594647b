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
from torch.nn.functional import embedding_bag, pad

from vhe.data.text import PADDING
from vhe.nn.filtering import Filtering
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

    Its rows of M lie in blocks of as many rows as a tile has, with half a kernel of zero rows
    around each text, so that no tile reads from two texts and hardly any padding is computed. The
    first rows of all blocks come first, then the second ones: so a transform is one product.
    """

    weights: Tensor  # (batch, L)  w
    scores: Tensor  # (batch, L)  tanh of the winner
    winner: Tensor  # (batch * L + 1,)  which kernel; the last is for where no word is

    def __init__(self, tokens: Tensor, filtering: Filtering) -> None:
        batch, longest = tokens.shape
        self.tokens, self.mask, self.filtering = tokens, tokens != PADDING, filtering
        tile, half = filtering.tile, filtering.width // 2
        # many small steps, for which numpy takes a third of the time
        position = np.arange(longest)
        length = ((position + 1) * self.mask.cpu().numpy()).max(axis=1, initial=1)
        blocks = -(-length // tile) + filtering.reach
        first = tile * (np.cumsum(blocks) - blocks)[:, None] + position
        count, inside = int(blocks.sum()), position < length[:, None]
        # which row of M is in each row, the one after the last where none is
        rows = np.full((count, tile), batch * longest)
        rows.ravel()[(first + half)[inside]] = np.flatnonzero(inside)
        self.rows = torch.from_numpy(rows.T.ravel()).to(tokens.device)
        # where each word is among the places of a kernel; what is no word is anywhere
        block, row = np.divmod(np.where(inside, first, 0).ravel(), tile)
        place = row * (count - filtering.reach) + block
        self.place = torch.from_numpy(place).to(tokens.device)

    def weigh(self, similarity: Tensor, kernels: Tensor) -> None:
        """w = softmax(max_k tanh(conv(M))), M (batch * L + 1, C), kernels (products, >= C, K)."""
        rows = similarity.index_select(0, self.rows)
        scores = self.filtering.convolve(rows, kernels[:, : rows.shape[1]])  # (places, K)
        # numpy's argmax is six times as fast as torch's
        at = torch.from_numpy(scores.numpy().argmax(1)) if scores.is_cpu else scores.argmax(1)
        best = scores.gather(1, at.unsqueeze(1)).squeeze(1)
        self.winner = pad(at.index_select(0, self.place), (0, 1))
        self.scores = torch.tanh(best.index_select(0, self.place).view(self.mask.shape))
        # a text without a word has a weight of zero everywhere, not a uniform one
        masked = self.scores.masked_fill(~self.mask, MASKED)
        self.weights = torch.softmax(masked, dim=1) * self.mask

    def back(
        self,
        gradient: Tensor,
        words: Tensor,
        similarity: Tensor,
        kernels: Tensor,
        to_kernels: Tensor,
    ) -> Tensor:
        """From the gradient of x~ (batch, d) to that of M, (batch, L, C); adds that of U.

        ``similarity`` is M (batch * L + 1, C), kernels and ``to_kernels`` (K, width, at least C).
        """
        (batch, longest), (count, width), channels = (
            self.mask.shape,
            kernels.shape[:2],
            similarity.shape[1],
        )
        to_weights = (gradient.unsqueeze(1) @ words.transpose(1, 2)).squeeze(1)  # (batch, L)
        to_scores = self.weights * to_weights
        to_scores -= self.weights * to_scores.sum(dim=1, keepdim=True)
        to_scores *= 1 - self.scores.square()
        to_best = pad(to_scores.flatten(), (0, 1))
        # the words of the phrase around each word: (batch * L, width)
        place = torch.arange(batch * longest, device=words.device).view(batch, longest)
        phrase = pad(place, (width // 2,) * 2, value=batch * longest).unfold(1, width, 1)
        phrase = phrase.reshape(-1, width)
        # a kernel gets the phrases that it won
        winner = self.winner[:-1].cpu().numpy()
        order = torch.from_numpy(np.argsort(winner.astype(np.min_scalar_type(count)), kind="stable"))
        won = np.bincount(winner, minlength=count)
        bags = torch.from_numpy((np.cumsum(won) - won) + len(winner) * np.arange(width)[:, None])
        found = embedding_bag(
            phrase.index_select(0, order).T.flatten(),
            similarity,
            bags.flatten(),
            mode="sum",
            per_sample_weights=to_best.index_select(0, order).repeat(width),
        )
        to_kernels[:, :, :channels] += found.view(width, count, channels).transpose(0, 1)
        # a word gets the kernels that won the phrases it is in
        near = phrase.flatten()
        at = self.winner.index_select(0, near).view(-1, width) * width
        at += torch.arange(width - 1, -1, -1, device=words.device)
        # what is no word gets a gradient that is not its own: its vector is zero, and stays so
        return embedding_bag(
            at,
            kernels[:, :, :channels].reshape(-1, channels),
            mode="sum",
            per_sample_weights=to_best.index_select(0, near).view(-1, width),
        ).view(batch, longest, channels)


class _Part:
    """The alignment of some pairs, and its way back."""

    def __init__(
        self, words: Tensor, kernels: Tensor, texts: Texts, filtering: Filtering, learns: bool
    ) -> None:
        """``kernels`` as the filtering has them; what only `back` needs is kept if it ``learns``."""
        self.i, self.j = (_Side(tokens, filtering) for tokens in texts)
        words_i, words_j = _vectors(words, texts[0]), _vectors(words, texts[1])
        rows_i, similarity = _with_empty_row(words_i, texts[1].shape[1])
        torch.bmm(words_i, words_j.transpose(1, 2), out=similarity)
        self.i.weigh(rows_i, kernels)
        rows_j, turned = _with_empty_row(words_j, texts[0].shape[1])
        turned.copy_(similarity.transpose(1, 2))
        self.j.weigh(rows_j, kernels)
        if learns:
            self.words, self.rows = (words_i, words_j), (rows_i, rows_j)
        self.text_i = (self.i.weights.unsqueeze(1) @ words_i).squeeze(1)
        self.text_j = (self.j.weights.unsqueeze(1) @ words_j).squeeze(1)

    def back(self, gradients: Texts, kernels: Tensor, to_words: Tensor, to_kernels: Tensor) -> None:
        """Adds to the gradients of the words and of the kernels."""
        i, j = self.i, self.j
        to_similarity = i.back(gradients[0], self.words[0], self.rows[0], kernels, to_kernels)
        turned = j.back(gradients[1], self.words[1], self.rows[1], kernels, to_kernels)
        to_similarity += turned.transpose(1, 2)
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
        filtering = Filtering(kernels.shape[1], kernels)
        longest = max(tokens.shape[1] for texts in parts for tokens in texts)
        transformed = filtering.transformed(kernels[:, :, :longest])

        def work(share: Sequence[Texts]) -> list[_Part]:
            return [_Part(words, transformed, texts, filtering, learns) for texts in share]

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
