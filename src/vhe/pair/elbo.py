"""The evidence lower bound (ELBO) of a pair, with a known and with an unknown edge.

Known edge (equation 7):    L  = w (E_q1[log p(x|z)] - KL(q1||p1))
                               + (1-w) (E_q0[log p(x|z)] - KL(q0||p0))
Unknown edge (appendix A):  L~ = π (q1 branch) + (1-π) (q0 branch) - KL(Bern(π)||Bern(π_0))

Both are one formula: the weight of the q1 branch is w where the edge is known and π elsewhere.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from vhe.pair.homophily import kl_bernoulli


class Terms(dict[str, Tensor]):
    """The terms of an objective by name, (batch,) each; the history records their means."""

    def means(self) -> dict[str, float]:
        return {name: float(values.detach().mean()) for name, values in self.items()}


def log_bernoulli(w: Tensor, logit: Tensor) -> Tensor:
    """w log σ(logit) + (1 - w) log σ(-logit)."""
    return w * logsigmoid(logit) + (1 - w) * logsigmoid(-logit)


def elbo(
    *,
    links: Tensor,
    known: Tensor,
    link_logit: Tensor,
    reconstruction_linked: Tensor,
    reconstruction_unlinked: Tensor,
    kl_linked: Tensor,
    kl_unlinked: Tensor,
    pi0: float,
    fixed_pi: bool = False,
) -> Terms:
    """Combine the two branches; every tensor is (batch,).

    ``links`` is w (0 or 1), read only where ``known``; ``link_logit`` is the logit of π, through
    which the bound passes no gradient with ``fixed_pi``. The terms are

    bound           the ELBO: reconstruction - kl_linked - kl_unlinked - kl_edge
    reconstruction  E[log p(x_i, x_j | z_i, z_j)]
    kl_linked       (w or π) KL(q1 || p1)
    kl_unlinked     (1 - w or 1 - π) KL(q0 || p0)
    kl_edge         KL(Bern(π) || Bern(π_0)) where the edge is unknown
    link            log q(w | x) where the edge is known; not part of the bound
    """
    logit = link_logit.detach() if fixed_pi else link_logit
    pi = torch.sigmoid(logit)
    linked = torch.where(known, links, pi)
    unlinked = torch.where(known, 1 - links, 1 - pi)
    zero = torch.zeros_like(pi)
    terms = Terms(
        reconstruction=linked * reconstruction_linked + unlinked * reconstruction_unlinked,
        kl_linked=linked * kl_linked,
        kl_unlinked=unlinked * kl_unlinked,
        kl_edge=torch.where(known, zero, kl_bernoulli(logit, pi0)),
        link=torch.where(known, log_bernoulli(links, link_logit), zero),
    )
    bound = terms["reconstruction"] - terms["kl_linked"] - terms["kl_unlinked"] - terms["kl_edge"]
    return Terms(bound=bound, **terms)
