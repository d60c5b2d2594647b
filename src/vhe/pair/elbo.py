"""The evidence lower bound (ELBO) of a pair, with a known and with an unknown edge.

Known edge (equation 7):    L  = w (E_q1[log p(x|z)] - KL(q1||p1))
                               + (1-w) (E_q0[log p(x|z)] - KL(q0||p0))
Unknown edge (appendix A):  L~ = π (q1 branch) + (1-π) (q0 branch) - KL(Bern(π)||Bern(π_0))

Both are one formula: the weight of the q1 branch is w where the edge is known and π elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from vhe.pair.homophily import kl_bernoulli


@dataclass(frozen=True)
class ElboTerms:
    """Every term of the objective, (batch,) each; the history records their means."""

    reconstruction: Tensor  # E[log p(x_i, x_j | z_i, z_j)]
    kl_linked: Tensor  # (w or π) KL(q1 || p1)
    kl_unlinked: Tensor  # (1 - w or 1 - π) KL(q0 || p0)
    kl_edge: Tensor  # KL(Bern(π) || Bern(π_0)) where the edge is unknown
    link: Tensor  # log q(w | x) where the edge is known; not part of the bound

    @property
    def bound(self) -> Tensor:
        """The ELBO."""
        return self.reconstruction - self.kl_linked - self.kl_unlinked - self.kl_edge

    def means(self) -> dict[str, float]:
        record = {f.name: float(getattr(self, f.name).detach().mean()) for f in fields(self)}
        return {"bound": float(self.bound.detach().mean()), **record}


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
) -> ElboTerms:
    """Combine the two branches; every tensor is (batch,).

    ``links`` is w (0 or 1), read only where ``known``; ``link_logit`` is the logit of π, through
    which the bound passes no gradient with ``fixed_pi``.
    """
    logit = link_logit.detach() if fixed_pi else link_logit
    pi = torch.sigmoid(logit)
    linked = torch.where(known, links, pi)
    unlinked = torch.where(known, 1 - links, 1 - pi)
    zero = torch.zeros_like(pi)
    log_q = links * logsigmoid(link_logit) + (1 - links) * logsigmoid(-link_logit)
    return ElboTerms(
        reconstruction=linked * reconstruction_linked + unlinked * reconstruction_unlinked,
        kl_linked=linked * kl_linked,
        kl_unlinked=unlinked * kl_unlinked,
        kl_edge=torch.where(known, zero, kl_bernoulli(logit, pi0)),
        link=torch.where(known, log_q, zero),
    )
