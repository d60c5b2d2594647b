"""The contrastive loss: each end of a link is to find its partner among many vertices."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def contrastive_loss(codes: Tensor, links: Tensor, scale: Tensor) -> Tensor:
    """-log q(the partner of i is j, and of j is i), among the ends of all links: the mean, ().

    With q(w_ij = 1 | x) = sigmoid(scale · cos(z_i, z_j) + b), independent for each pair, the
    probability that w_ij = 1 given that exactly one candidate is linked to i is a softmax over the
    candidates, in which b cancels. The candidates are the ends of all links, each as often as it
    occurs, without the end itself and without further occurrences of the partner.

    ``links`` (m, 2) are row numbers of ``codes`` (k, d).
    """
    unit = torch.nn.functional.normalize(codes, dim=1)
    ends, partners = torch.cat([links, links.flip(1)]).T
    occurrences = torch.bincount(partners, minlength=len(codes)).to(unit)
    total = _LogSumExp.apply(unit, scale, occurrences)  # type: ignore[no-untyped-call]
    assert isinstance(total, Tensor)
    # unlike indexing by [], embedding and index_select have the same gradients for any number of
    # threads
    rows = torch.nn.functional.embedding(torch.stack([ends, partners]), unit)
    right = scale * (rows[0] * rows[1]).sum(dim=1) - total.index_select(0, ends)
    repeated = (occurrences[partners] - 1) * right.exp()
    return (torch.log1p(-repeated.clamp(max=0.9999)) - right).mean()


class _LogSumExp(torch.autograd.Function):
    """log Σ_u≠v o_u exp(scale · x_v·x_u) for the rows v of x (k, d), which have unit length.

    The (k, k) kernel is the largest tensor of a training step, so it is read as few times as
    possible.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: Tensor, occurrences: Tensor) -> Tensor:
        kernel = (x @ x.T).sub_(1).mul_(scale).exp_()  # at most 1
        kernel.fill_diagonal_(0)
        total = (kernel @ occurrences).clamp_(min=torch.finfo(x.dtype).tiny)
        ctx.save_for_backward(x, occurrences, kernel, total, scale)
        return scale + total.log()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        x, occurrences, kernel, total, scale = ctx.saved_tensors
        each = gradients[0] / total
        weights = torch.outer(each, occurrences).addr_(occurrences, each).mul_(kernel)
        to_x = weights @ x
        return scale * to_x, (to_x * x).sum(dim=1).sum() / 2, None
