"""The phrase-to-word alignment by `native/alignment.c`: its arguments as tensors."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from vhe.pair.filtering import filtering
from vhe.pair.packed_tokens import PackedTokens, Texts
from vhe.runtime import native

ALIGNED, MOST_PRODUCTS = 16, 16  # as in alignment.c


def is_available(words: Tensor, kernels: Tensor) -> bool:
    """Whether alignment.c can be used for such words and kernels."""
    return native.is_available(words) and filtering(kernels.shape[2]).products <= MOST_PRODUCTS


def align(
    words: Tensor, kernels: Tensor, parts: Sequence[Texts]
) -> tuple[Tensor, Tensor, list[Texts]]:
    """x~_i and x~_j of all pairs, and the weights of each part; as `alignment.align`."""
    batch = PackedPairs(words.detach(), kernels.detach(), parts)
    text_i, text_j = _Align.apply(words, kernels, batch)  # type: ignore[no-untyped-call]
    return text_i, text_j, batch.split(batch.tensors["weights"])


_FLOATS, _INDICES = torch.float32, torch.int64
_FIELDS: dict[str, Any] = {  # in the order of Batch in alignment.c
    **dict.fromkeys(("pairs", "dim", "vocabulary", "threads", "positions", "area"), int),
    "words": _FLOATS,
    **dict.fromkeys(("tokens", "first", "length", "table"), _INDICES),
    **dict.fromkeys(("sides", "kernels", "width", "longest"), int),
    "kernel": _FLOATS,
    **dict.fromkeys(("tile", "products"), int),
    **dict.fromkeys(("to_outputs", "of_kernels", "of_rows"), _FLOATS),
    **dict.fromkeys(("similarity", "scores", "weights"), _FLOATS),
    "winner": torch.int32,
    "texts": _FLOATS,
}


class _Batch(ctypes.Structure):
    """Sizes, and the addresses of tensors."""

    _fields_ = tuple(
        (name, ctypes.c_int64 if kind is int else ctypes.c_void_p) for name, kind in _FIELDS.items()
    )


class PackedPairs(PackedTokens):
    """A batch as alignment.c reads it, with room for its results."""

    def __init__(self, words: Tensor, kernels: Tensor, parts: Sequence[Texts]) -> None:
        super().__init__(parts)
        matrices = filtering(kernels.shape[2])
        positions, pairs = len(self.tokens), len(self.first) // 2
        longest = _up(int(self.length.max()))
        area = self.length[:pairs] * _up(self.length[pairs:])  # of M of each pair
        self.numbers = {
            "pairs": pairs,
            "dim": words.shape[1],
            "vocabulary": len(words),
            "threads": torch.get_num_threads(),
            "positions": positions,
            "area": int(area.sum()),
            "sides": len(kernels),
            "kernels": kernels.shape[1],
            "width": kernels.shape[2],
            "longest": longest,
            "tile": matrices.tile,
            "products": matrices.products,
        }
        cut = kernels[..., :longest]
        self.tensors = {
            "words": words.contiguous(),
            "tokens": self.tokens.long(),
            "first": torch.from_numpy(self.first),
            "length": torch.from_numpy(self.length),
            "table": torch.from_numpy(np.cumsum(area) - area),
            "kernel": pad(cut, (0, longest - cut.shape[3])).contiguous(),
            "to_outputs": matrices.to_outputs,
            "of_kernels": matrices.of_kernels,
            "of_rows": matrices.of_rows,
            "similarity": words.new_empty(int(area.sum())),
            "scores": words.new_empty(positions),
            "weights": words.new_zeros(positions),
            "winner": torch.empty(positions, dtype=torch.int32),
            "texts": words.new_zeros(2 * pairs, words.shape[1]),
        }

    def call(self, name: str, *more: Tensor) -> None:
        """Call a function of alignment.c with this batch."""
        addresses = {
            key: native.address(tensor, _FIELDS[key]) for key, tensor in self.tensors.items()
        }
        native.call(name, _Batch(**self.numbers, **addresses), *more)


class _Align(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, words: Tensor, kernels: Tensor, batch: PackedPairs) -> Texts:
        batch.call("align")
        ctx.batch, ctx.shape = batch, kernels.shape
        text_i, text_j = batch.tensors["texts"].chunk(2)
        return text_i, text_j

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        batch: PackedPairs = ctx.batch
        to_words, kernel = torch.empty_like(batch.tensors["words"]), batch.tensors["kernel"]
        to_kernels = kernel.new_zeros(batch.numbers["threads"], *kernel.shape)
        batch.call("align_back", torch.cat(gradients), to_words, to_kernels)
        longest = min(ctx.shape[3], kernel.shape[3])
        summed = to_kernels.sum(0)[..., :longest]
        return to_words, pad(summed, (0, ctx.shape[3] - longest)), None


def _up(count: Any) -> Any:
    return -(-count // ALIGNED) * ALIGNED
