"""The neural integrator: from two texts and two structure embeddings to the posterior of a pair.

Section 3.2 of the paper. Its outputs are the means and variances of q1 and q0, the correlation γ_ij
and the probability π_ij of a link. It is applied to (i, j) and to (j, i) with the same weights, so
that swapping its inputs swaps its outputs. There are two forms:

paper       an MLP of f_ij = [x~_i; x~_j; h_i; h_j] gives everything
residual    μ_i = A m(x~_i) + h_i + MLP([m(x~_i); h_i]),  initially A = I and MLP = 0
            m(x) = √d (x / ‖x‖ - s c),  c the mean of x / ‖x‖ over all texts (see `text.codes`)

A residual mean depends on its own vertex only, because what an MLP of both ends learns about one
pair averages out when an embedding is averaged over contexts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity

from vhe.config import PairVHEConfig
from vhe.pair.homophily import PairGaussian, limited_gamma, limited_log_variance
from vhe.text.lsa import CENTRE_SHARE

INITIAL_LOG_VARIANCE = -2.0
INITIAL_GAMMA = 2.0  # as a logit
INITIAL_LINK_SCALE, INITIAL_LINK_BIAS = 10.0, -5.0


@dataclass(frozen=True)
class PairPosterior:
    """q(z_i, z_j, w_ij | x_i, x_j): both Gaussians and the logit of π_ij (batch,)."""

    linked: PairGaussian  # q1
    unlinked: PairGaussian  # q0
    link_logit: Tensor


def ends(both: Tensor) -> tuple[Tensor, Tensor]:
    """The rows of the first ends of the pairs, and those of the second ends."""
    first, second = both.chunk(2)
    return first, second


def text_code(text: Tensor, centre: Tensor, fixed_length: bool = False) -> Tensor:
    """m(x) = √d (x / ‖x‖ - s c) of pooled texts (batch, d); zero for an empty text.

    With ``fixed_length`` no gradient passes through ‖x‖: m is then linear in x.
    """
    length = text.norm(dim=1, keepdim=True).clamp(min=1e-12)
    unit = text / (length.detach() if fixed_length else length)
    code = text.shape[1] ** 0.5 * (unit - CENTRE_SHARE * centre)
    return code * (text != 0).any(dim=1, keepdim=True)


class Integrator(nn.Module):
    """An MLP with one tanh layer; see the two forms above."""

    centre: Tensor

    def __init__(self, config: PairVHEConfig) -> None:
        super().__init__()
        d, hidden = config.latent_dim, config.hidden_dim
        structure = 0 if config.structure == "none" else config.structure_dim
        self.shared_posterior, self.residual = config.shared_posterior, config.residual
        inputs = (1 if config.residual else 2) * (config.word_dim + structure)
        self.hidden = nn.Linear(inputs, hidden)
        self.means = nn.Linear(hidden, d)
        self.log_variances = nn.Linear(hidden, d)
        self.gamma = nn.Linear(hidden, d)
        if not config.shared_posterior:
            self.means_unlinked = nn.Linear(hidden, d)
            self.log_variances_unlinked = nn.Linear(hidden, d)
        if config.residual:
            self.text = nn.Linear(config.word_dim, d, bias=False)  # A
        self.link: nn.Linear | None = None
        if config.link_posterior == "mlp":
            self.link = nn.Linear(hidden, 1)
        else:
            self.log_link_scale = nn.Parameter(torch.tensor(INITIAL_LINK_SCALE).log())
            self.link_bias = nn.Parameter(torch.tensor(INITIAL_LINK_BIAS))
        self.register_buffer("centre", torch.zeros(config.word_dim))  # c

    @torch.no_grad()
    def initialise(self, centre: Tensor) -> None:
        """Set what does not start at random; ``centre`` (d_w,) is c."""
        self.centre.copy_(centre)
        self.log_variances.bias.fill_(INITIAL_LOG_VARIANCE)
        self.gamma.bias.fill_(INITIAL_GAMMA)
        if self.residual:
            nn.init.eye_(self.text.weight)
            nn.init.zeros_(self.means.weight)
            if not self.shared_posterior:
                nn.init.zeros_(self.means_unlinked.weight)

    def forward(self, text_i: Tensor, text_j: Tensor, h_i: Tensor, h_j: Tensor) -> PairPosterior:
        """Texts x~ (batch, d_w) and structure embeddings (batch, d_h) of the pairs."""
        text, h = torch.cat([text_i, text_j]), torch.cat([h_i, h_j])
        return self.posterior(text, text_code(text, self.centre), h)

    def posterior(self, text: Tensor, code: Tensor, h: Tensor) -> PairPosterior:
        """The posterior from texts x~, their codes m(x~) and structure embeddings.

        Each has two rows per pair: the first ends of all pairs, then the second ends.
        """
        base: Tensor | float = 0.0
        if self.residual:
            inputs = [code, h]
            base = self.text(code) + h if h.shape[1] else self.text(code)
        else:
            inputs = [text, text.roll(len(text) // 2, 0), h, h.roll(len(h) // 2, 0)]
        hidden = torch.tanh(self.hidden(torch.cat(inputs, dim=1)))
        both = sum(ends(hidden)) / 2
        linked = PairGaussian(
            *ends(self.means(hidden) + base),
            *ends(limited_log_variance(self.log_variances(hidden))),
            limited_gamma(self.gamma(both)),
        )
        unlinked = replace(linked, gamma=None)
        if not self.shared_posterior:
            unlinked = PairGaussian(
                *ends(self.means_unlinked(hidden) + base),
                *ends(limited_log_variance(self.log_variances_unlinked(hidden))),
            )
        if self.link is not None:
            logit = self.link(both).squeeze(1)
        else:
            cosine = cosine_similarity(*ends(code))
            logit = self.log_link_scale.exp() * cosine + self.link_bias
        return PairPosterior(linked, unlinked, logit)
