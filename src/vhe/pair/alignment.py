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
It is done on rows without padding, for a whole batch in one function of autograd, and with fewer
products than that by minimal filtering (`filtering.py`): on a processor by `alignment.c`
(`compiled_alignment.py`), elsewhere by the operations of torch below.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag, pad

from vhe.data.text import PADDING
from vhe.pair import native_alignment as compiled_alignment
from vhe.pair.filtering import Filtering
from vhe.pair.packed_tokens import PackedTokens, Texts

MASKED = -1e9  # the score of a place that holds no word


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
        filled = [texts for texts in parts if len(texts[0])]
        if not filled:
            return Aligned(words[:0], words[:0], [_no_weights(texts) for texts in parts])
        filtering = Filtering(self.kernels.shape[1], self.kernels)
        places: compiled_alignment.PackedPairs | _Sides
        if compiled_alignment.is_available(words, filtering):
            places = compiled_alignment.PackedPairs(words, self.kernels, filled, filtering)
            text_i, text_j = compiled_alignment.Align.apply(words, self.kernels, places)
        else:
            places = _Sides(filled, filtering)
            learns = torch.is_grad_enabled()
            text_i, text_j = _Align.apply(words, self.kernels, places, learns)
        found = zip(*places.split(places.weights), strict=True)
        weights = [next(found) if len(texts[0]) else _no_weights(texts) for texts in parts]
        return Aligned(text_i, text_j, weights)


