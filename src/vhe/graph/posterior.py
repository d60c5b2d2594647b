"""The posterior of all codes: the solution of one sparse linear system.

With the prior of `prior.py` and the text codes m, the posterior of the codes z is Gaussian,

    mean A⁻¹ Λ m,    covariance A⁻¹ in every dimension,    A = diag(Λ) + Laplacian(s).

The mean is solved for all dimensions at once by preconditioned conjugate gradients. Gradients with
respect to m solve the same system, because A is symmetric: ∂L/∂m = Λ A⁻¹ ∂L/∂z.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor

from vhe.runtime import native
from vhe.runtime.sparse import csr_parts, csr_tensor, multiply
from vhe.runtime.tables import ROWS_AT_ONCE, copy_columns, new_table, write_columns

ITERATIONS = 12  # of conjugate gradients: relative error of about 1e-4
TRAINING_ITERATIONS = 3  # in a training step: about 1e-2
COLUMNS = 64  # of a table that are solved for at a time
PROBES = 64  # random vectors for the variances


class Posterior:
    """A = diag(Λ) + Laplacian(s), and what is computed from it.

    Attributes
    ----------
    weights : (n, n) s in compressed rows
    precision : (n, 1) Λ
    diagonal : (n, 1) of A
    """

    def __init__(self, weights: Tensor, precision: Tensor, diagonal: Tensor) -> None:
        self.weights, self.precision, self.diagonal = weights, precision, diagonal

    @classmethod
    def from_csr(
        cls,
        offsets: NDArray[np.int32],
        columns: NDArray[np.int32],
        weights: NDArray[np.float32],
        precision: NDArray[np.float32],
        *,
        device: torch.device,
    ) -> Self:
        n = len(precision)
        matrix = csr_tensor(csr_array((weights, columns, offsets), shape=(n, n)), device)
        own = torch.from_numpy(precision).to(device).unsqueeze(1)
        return cls(matrix, own, own + matrix @ torch.ones(n, 1, device=device))

    def multiply(self, z: Tensor) -> Tensor:
        """A z."""
        return self.diagonal * z - multiply(self.weights, z)

    def solve(self, b: Tensor, iterations: int = ITERATIONS) -> Tensor:
        """A⁻¹ b for each column of b (n, d), by conjugate gradients preconditioned by diag(A)."""
        if native.is_available(b):
            z, sizes = torch.empty_like(b), (torch.get_num_threads(), *b.shape, iterations)
            diagonal, b = self.diagonal.contiguous(), b.contiguous()
            native.call("solve", *sizes, *csr_parts(self.weights), diagonal, b, z)
            return z
        z = b / self.diagonal
        residual = b - self.multiply(z)
        scaled = residual / self.diagonal
        direction, size = scaled.clone(), (residual * scaled).sum(dim=0)
        for _ in range(iterations):
            image = self.multiply(direction)
            step = size / (direction * image).sum(dim=0).clamp(min=1e-30)
            z.addcmul_(step, direction)
            residual.addcmul_(step, image, value=-1)
            torch.div(residual, self.diagonal, out=scaled)
            size, before = (residual * scaled).sum(dim=0), size
            direction = torch.addcmul(scaled, size / before.clamp(min=1e-30), direction)
        return z

    def mean(self, codes: Tensor, iterations: int = ITERATIONS) -> Tensor:
        """A⁻¹ Λ m for the text codes m (n, d), differentiable with respect to m."""
        return self.solve_with_gradient(self.precision * codes, iterations)

    def solve_with_gradient(self, b: Tensor, iterations: int) -> Tensor:
        z = _Solution.apply(b, self, iterations)  # type: ignore[no-untyped-call]
        assert isinstance(z, Tensor)
        return z

    @torch.no_grad()
    def mean_table(
        self,
        codes: NDArray[np.float32],
        iterations: int = ITERATIONS,
        width: int = COLUMNS,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> NDArray[np.float32]:
        """`mean` of a table (n, d), ``width`` columns at a time; each column is on its own."""
        n, dim = codes.shape
        table = new_table(n, dim)
        for first in range(0, dim, width):
            part = torch.from_numpy(copy_columns(codes, first, min(first + width, dim)))
            part = self.precision * part.to(self.precision.device)
            write_columns(table, first, self.solve(part, iterations).cpu().numpy())
            progress(min(first + width, dim), dim)
        return table

    def variance(self, seed: int, probes: int = PROBES, width: int = COLUMNS) -> Tensor:
        """The diagonal of A⁻¹, (n,): the mean of v ∘ A⁻¹v over random signs v (Hutchinson 1990).

        It is limited to [1/A_ii, 1/Λ_i]: the values if all other codes, or none, were known.
        ``width`` signs are solved for at a time.
        """
        n, generator = len(self.diagonal), torch.Generator().manual_seed(seed)
        drawn = torch.empty(n, probes, dtype=torch.int8)
        for rows in drawn.split(ROWS_AT_ONCE):
            rows.copy_(torch.randint(2, rows.shape, generator=generator))
        total = torch.zeros(n, 1, dtype=torch.float64, device=self.diagonal.device)
        for some in drawn.split(width, dim=1):
            signs = some.to(self.diagonal).mul_(2).sub_(1)
            total += self.solve(signs).mul_(signs).sum(dim=1, keepdim=True, dtype=torch.float64)
            del signs  # before the next are made
        estimate = (total / probes).to(self.diagonal)
        return estimate.clamp(1 / self.diagonal, 1 / self.precision).squeeze(1)


class _Solution(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, b: Tensor, posterior: Posterior, iterations: int) -> Tensor:
        ctx.posterior, ctx.iterations = posterior, iterations
        return posterior.solve(b, iterations)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        return ctx.posterior.solve(gradients[0], ctx.iterations), None, None
