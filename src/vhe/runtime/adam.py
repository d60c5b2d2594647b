"""Adam (Kingma and Ba 2015), by the kernel of `torch.optim.Adam` with ``fused=True``.

Torch's class imports `torch._dynamo` when it is first used, which takes several seconds: longer
than the whole fit of a small network.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

BETAS, EPSILON = (0.9, 0.999), 1e-8


class Adam:
    """Each group has ``params`` and their learning rate ``lr``, which may change between steps."""

    def __init__(self, *groups: tuple[Sequence[Tensor], float]) -> None:
        self.param_groups: list[dict[str, Any]] = [
            {"params": list(params), "lr": rate} for params, rate in groups
        ]
        self._moments: dict[int, dict[str, Tensor]] = {}  # by the number of the parameter

    def zero_grad(self) -> None:
        for _, parameter, _ in self._numbered():
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Change every parameter that has a gradient."""
        for number, parameter, rate in self._numbered():
            if parameter.grad is None:
                continue
            if number not in self._moments:
                self._moments[number] = {
                    "step": torch.zeros((), device=parameter.device),
                    "exp_avg": torch.zeros_like(parameter),
                    "exp_avg_sq": torch.zeros_like(parameter),
                }
            moments = self._moments[number]
            moments["step"] += 1
            torch._fused_adam_(
                [parameter],
                [parameter.grad],
                [moments["exp_avg"]],
                [moments["exp_avg_sq"]],
                [],
                [moments["step"]],
                lr=rate,
                beta1=BETAS[0],
                beta2=BETAS[1],
                weight_decay=0.0,
                eps=EPSILON,
                amsgrad=False,
                maximize=False,
            )

    def state_dict(self) -> dict[str, Any]:
        """The moments under "state", as `torch.optim.Optimizer.state_dict` has them."""
        return {"state": {number: dict(moments) for number, moments in self._moments.items()}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        parameters = {number: parameter for number, parameter, _ in self._numbered()}
        self._moments = {
            number: {name: value.to(parameters[number].device) for name, value in moments.items()}
            for number, moments in state["state"].items()
        }

    def _numbered(self) -> list[tuple[int, Tensor, float]]:
        flat = [(p, group["lr"]) for group in self.param_groups for p in group["params"]]
        return [(number, parameter, rate) for number, (parameter, rate) in enumerate(flat)]
