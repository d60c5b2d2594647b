"""The homophilic prior: the latent codes of linked vertices are correlated.

Section 3.1 and appendix A of the paper. For a linked pair and each latent dimension

    p1 = N(0, [[1, λ], [λ, 1]]),    q1 = N([μ_i, μ_j], [[σ_i², γσ_iσ_j], [γσ_iσ_j, σ_j²]]),

and for an unlinked pair p0, q0 are the same with λ = γ = 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

GAMMA_MOST = 0.999  # keeps log(1 - γ²) finite
LOG_VARIANCE = (-10.0, 4.0)  # range of log σ²


@dataclass(frozen=True)
class PairGaussian:
    """A Gaussian over the codes (z_i, z_j) of a pair, independent across dimensions.

    All tensors are (batch, d); ``gamma`` is the correlation, None for q0.
    """

    mean_i: Tensor
    mean_j: Tensor
    log_variance_i: Tensor
    log_variance_j: Tensor
    gamma: Tensor | None = None


def sample(q: PairGaussian, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
    """Draw (z_i, z_j) by the Cholesky factor of the covariance (equations 5 and 6).

    z_i = μ_i + σ_i ε_1,   z_j = μ_j + σ_j (γ ε_1 + sqrt(1 - γ²) ε_2)
    """
    shape, kind = q.mean_i.shape, {"dtype": q.mean_i.dtype, "device": q.mean_i.device}
    first = torch.randn(shape, generator=generator, **kind)  # type: ignore[call-overload]
    second = torch.randn(shape, generator=generator, **kind)  # type: ignore[call-overload]
    if q.gamma is not None:
        second = q.gamma * first + torch.sqrt((1 - q.gamma) * (1 + q.gamma)) * second
    z_i = q.mean_i + torch.exp(q.log_variance_i / 2) * first
    z_j = q.mean_j + torch.exp(q.log_variance_j / 2) * second
    return z_i, z_j


def kl_to_prior(q: PairGaussian, homophily: float) -> Tensor:
    """KL(q || N(0, [[I, λI], [λI, I]])) in closed form (appendix A): (batch,).

    ½ Σ_d [ log(1-λ²) - log(1-γ²) - log σ_i² - log σ_j² - 2
            + (σ_i² + σ_j² - 2λγσ_iσ_j)/(1-λ²) + (μ_i² + μ_j² - 2λμ_iμ_j)/(1-λ²) ]

    Both fractions are written as a squared difference and a remainder without cancellation, so that
    they stay exact when λ is near 1 and the two codes agree. KL(q0 || p0) is the case λ = γ = 0.
    """
    lam = float(homophily)
    if q.gamma is None and lam == 0:  # the same formula in fewer operations
        codes = (q.mean_i, q.log_variance_i), (q.mean_j, q.log_variance_j)
        each = [(mean.square() + value.exp() - value - 1).sum(dim=1) for mean, value in codes]
        return (each[0] + each[1]) / 2
    free = (1 - lam) * (1 + lam)  # 1 - λ²
    gamma = torch.zeros_like(q.mean_i) if q.gamma is None else q.gamma
    sigma_i, sigma_j = torch.exp(q.log_variance_i / 2), torch.exp(q.log_variance_j / 2)
    spread = (sigma_i - sigma_j).square() + sigma_i * sigma_j * (2 - 2 * lam * gamma)
    apart, along = (q.mean_i - q.mean_j).square(), q.mean_i * q.mean_j
    logs = torch.log1p(-gamma * gamma) + q.log_variance_i + q.log_variance_j
    quadratic = (spread + apart).sum(dim=1) / free + along.sum(dim=1) * (2 / (1 + lam))
    return (gamma.shape[1] * (math.log(free) - 2) - logs.sum(dim=1) + quadratic) / 2


def kl_bernoulli(logit: Tensor, prior: float) -> Tensor:
    """KL(Bernoulli(π) || Bernoulli(π_0)) with π = sigmoid(logit), finite for any logit."""
    prior_logit = torch.logit(torch.tensor(prior, dtype=logit.dtype, device=logit.device))
    yes, no = torch.sigmoid(logit), torch.sigmoid(-logit)
    return yes * (logsigmoid(logit) - logsigmoid(prior_logit)) + no * (
        softplus(prior_logit) - softplus(logit)
    )


def limited_gamma(logit: Tensor) -> Tensor:
    """γ in [0, 1) from an unbounded value."""
    return GAMMA_MOST * torch.sigmoid(logit)


def limited_log_variance(value: Tensor) -> Tensor:
    return value.clamp(*LOG_VARIANCE)
