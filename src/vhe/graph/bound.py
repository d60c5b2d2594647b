"""The evidence lower bound of the joint model: what all codes together make of all texts.

The model, for each latent dimension, s the link_strength of the links, Λ_i the precision of a text:

    z ~ p = N(0, Q⁻¹),  Q = τ diag(Λ) + Laplacian(s);    m_i | z_i ~ N((1-τ) z_i, (1-τ) / Λ_i).

`graph_prior` alone has an improper prior: nothing says where all codes are, only that linked ones
are near. Here the prior keeps a share τ of the precision Λ_i of each vertex and the text has the
rest, so that A = diag(Λ) + Laplacian(s) and the posterior N(A⁻¹ Λ m, A⁻¹) are what they are there,
whatever τ is. For two linked vertices with τ Λ = 1/(1+λ) and s = λ/(1-λ²) the prior is the paper's
p1, and the KL that of `homophily.kl_to_prior`.

q is the prior times one Gaussian potential a text (Johnson et al. 2016), N(μ, B⁻¹) with B and Q
apart on the diagonal only; L = E_q[log p(m | z)] - KL(q || p) ≤ log p(m), with equality at the
posterior. The word vectors make m, so they can raise L without explaining anything, by making all
codes alike: the target moves. At fixed words L compares settings of the prior; it is not there to
be maximised over words.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import torch
from torch import Tensor

from vhe.graph.prior import Coupling

SHARE = 0.5  # τ: what the prior keeps of the precision of a vertex
EXACT = 1_500  # vertices up to which matrices are factored: a tenth of a second
PROBES, STEPS = 32, 16  # random vectors, and steps from each, for the determinants beyond


@dataclass(frozen=True)
class GraphBound:
    """The terms of the bound, in nats a vertex."""

    reconstruction: float  # E_q[log p(m | z)]
    kl: float  # KL(q || p)

    @property
    def total(self) -> float:
        return self.reconstruction - self.kl

    def record(self) -> dict[str, float]:
        return {"total": self.total, **asdict(self)}


def graph_bound(
    codes: Tensor,
    mean: Tensor,
    posterior: Coupling,
    seed: int,
    *,
    q: Coupling | None = None,
    share: float = SHARE,
) -> GraphBound:
    """The bound for the codes m (n, d) of the texts and q = N(mean, B⁻¹), mean (n, d).

    ``posterior`` is the A of the model; ``q`` is B, the posterior's own when left out.
    """
    prior, q = prior_of(posterior, share), q or posterior
    n, d = codes.shape
    certainty = posterior.precision / (1 - share)  # of m given z, (n, 1)
    variance = variances(q, seed)
    error = (codes - (1 - share) * mean).square().sum(dim=1, keepdim=True)
    error = error + d * (1 - share) ** 2 * variance
    likely = d * (certainty.log() - math.log(2 * math.pi)) - certainty * error
    # Q B⁻¹ = I - (B - Q) B⁻¹, and B - Q is diagonal
    volume = log_determinant(q, seed) - log_determinant(prior, seed)
    trace = ((q.diagonal - prior.diagonal) * variance).sum(dtype=torch.float64)
    apart = d * (volume - trace) + (mean * prior.times(mean)).sum(dtype=torch.float64)
    return GraphBound(float(likely.sum(dtype=torch.float64)) / (2 * n), float(apart) / (2 * n))


def prior_of(posterior: Coupling, share: float) -> Coupling:
    """Q, given A: the same links, a share of the precision."""
    total = posterior.diagonal - posterior.precision
    return Coupling(posterior.matrix, share * posterior.precision, total)


def variances(coupling: Coupling, seed: int) -> Tensor:
    """The diagonal of the inverse of a coupling: (n, 1)."""
    if len(coupling.diagonal) > EXACT:
        return coupling.variance(seed).unsqueeze(1)
    return torch.cholesky_inverse(_factor(coupling)).diagonal().to(coupling.diagonal).unsqueeze(1)


def log_determinant(coupling: Coupling, seed: int) -> Tensor:
    if len(coupling.diagonal) > EXACT:
        return lanczos_log_determinant(coupling, seed)
    return 2 * _factor(coupling).diagonal().log().sum()


def _factor(coupling: Coupling) -> Tensor:
    """The Cholesky factor, dense."""
    unit = torch.eye(len(coupling.diagonal)).to(coupling.diagonal)
    factor: Tensor = torch.linalg.cholesky(coupling.times(unit).double())
    return factor


def lanczos_log_determinant(
    coupling: Coupling, seed: int, probes: int = PROBES, steps: int = STEPS
) -> Tensor:
    """log|A| by stochastic Lanczos quadrature (Ubaru, Chen and Saad 2017), in linear memory.

    Of the matrix with a unit diagonal, S = D^-½ A D^-½, log|S| = n E[vᵀ log(S) v] over random
    signs v of unit length; steps of Lanczos from v give nodes and weights of a Gauss quadrature
    for each. No node lies below the least share of Λ_i in A_ii (Gershgorin).
    """
    shape = (len(coupling.diagonal), probes)
    signs = torch.randint(2, shape, generator=torch.Generator().manual_seed(seed)) * 2.0 - 1
    scale = coupling.diagonal.rsqrt()
    v = signs.to(scale) / shape[0] ** 0.5
    before, off = torch.zeros_like(v), v.new_zeros(probes)
    table = v.new_zeros(steps + 1, steps + 1, probes)  # the tridiagonal matrix of each probe
    for k in range(steps):
        image = scale * coupling.times(scale * v) - off * before
        table[k, k] = (v * image).sum(dim=0)
        image -= table[k, k] * v
        off = table[k, k + 1] = table[k + 1, k] = image.norm(dim=0)
        before, v = v, image / off.clamp(min=1e-30)  # 0 where the quadrature is exact already
    nodes, vectors = torch.linalg.eigh(table[:steps, :steps].permute(2, 0, 1).double())
    logs = nodes.clamp(min=float((coupling.precision / coupling.diagonal).min())).log()
    found = shape[0] * (vectors[:, 0].square() * logs).sum(dim=1).mean()
    return found + coupling.diagonal.log().sum(dtype=torch.float64)
