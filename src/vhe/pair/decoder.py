"""The two decoders p(x | z) of section 3.2: of pooled word vectors, and of the words themselves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor, nn
from torch.nn.functional import embedding_bag

from vhe.config import VHEConfig
from vhe.data.text import PADDING
from vhe.runtime import native as compiled
from vhe.runtime.sparse import product, sparse_rows


def pool(words: Tensor, texts: Sequence[Tensor], how: str) -> Tensor:
    """The word vectors of texts (batch, L) of tokens pooled, part after part: (pairs, d).

    ``words`` (V, d) are the vectors of the tokens; a text without a word gives zero.
    """
    widths = np.repeat([t.shape[1] for t in texts], [len(t) for t in texts])
    tokens = torch.cat([t.flatten() for t in texts])
    if how == "mean" and compiled.is_available(words):  # in a third of the time
        speaks = np.flatnonzero(tokens != PADDING)
        starts = np.searchsorted(speaks, np.append(0, np.cumsum(widths)))
        lengths = np.diff(starts)
        share = np.repeat(1 / np.maximum(lengths, 1), lengths)
        each = share, tokens.numpy()[speaks], starts
        rows = csr_array(each, shape=(len(widths), len(words)))
        return product(sparse_rows(rows, tokens.device), words)
    begin = torch.from_numpy(np.cumsum(widths) - widths).to(tokens.device)
    return embedding_bag(tokens, words, begin, mode=how, padding_idx=PADDING)


class Decoding(nn.Module):
    """f(z): an MLP with one tanh layer, added to z itself where the codes start as texts."""

    def __init__(self, config: VHEConfig) -> None:
        super().__init__()
        self.hidden = nn.Linear(config.latent_dim, config.hidden_dim)
        self.out = nn.Linear(config.hidden_dim, config.word_dim)
        self.straight: nn.Linear | None = None
        if config.residual:
            self.straight = nn.Linear(config.latent_dim, config.word_dim)

    def start(self) -> None:
        if self.straight is not None:
            nn.init.eye_(self.straight.weight)
            nn.init.zeros_(self.out.weight)

    def forward(self, z: Tensor) -> Tensor:
        decoded: Tensor = self.out(torch.tanh(self.hidden(z)))
        return decoded if self.straight is None else decoded + self.straight(z)


class GaussianDecoder(nn.Module):
    """log p(x | z) = -precision · ||target - f(z)||².

    The target is the pooled word vectors. When it is fixed it is centred and brought to the scale
    of the prior, and passes no gradient on: the cheapest way to reconstruct it is to shrink it.
    """

    center: Tensor
    scale: Tensor

    def __init__(self, config: VHEConfig) -> None:
        super().__init__()
        self.how, self.fixed, self.precision = config.target, config.fixed_target, config.precision
        self.decoding = Decoding(config)
        self.register_buffer("center", torch.zeros(config.word_dim))
        self.register_buffer("scale", torch.ones(()))

    def target(self, words: Tensor, texts: Sequence[Tensor]) -> Tensor:
        if not self.fixed:
            return pool(words, texts, self.how)
        return (pool(words.detach(), texts, self.how) - self.center) / self.scale

    def log_likelihood(self, z: Tensor, words: Tensor, texts: Sequence[Tensor]) -> Tensor:
        """Of texts (batch, L) of tokens, which come in parts as z (pairs, d) does not: (pairs,)."""
        error = self.target(words, texts) - self.decoding(z)
        return -self.precision * error.square().sum(dim=1)


class MultinomialDecoder(nn.Module):
    """log p(x | z) = Σ over the words of a text of log softmax(f(z) E^T + b), E the words."""

    def __init__(self, config: VHEConfig, vocabulary: int) -> None:
        super().__init__()
        self.decoding = Decoding(config)
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def log_likelihood(self, z: Tensor, words: Tensor, texts: Sequence[Tensor]) -> Tensor:
        """Of texts (batch, L) of tokens, which come in parts as z (pairs, d) does not: (pairs,)."""
        if len(words) == 1:  # no text has a word
            return z.new_zeros(len(z))
        logits = self.decoding(z) @ words[PADDING + 1 :].T + self.bias  # (pairs, V)
        chances = torch.log_softmax(logits, dim=1).split([len(tokens) for tokens in texts])
        parts = [
            (chance.gather(1, (tokens - 1).clamp(min=0)) * (tokens != PADDING)).sum(dim=1)
            for chance, tokens in zip(chances, texts, strict=True)
        ]
        return torch.cat(parts)
