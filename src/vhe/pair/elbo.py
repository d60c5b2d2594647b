"""The evidence lower bound of a pair, with a known and with an unknown edge.

Known edge (equation 7):    L  = w (E_q1[log p(x|z)] - KL(q1||p1))
                               + (1-w) (E_q0[log p(x|z)] - KL(q0||p0))
Unknown edge (appendix A):  L~ = π (q1 branch) + (1-π) (q0 branch) - KL(Bern(π)||Bern(π_0))

Both are one formula: the weight of the q1 branch is w where the edge is known and π elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from vhe.pair.homophily import kl_bernoulli


@dataclass(frozen=True)
class ElboTerms:
    """Every term of the objective, (batch,) if not said otherwise; the history records them."""

    reconstruction: Tensor  # E[log p(x_i, x_j | z_i, z_j)]
    kl_linked: Tensor  # (w or π) KL(q1 || p1)
    kl_unlinked: Tensor  # (1 - w or 1 - π) KL(q0 || p0)
    kl_edge: Tensor  # KL(Bern(π) || Bern(π_0)) where the edge is unknown
    link: Tensor  # log q(w | x) where the edge is known: the semi-supervised term
    partner: Tensor  # log q(which of many is the linked one | x), the mean over links: ()

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
    """Put the two branches together; every argument but ``partner`` and ``pi0`` is (batch,).

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
    codes: Tensor, links: Tensor, scale: Tensor, part: tuple[int, int] = (0, 1)
) -> Tensor:
    """log q(the partner of i is j and of j is i) among all ends of the links (i, j): the mean, ().

    With q(w_ij = 1 | x) = sigmoid(scale · cosine + b), independent for each pair, the probability
    that w_ij = 1 given that one of the candidates is linked to i is a softmax over them, in which
    b cancels. Both ends ask; the candidates are the ends of all other links, each as often as it
    is one, but neither who asks nor the partner once more. ``links`` (m, 2) are rows of ``codes``
    (vertices, d); 0 for no links.

    With ``part`` = (k, n) only the k-th of n parts of the vertices ask: n results make the mean.
    """
    if not len(links):
        return scale.new_zeros(())
    unit = torch.nn.functional.normalize(codes, dim=1)
    asking, partner = torch.cat([links, links.flip(1)]).T
    often = torch.bincount(partner, minlength=len(codes)).to(unit)
    first, last = (len(codes) * (part[0] + end) // part[1] for end in (0, 1))
    if part[1] > 1:
        own = (asking >= first) & (asking < last)
        asking, partner = asking[own], partner[own]
    total = _LogSumOfOthers.apply(unit, scale, often, slice(first, last))
    assert isinstance(total, Tensor)
    cosine = (unit[asking] * unit[partner]).sum(dim=1)
    right = scale * cosine - total[asking - first]
    again = (often[partner] - 1) * right.exp()  # the partner at its other places
    return (right - torch.log1p(-again.clamp(max=0.9999))).sum() / (2 * len(links))


class _LogSumOfOthers(torch.autograd.Function):
    """log Σ_u≠v o_u exp(scale · x_v x_u) for some rows v of x (k, d), which have length one.

    What is (k, k) is passed over as seldom as can be: it is the largest thing in a step.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: Tensor, often: Tensor, rows: slice) -> Tensor:
        kernel = (x[rows] @ x.T).sub_(1).mul_(scale).exp_()  # 1 at most
        kernel[:, rows].fill_diagonal_(0)
        total = (kernel @ often).clamp_(min=torch.finfo(x.dtype).tiny)
        ctx.save_for_backward(x, often, scale, kernel, total)
        ctx.rows = rows
        return scale + total.log()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, often, scale, kernel, total = ctx.saved_tensors
        each, own = gradients[0] / total, x[ctx.rows]
        if len(own) == len(x):  # symmetric
            to_x = torch.outer(each, often).addr_(often, each).mul_(kernel) @ x
            return scale * to_x, (to_x * x).sum() / 2, None, None
        to_own = each.unsqueeze(1) * (kernel @ (often.unsqueeze(1) * x))
        to_x = often.unsqueeze(1) * (kernel.T @ (each.unsqueeze(1) * own))
        to_x[ctx.rows] += to_own
        return scale * to_x, (to_own * own).sum(), None, None
