"""Products of sparse matrices in compressed rows (CSR) with dense ones, by native code if built."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from vhe.runtime import native

if TYPE_CHECKING:
    from scipy import sparse

warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")


def csr_tensor(matrix: sparse.csr_array, device: torch.device) -> Tensor:
    """A scipy matrix as a torch tensor in compressed rows."""
    return torch.sparse_csr_tensor(
        torch.from_numpy(matrix.indptr.astype(np.int32, copy=False)),
        torch.from_numpy(matrix.indices.astype(np.int32, copy=False)),
        torch.from_numpy(matrix.data.astype(np.float32, copy=False)),
        matrix.shape,
        check_invariants=False,
    ).to(device)


def multiply(matrix: Tensor, dense: Tensor, transposed: bool = False) -> Tensor:
    """A CSR matrix, or its transpose, times a dense one; without gradients."""
    if not native.is_available(dense):
        return (matrix.transpose(0, 1).to_sparse_csr() if transposed else matrix) @ dense
    (rows, columns), dim = matrix.shape, dense.shape[1]
    product = dense.new_empty(columns if transposed else rows, dim)
    name, *sizes = ("sparse_product_transposed", columns) if transposed else ("sparse_product",)
    native.call(
        name,
        torch.get_num_threads(),
        rows,
        dim,
        *sizes,
        *csr_parts(matrix),
        dense.contiguous(),
        product,
    )
    return product


def sparse_product(
    matrix: Tensor, dense: Tensor, transpose: Callable[[], Tensor] | None = None
) -> Tensor:
    """A CSR matrix times a dense one, with gradients for the dense one.

    ``transpose`` returns the transposed matrix, if it is stored; the backward pass calls it.
    """
    return _Product.apply(matrix, dense, transpose)  # type: ignore[no-untyped-call]


class _Product(torch.autograd.Function):
    """torch has no gradient for this product that keeps to compressed rows."""

    @staticmethod
    def forward(
        ctx: Any, matrix: Tensor, dense: Tensor, transpose: Callable[[], Tensor] | None
    ) -> Tensor:
        ctx.matrix, ctx.transpose = matrix, transpose
        return multiply(matrix, dense)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor, None]:
        if ctx.transpose is not None:
            return None, multiply(ctx.transpose(), gradients[0]), None
        return None, multiply(ctx.matrix, gradients[0], transposed=True), None


def csr_parts(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Row offsets, columns and values of a CSR matrix, with the types that native code reads."""
    return matrix.crow_indices().int(), matrix.col_indices().int(), matrix.values().float()
