"""The two decoders p(x | z) of section 3.2: of pooled word vectors, and of the words themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag

from vhe.config import PairVHEConfig
from vhe.data.text import PADDING, Corpus
from vhe.pair.integrator import text_code

POOLED_AT_ONCE = 512  # texts of a corpus


def pool(words: Tensor, texts: Sequence[Tensor], how: str) -> Tensor:
    """The pooled word vectors of texts (batch, L) of tokens, the parts concatenated: (pairs, d).

    "max" is the maximum of each dimension; "mean" the mean over distinct words with the weights
    1 + log count. ``words`` (V, d) are the vectors of the tokens; an empty text gives zero.
    """
    if how == "max":
        widths = np.repeat([t.shape[1] for t in texts], [len(t) for t in texts])
        start = torch.from_numpy(np.cumsum(widths) - widths).to(words.device)
        tokens = torch.cat([t.flatten() for t in texts])
        return embedding_bag(tokens, words, start, mode="max", padding_idx=PADDING)
    parts = [_distinct_words(t.cpu().numpy()) for t in texts]
    lengths, tokens, weights = (
        torch.from_numpy(np.concatenate(arrays)).to(words.device)
        for arrays in zip(*parts, strict=True)
    )
    return embedding_bag(
        tokens,
        words,
        lengths.cumsum(0) - lengths,
        mode="sum",
        per_sample_weights=weights.to(words.dtype),
    )


def _distinct_words(tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Number of distinct words of each text (batch, L), the words, and their weights."""
    ordered = np.sort(tokens, axis=1)
    is_first = np.ones(tokens.shape, dtype=bool)
    is_first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    first = np.flatnonzero(is_first)
    count = np.diff(first, append=tokens.size)
    word = ordered.ravel()[first]
    first, count, word = (array[word != PADDING] for array in (first, count, word))
    text, weight = first // tokens.shape[1], 1 + np.log(count)
    total = np.bincount(text, weight, minlength=len(tokens))
    return np.bincount(text, minlength=len(tokens)), word, weight / total[text]


def pool_corpus(words: Tensor, corpus: Corpus, how: str) -> Iterator[Tensor]:
    """The pooled word vectors of all texts, some texts at a time."""
    for rows in np.array_split(np.arange(len(corpus)), len(corpus) // POOLED_AT_ONCE + 1):
        yield pool(words, [torch.from_numpy(corpus.padded(rows))], how)


class Decoding(nn.Module):
    """f(z): an MLP with one tanh layer; in a residual model it is added to D z, initially D = I."""

    def __init__(self, config: PairVHEConfig) -> None:
        super().__init__()
        self.hidden = nn.Linear(config.latent_dim, config.hidden_dim)
        self.out = nn.Linear(config.hidden_dim, config.word_dim)
        self.linear: nn.Linear | None = None
        if config.residual:
            self.linear = nn.Linear(config.latent_dim, config.word_dim, bias=False)

    @torch.no_grad()
    def initialise(self) -> None:
        if self.linear is not None:
            nn.init.eye_(self.linear.weight)
            nn.init.zeros_(self.out.weight)

    def forward(self, z: Tensor) -> Tensor:
        decoded: Tensor = self.out(torch.tanh(self.hidden(z)))
        return decoded if self.linear is None else decoded + self.linear(z)


class GaussianDecoder(nn.Module):
    """log p(x | z) = -ρ · ||target - f(z)||².

    The target is the pooled word vectors. With ``fixed_target`` it is their text code m (see
    `integrator`), without a gradient: a target that is trained would shrink towards zero, where its
    reconstruction error is smallest.
    """

    centre: Tensor

    def __init__(self, config: PairVHEConfig) -> None:
        super().__init__()
        self.how, self.fixed, self.precision = config.target, config.fixed_target, config.precision
        self.decoding = Decoding(config)
        self.register_buffer("centre", torch.zeros(config.word_dim))

    def target(self, words: Tensor, texts: Sequence[Tensor]) -> Tensor:
        if not self.fixed:
            return pool(words, texts, self.how)
        return text_code(pool(words.detach(), texts, self.how), self.centre)

    def log_likelihood(self, z: Tensor, words: Tensor, texts: Sequence[Tensor]) -> Tensor:
        """Of texts (batch, L) of tokens, in parts, given their codes z (pairs, d): (pairs,)."""
        error = self.target(words, texts) - self.decoding(z)
        return -self.precision * error.square().sum(dim=1)


class MultinomialDecoder(nn.Module):
    """log p(x | z) = Σ over the words of a text of log softmax(f(z) E^T + b), E the words."""

    def __init__(self, config: PairVHEConfig, vocabulary: int) -> None:
        super().__init__()
        self.decoding = Decoding(config)
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def log_likelihood(self, z: Tensor, words: Tensor, texts: Sequence[Tensor]) -> Tensor:
        """Of texts (batch, L) of tokens, in parts, given their codes z (pairs, d): (pairs,)."""
        if len(words) == 1:  # an empty vocabulary: zero, with (zero) gradients for all weights
            return 0 * self.decoding(z).sum(dim=1) + self.bias.sum()
        logits = self.decoding(z) @ words[PADDING + 1 :].T + self.bias  # (pairs, V)
        log_p = torch.log_softmax(logits, dim=1).split([len(tokens) for tokens in texts])
        parts = [
            (part.gather(1, (tokens - 1).clamp(min=0)) * (tokens != PADDING)).sum(dim=1)
            for part, tokens in zip(log_p, texts, strict=True)
        ]
        return torch.cat(parts)
