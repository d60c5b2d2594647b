"""The two decoders p(x | z) of section 3.2: of pooled word vectors, and of the words themselves."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vhe.config import VHEConfig

EMPTY = torch.finfo(torch.float32).min


def pool(words: Tensor, mask: Tensor, how: str) -> Tensor:
    """Pool word vectors (batch, L, d) into (batch, d); a text without a word gives zero."""
    if how == "mean":
        return words.sum(dim=1) / mask.sum(dim=1, keepdim=True).clamp(min=1)
    highest = words.masked_fill(~mask.unsqueeze(2), EMPTY).amax(dim=1)
    return torch.where(mask.any(dim=1, keepdim=True), highest, torch.zeros_like(highest))


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

    def target(self, words: Tensor, mask: Tensor) -> Tensor:
        if not self.fixed:
            return pool(words, mask, self.how)
        return (pool(words.detach(), mask, self.how) - self.center) / self.scale

    def log_likelihood(self, z: Tensor, words: Tensor, tokens: Tensor, mask: Tensor) -> Tensor:
        """Of texts with word vectors ``words`` (batch, L, d_w): (batch,)."""
        error = self.target(words, mask) - self.decoding(z)
        return -self.precision * error.square().sum(dim=1)


class MultinomialDecoder(nn.Module):
    """log p(x | z) = Σ over the words of a text of log softmax(f(z) E^T + b), E the words."""

    def __init__(self, config: VHEConfig, vocabulary: int) -> None:
        super().__init__()
        self.decoding = Decoding(config)
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def log_likelihood(self, z: Tensor, table: Tensor, tokens: Tensor, mask: Tensor) -> Tensor:
        """Of texts of words ``tokens`` (batch, L); ``table`` (V, d_w) has word t at t - 1."""
        if not len(table):  # no text has a word
            return z.new_zeros(len(z))
        logits = self.decoding(z) @ table.T + self.bias  # (batch, V)
        chosen = torch.log_softmax(logits, dim=1).gather(1, (tokens - 1).clamp(min=0))
        return (chosen * mask).sum(dim=1)
