"""The neural integrator: from two texts and two structure embeddings to the posterior of a pair.

Section 3.2 of the paper. Its input is f_ij = [x~_i; x~_j; h_i; h_j]; its outputs are the means and
deviations of q1 and q0, the correlation γ_ij and the probability π_ij of a link. It is used once
for (i, j) and once for (j, i) with the same weights, so swapping the pair swaps the result.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vhe.config import VHEConfig
from vhe.pair.homophily import PairGaussian, limited_gamma, limited_log_variance

LOG_VARIANCE_START = -2.0
GAMMA_START = 2.0  # as a logit
LINK_SCALE_START, LINK_BIAS_START = 10.0, -5.0
TEXT_START = 0.1  # of A, beside B = 1: the structure embedding holds the text already


@dataclass(frozen=True)
class PairPosterior:
    """q(z_i, z_j, w_ij | x_i, x_j): both Gaussians and the logit of π_ij (batch,)."""

    linked: PairGaussian  # q1
    unlinked: PairGaussian  # q0
    link_logit: Tensor

    def mean_i(self, linked: Tensor) -> Tensor:
        """E[z_i] when the pair is linked with probability ``linked`` (batch,)."""
        return _mix(self.linked.mean_i, self.unlinked.mean_i, linked)

    def mean_j(self, linked: Tensor) -> Tensor:
        return _mix(self.linked.mean_j, self.unlinked.mean_j, linked)


def _mix(one: Tensor, other: Tensor, share: Tensor) -> Tensor:
    return other if one is other else other + share.unsqueeze(1) * (one - other)


def ends(both: Tensor) -> tuple[Tensor, Tensor]:
    """What belongs to the first ends of the pairs, and to the second ones."""
    first, second = both.unflatten(0, (2, len(both) // 2)).unbind()  # gradients in one piece
    return first, second


class Integrator(nn.Module):
    """An MLP with one tanh layer; with ``residual`` its means are added to A x~ + B h."""

    def __init__(self, config: VHEConfig) -> None:
        super().__init__()
        d, hidden = config.latent_dim, config.hidden_dim
        structure = 0 if config.structure == "none" else config.structure_dim
        self.shared_posterior = config.shared_posterior
        # A residual mean reads its own vertex only: what an MLP over both ends learns about the
        # pair is lost when the embedding is averaged over other contexts.
        self.own = config.residual
        ends = 1 if self.own else 2
        self.hidden = nn.Linear(ends * (config.word_dim + structure), hidden)
        self.means = nn.Linear(hidden, d)
        self.log_variances = nn.Linear(hidden, d)
        self.gamma = nn.Linear(hidden, d)
        if not config.shared_posterior:
            self.means_unlinked = nn.Linear(hidden, d)
            self.log_variances_unlinked = nn.Linear(hidden, d)
        self.text: nn.Linear | None = None
        self.structure: nn.Linear | None = None
        if config.residual:
            self.text = nn.Linear(config.word_dim, d)  # A
            if structure:
                self.structure = nn.Linear(structure, d, bias=False)  # B
        self.link: nn.Linear | None = None
        if config.link_posterior == "mlp":
            self.link = nn.Linear(hidden, 1)
        else:
            self.link_scale = nn.Parameter(torch.tensor(LINK_SCALE_START).log())
            self.link_bias = nn.Parameter(torch.tensor(LINK_BIAS_START))

    @torch.no_grad()
    def start(self, center: Tensor, scale: float) -> None:
        """Residual means start at the text, centred and scaled, plus the structure embedding."""
        self.log_variances.bias.fill_(LOG_VARIANCE_START)
        self.gamma.bias.fill_(GAMMA_START)
        if self.text is not None:
            share = (TEXT_START if self.structure is not None else 1.0) / scale
            nn.init.eye_(self.text.weight).mul_(share)
            self.text.bias.copy_(-share * center / 2)
            nn.init.zeros_(self.means.weight)
        if self.structure is not None:
            nn.init.eye_(self.structure.weight)

    def forward(self, text_i: Tensor, text_j: Tensor, h_i: Tensor, h_j: Tensor) -> PairPosterior:
        """Texts (batch, d_w) and structure embeddings (batch, d_h) of the pairs."""
        # both ends at once: those of all first ends, then those of all second ends
        text, h = torch.cat([text_i, text_j]), torch.cat([h_i, h_j])
        seen = [text, h]
        if not self.own:
            seen = [text, torch.cat([text_j, text_i]), h, torch.cat([h_j, h_i])]
        hidden = torch.tanh(self.hidden(torch.cat(seen, dim=1)))
        base, both = self._base(text, h), sum(ends(hidden)) / 2
        linked = PairGaussian(
            *ends(self.means(hidden) + base),
            *ends(limited_log_variance(self.log_variances(hidden))),
            limited_gamma(self.gamma(both)),
        )
        unlinked = linked.uncorrelated()
        if not self.shared_posterior:
            unlinked = PairGaussian(
                *ends(self.means_unlinked(hidden) + base),
                *ends(limited_log_variance(self.log_variances_unlinked(hidden))),
            )
        if self.link is not None:
            logit = self.link(both).squeeze(1)
        else:
            cosine = nn.functional.cosine_similarity(linked.mean_i, linked.mean_j)
            logit = self.link_scale.exp() * cosine + self.link_bias
        return PairPosterior(linked, unlinked, logit)

    def _base(self, text: Tensor, h: Tensor) -> Tensor | float:
        if self.text is None:
            return 0.0
        base: Tensor = self.text(text)
        return base if self.structure is None else base + self.structure(h)