class _Sides(PackedTokens):
    """The places of a batch as the convolution wants them.

    What is small is done for all of them at once, what is large for one part after the other. The
    rows of M of a side lie in blocks of as many rows as a tile has, with half a kernel of zero
    rows around each text, so that no tile reads from two texts and hardly any padding is computed.
    The first rows of all blocks come first, then the second ones: so a transform is one product.
    """

    scores: Tensor  # (places,)  tanh of the winner
    winner: Tensor  # (places + 1,)  which kernel; the last is for where there is no place
    weights: Tensor  # (places,)  w

    def __init__(self, parts: Sequence[Texts], filtering: Filtering) -> None:
        super().__init__(parts)
        self.filtering = filtering
        tile, reach, half = filtering.tile, filtering.reach, filtering.width // 2
        length, texts = self.length.clip(1), self.texts
        blocks = -(-length // tile) + reach
        counts = np.add.reduceat(blocks, np.cumsum(texts) - texts)  # of each side
        before = np.cumsum(counts) - counts
        start = np.cumsum(blocks) - blocks - before[self.side]  # the first block of each text
        inside = np.flatnonzero(self.position < length[self.text])
        text, self.starts = self.text[inside], np.cumsum(self.sizes) - self.sizes
        at = self.side[text]
        place = tile * start[text] + self.position[inside]
        # which row of M is in each row, the one after the last where none is
        block, row = np.divmod(place + half, tile)
        rows = np.repeat(self.sizes, tile * counts)
        rows[tile * before[at] + row * counts[at] + block] = inside - self.starts[at]
        self.rows = self.tensor(rows).split((tile * counts).tolist())
        # where each place is among the outputs; what is no word is anywhere
        block, row = np.divmod(place, tile)
        tiles, outputs = counts - reach, np.zeros(len(self.tokens), dtype=np.int64)
        before = tile * (np.cumsum(tiles) - tiles)
        outputs[inside] = before[at] + row * tiles[at] + block
        self.outputs = self.tensor(outputs)

    def weigh(self, words: Tensor, best: Tensor, winner: Tensor) -> Tensor:
        """The texts (2 pairs, d) by w = softmax(tanh(.)), from the scores and kernels that won."""
        self.winner = pad(winner.index_select(0, self.outputs), (0, 1))
        text, mask = self.tensor(self.text), self.tensor(self.mask)
        self.scores = torch.tanh(best.index_select(0, self.outputs)).masked_fill(~mask, 0)
        # tanh is small: no need to take the maximum off. A text without a word weighs nothing.
        weight = self.scores.exp() * mask
        total = weight.new_zeros(len(self.first)).index_add_(0, text, weight).clamp(min=0.1)
        self.weights = weight / total.index_select(0, text)
        return embedding_bag(
            self.tokens,
            words,
            self.tensor(self.first),
            mode="sum",
            per_sample_weights=self.weights,
        )

    def back(self, to_weights: Tensor, kernels: int) -> list[tuple[_Bags, _Bags]]:
        """Of each side the phrases that each kernel won, and the kernels that won around each word.

        ``to_weights`` (places,) is the gradient of w.
        """
        width, text = self.filtering.width, self.tensor(self.text)
        to_best = self.weights * to_weights
        mean = to_best.new_zeros(len(self.first)).index_add_(0, text, to_best)
        to_best -= self.weights * mean.index_select(0, text)
        to_best = pad(to_best * (1 - self.scores.square()), (0, 1))
        # the places of the phrase around each place, and whether there are such: (places, width)
        offset = np.arange(width, dtype=np.int32) - np.int32(width // 2)
        at = self.position.astype(np.int32)[:, None] + offset
        exists = (at >= 0) & (at < self.width[self.text].astype(np.int32)[:, None])
        phrase = np.arange(len(at), dtype=np.int32)[:, None] + offset
        near = self.tensor(np.where(exists, phrase, np.int32(len(at))).ravel())
        kernel = self.winner.index_select(0, near).view(-1, width) * width
        kernel += torch.arange(width - 1, -1, -1, device=kernel.device)
        share = to_best.index_select(0, near).view(-1, width)
        # the places of each side by their winner, and where those of each kernel begin
        side = np.repeat(np.arange(len(self.sizes)), self.sizes)
        key = side * kernels + self.winner[:-1].cpu().numpy()
        most = len(self.sizes) * kernels
        order = np.argsort(key.astype(np.min_scalar_type(most)), kind="stable")
        won = np.bincount(key, minlength=most).reshape(-1, kernels)
        begin = (np.cumsum(won, axis=1) - won).astype(np.int32)
        exists, phrase, to_best = exists[order], phrase[order], to_best[self.tensor(order)]
        found: list[tuple[_Bags, _Bags]] = []
        for k, (start, size) in enumerate(
            zip(self.starts, self.sizes.astype(np.int32), strict=True)
        ):
            here = slice(start, start + size)
            rows = np.where(exists[here], phrase[here] - np.int32(start), size).T.ravel()
            begins = (begin[k] + size * np.arange(width, dtype=np.int32)[:, None]).ravel()
            phrases = self.tensor(rows), self.tensor(begins), to_best[here].repeat(width)
            found.append((phrases, (kernel[here], None, share[here])))
        return found


class _Part:
    """M of some pairs, the best that its convolution gives, and the way back."""

    def __init__(
        self, words: Tensor, kernels: Tensor, texts: Texts, rows: Texts, sides: _Sides, learns: bool
    ) -> None:
        """``kernels`` as the filtering has them; ``rows`` say how it wants those of M.

        What only `back` needs is kept if it ``learns``.
        """
        words_i, words_j = _vectors(words, texts[0]), _vectors(words, texts[1])
        rows_i, similarity = _with_empty_row(words_i, texts[1].shape[1])
        rows_j, turned = _with_empty_row(words_j, texts[0].shape[1])
        torch.bmm(words_i, words_j.transpose(1, 2), out=similarity)
        turned.copy_(similarity.transpose(1, 2))
        if learns:
            self.words, self.similarity = (words_i, words_j), (rows_i, rows_j)
        convolve = sides.filtering.convolve
        self.won = [
            _won(convolve(table.index_select(0, at), kernels[:, : table.shape[1]]))
            for table, at in zip((rows_i, rows_j), rows, strict=True)
        ]

    def back(
        self,
        texts: Texts,
        direct: Texts,
        bags: Sequence[tuple[_Bags, _Bags]],
        kernels: Tensor,
        to_words: Tensor,
        to_kernels: Tensor,
    ) -> None:
        """Adds to the gradients of the words (V, d) and of the kernels (width, K, longest).

        ``direct`` is what the words get from x~ itself, (batch, L, d) of each side.
        """
        found = []
        for table, (phrases, winners) in zip(self.similarity, bags, strict=True):
            channels = table.shape[1]
            to_kernels[:, :, :channels] += _summed(table, phrases).view(
                *to_kernels.shape[:2], channels
            )
            cut = kernels[:, :, :channels].reshape(-1, channels)
            # what is no word gets a gradient that is not its own: its vector is zero, and stays so
            found.append(_summed(cut, winners))
        (words_i, words_j), (to_i, to_j) = self.words, direct
        to_similarity = found[0].view(len(words_i), words_i.shape[1], -1)
        to_similarity += found[1].view(len(words_j), words_j.shape[1], -1).transpose(1, 2)
        to_i.baddbmm_(to_similarity, words_j)
        to_j.baddbmm_(to_similarity.transpose(1, 2), words_i)
        for tokens, to_each in zip(texts, direct, strict=True):
            to_words.index_add_(0, tokens.flatten(), to_each.flatten(0, 1))


class _Align(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, words: Tensor, kernels: Tensor, sides: _Sides, learns: bool) -> Texts:
        parts = sides.parts
        longest = max(tokens.shape[1] for texts in parts for tokens in texts)
        transformed = sides.filtering.transformed(kernels[:, :, :longest])
        rows = zip(sides.rows[: len(parts)], sides.rows[len(parts) :], strict=True)
        done = [
            _Part(words, transformed, texts, of_part, sides, learns)
            for texts, of_part in zip(parts, rows, strict=True)
        ]
        won = [part.won[k] for k in (0, 1) for part in done]
        best, winner = (torch.cat(each) for each in zip(*won, strict=True))
        texts = sides.weigh(words, best, winner)
        if learns:
            ctx.save_for_backward(words, kernels)
            ctx.parts, ctx.sides = done, sides
        text_i, text_j = texts.chunk(2)
        return text_i, text_j

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        words, kernels = ctx.saved_tensors
        sides, parts = ctx.sides, ctx.parts
        gradient = torch.cat(gradients)
        each = gradient.unsqueeze(1).split(sides.texts.tolist())  # of each side
        vectors = [part.words[k].transpose(1, 2) for k in (0, 1) for part in parts]
        # this way round a product with a vector takes a quarter of the time
        to_weights = torch.cat([(g @ x).flatten() for g, x in zip(each, vectors, strict=True)])
        bags = sides.back(to_weights, len(kernels))
        weights = [w for k in sides.split(sides.weights) for w in k]
        count, width, longest = kernels.shape
        to_words, to_kernels = torch.zeros_like(words), kernels.new_zeros(width, count, longest)
        for k, part in enumerate(parts):
            both = k, k + len(parts)
            direct = tuple(weights[n].unsqueeze(2) * each[n] for n in both)
            bags_of = [bags[n] for n in both]
            part.back(sides.parts[k], direct, bags_of, kernels, to_words, to_kernels)
        to_words[PADDING] = 0
        return to_words, to_kernels.transpose(0, 1), None, None


def _no_weights(texts: Texts) -> Texts:
    first, second = (torch.zeros_like(tokens, dtype=torch.float32) for tokens in texts)
    return first, second


def _won(scores: Tensor) -> Texts:
    """The best of scores (places, K) of each place, and whose it is."""
    # numpy's argmax is six times as fast as torch's
    at = torch.from_numpy(scores.numpy().argmax(1)) if scores.is_cpu else scores.argmax(1)
    return scores.gather(1, at.unsqueeze(1)).squeeze(1), at


_Bags = tuple[Tensor, Tensor | None, Tensor]  # rows of a table, where each bag begins, their shares


def _summed(table: Tensor, bags: _Bags) -> Tensor:
    """The sum of each bag of rows of a table."""
    rows, begin, shares = bags
    return embedding_bag(rows, table, begin, mode="sum", per_sample_weights=shares)


def _vectors(words: Tensor, tokens: Tensor) -> Tensor:
    """`words[tokens]`, which takes five times as long."""
    return words.index_select(0, tokens.flatten()).view(*tokens.shape, words.shape[1])


def _with_empty_row(words: Tensor, channels: int) -> Texts:
    """Room for rows of M for all words (batch, L, .) and an empty row after them; and as M."""
    batch, longest = words.shape[:2]
    rows = words.new_empty(batch * longest + 1, channels)
    rows[-1] = 0
    return rows, rows[:-1].view(batch, longest, channels)
