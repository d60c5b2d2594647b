"""Phrase-to-word alignment: which words of a text matter in the context of another text.

Section 3.2 and appendix B of the paper. With word vectors x_i (L_i, d) and x_j (L_j, d):

    M = x_i x_j^T                       (L_i, L_j)  similarity of each word with each word
    F_i = tanh(conv1d(M; U))            (L_i, K)    over the positions of x_i, the positions of x_j
                                                    being the input channels
    F_j = tanh(conv1d(M^T; V))          (L_j, K)    the same with the texts exchanged
    w_i = softmax(max_k F_i)            (L_i,)      the weight of each word
    x~_i = w_i^T x_i                    (d,)        the text in the context of the other

tanh is increasing, so max_k tanh(.) = tanh(max_k .): the maximum is taken first, and the gradient
passes through one kernel per position. On a CPU `native/alignment.c` does the work
(`native_alignment.py`); elsewhere the operations of torch below.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import conv1d, embedding

from vhe.data.text import PADDING
from vhe.pair import native_alignment
from vhe.pair.packed_tokens import Texts

MASKED = -1e9  # the score of a position without a word


@dataclass(frozen=True)
class Aligned:
    """The alignment of pairs of texts, the parts of a batch concatenated."""

    text_i: Tensor  # (pairs, d)  x~_i
    text_j: Tensor  # (pairs, d)  x~_j
    weights: list[Texts]  # of each part, w_i (batch, L_i) and w_j; 0 where there is no word


class PhraseToWordAlignment(nn.Module):
    """The alignment of pairs of texts.

    Parameters
    ----------
    kernels : number of kernels for each side (the paper's K)
    width : words in a phrase
    max_words : length of the longest text
    shared : one set of kernels for both sides; swapping the texts then swaps the result
    """

    def __init__(self, kernels: int, width: int, max_words: int, shared: bool = False) -> None:
        super().__init__()
        # U and V: `kernels[side, k, t, q]` is multiplied by word q of the other text at offset t
        self.kernels = nn.Parameter(torch.empty(1 if shared else 2, kernels, width, max_words))

    def reset(self, generator: torch.Generator) -> None:
        bound = 1 / math.sqrt(self.kernels.shape[2] * self.kernels.shape[3])
        with torch.no_grad():
            self.kernels.uniform_(-bound, bound, generator=generator)

    def forward(self, words: Tensor, parts: Sequence[Texts]) -> Aligned:
        """Align the texts of pairs that come in parts, each of one or more pairs.

        ``words`` (V, d) are the vectors of the tokens; that of `PADDING` must be zero. Gradients
        pass through the texts only, not through the returned weights.
        """
        native = native_alignment.is_available(words, self.kernels)
        return Aligned(*(native_alignment.align if native else align)(words, self.kernels, parts))


def align(
    words: Tensor, kernels: Tensor, parts: Sequence[Texts]
) -> tuple[Tensor, Tensor, list[Texts]]:
    """The equations above on padded texts: x~_i and x~_j of all pairs, and weights of each part."""
    texts: tuple[list[Tensor], list[Tensor]] = ([], [])
    weights: list[Texts] = []
    for tokens in parts:
        vectors = [embedding(t, words, PADDING) for t in tokens]  # (batch, L, d)
        similarity = vectors[1] @ vectors[0].transpose(1, 2)  # M^T (batch, L_j, L_i)
        found = []
        for side, channels in enumerate((similarity, similarity.transpose(1, 2))):
            kernel = kernels[side % len(kernels)].transpose(1, 2)[:, : channels.shape[1]]
            scores = conv1d(channels, kernel, padding="same").max(dim=1).values.tanh()
            mask = tokens[side] != PADDING
            weight = torch.softmax(scores.masked_fill(~mask, MASKED), dim=1) * mask
            texts[side].append((weight.unsqueeze(1) @ vectors[side]).squeeze(1))
            found.append(weight.detach())
        weights.append((found[0], found[1]))
    return torch.cat(texts[0]), torch.cat(texts[1]), weights
