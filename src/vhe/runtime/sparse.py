"""Sparse matrices in compressed rows times dense ones, by graph_prior.c where it is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from vhe.runtime import native as compiled

if TYPE_CHECKING:
    from scipy import sparse


def sparse_rows(matrix: sparse.csr_array, device: torch.device) -> Tensor:
    """A sparse matrix of scipy as one of torch, in compressed rows."""
    return torch.sparse_csr_tensor(
        torch.from_numpy(matrix.indptr.astype(np.int32, copy=False)),
        torch.from_numpy(matrix.indices.astype(np.int32, copy=False)),
        torch.from_numpy(matrix.data.astype(np.float32, copy=False)),
        matrix.shape,
        check_invariants=False,
    ).to(device)


def sparse_times(matrix: Tensor, dense: Tensor, turned: bool = False) -> Tensor:
    """A sparse matrix in compressed rows, or its transpose, times a dense one; no gradients."""
    if not compiled.is_available(dense):
        return (matrix.transpose(0, 1).to_sparse_csr() if turned else matrix) @ dense
    (rows, width), dim = matrix.shape, dense.shape[1]
    found = dense.new_empty(width if turned else rows, dim)
    name, *numbers = ("sparse_product_turned", width) if turned else ("sparse_product",)
    sizes = torch.get_num_threads(), rows, dim, *numbers
    compiled.call(name, *sizes, *parts(matrix), dense.contiguous(), found)
    return found


def product(matrix: Tensor, dense: Tensor, turned: Tensor | None = None) -> Tensor:
    """A sparse matrix in compressed rows times a dense one, with gradients for the dense one.

    ``turned`` is its transpose, where that is known already.
    """
    found = _Product.apply(matrix, dense, turned)
    assert isinstance(found, Tensor)
    return found


class _Product(torch.autograd.Function):
    """torch has no gradient for this that keeps to compressed rows."""

    @staticmethod
    def forward(ctx: Any, matrix: Tensor, dense: Tensor, turned: Tensor | None) -> Tensor:
        ctx.matrix, ctx.turned = matrix, turned
        return sparse_times(matrix, dense)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor, None]:
        if ctx.turned is not None:
            return None, sparse_times(ctx.turned, gradients[0]), None
        return None, sparse_times(ctx.matrix, gradients[0], turned=True), None


def parts(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Where the rows of a sparse matrix start, its columns and its values, as graph_prior.c has
    them."""
    return matrix.crow_indices().int(), matrix.col_indices().int(), matrix.values().float()
