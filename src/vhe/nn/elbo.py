"""The evidence lower bound of a pair, with a known and with an unknown edge.

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

from vhe.nn.homophily import kl_bernoulli

MASKED = -1e9


@dataclass(frozen=True)
class ElboTerms:
    """Every term of the objective for each pair, (batch,); this is what the history records."""

    reconstruction: Tensor  # E[log p(x_i, x_j | z_i, z_j)]
    kl_linked: Tensor  # (w or π) KL(q1 || p1)
    kl_unlinked: Tensor  # (1 - w or 1 - π) KL(q0 || p0)
    kl_edge: Tensor  # KL(Bern(π) || Bern(π_0)) where the edge is unknown
    link: Tensor  # log q(w | x) where the edge is known: the semi-supervised term
    partner: Tensor  # log q(which of the batch is the linked one | x), where a link is known

    @property
    def bound(self) -> Tensor:
        """The evidence lower bound, without the semi-supervised terms."""
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
    partner: Tensor,
    pi0: float,
) -> ElboTerms:
    """Put the two branches together; every argument but ``pi0`` is (batch,).

    ``links`` is w (0 or 1), read only where ``known``; ``link_logit`` is the logit of π.
    """
    pi = torch.sigmoid(link_logit)
    linked = torch.where(known, links, pi)
    unlinked = torch.where(known, 1 - links, 1 - pi)
    zero = torch.zeros_like(pi)
    agreement = links * logsigmoid(link_logit) + (1 - links) * logsigmoid(-link_logit)
    return ElboTerms(
        reconstruction=linked * reconstruction_linked + unlinked * reconstruction_unlinked,
        kl_linked=linked * kl_linked,
        kl_unlinked=unlinked * kl_unlinked,
        kl_edge=torch.where(known, zero, kl_bernoulli(link_logit, pi0)),
        link=torch.where(known, agreement, zero),
        partner=partner,
    )


def partner_log_probability(
    mean_i: Tensor, mean_j: Tensor, i: Tensor, j: Tensor, linked: Tensor, scale: Tensor
) -> Tensor:
    """log q(the partner of i is j and of j is i), among all vertices of the batch: (batch,).

    With q(w_ij = 1 | x) = sigmoid(scale · cosine + b), independent for each pair, the probability
    that w_ij = 1 given that one of the candidates is linked to i is a softmax over them, in which
    b cancels. Both ends ask, each gets half; pairs that are not ``linked`` get 0.
    """
    ends = torch.nn.functional.normalize(torch.cat([mean_i, mean_j]), dim=1)  # (2 batch, d)
    vertices = torch.cat([i, j])
    batch = len(i)
    asking = torch.cat([linked, linked]).nonzero().squeeze(1)
    partner = (asking + batch) % (2 * batch)
    logits = scale * (ends[asking] @ ends.T)  # (asking, 2 batch)
    # neither the asking vertex itself nor the partner at another place of the batch is a candidate
    same = vertices == vertices[asking].unsqueeze(1)
    same |= vertices == vertices[partner].unsqueeze(1)
    place = torch.arange(2 * batch, device=same.device)
    same &= place != partner.unsqueeze(1)
    chosen = -torch.nn.functional.cross_entropy(
        logits.masked_fill(same, MASKED), partner, reduction="none"
    )
    return torch.zeros_like(mean_i[:, 0]).index_add(0, asking % batch, chosen / 2)
