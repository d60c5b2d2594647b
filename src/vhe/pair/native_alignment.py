"""The phrase-to-word alignment by `alignment.c`: what it reads and writes, as tensors."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from vhe.pair.filtering import Filtering
from vhe.pair.packed_tokens import PackedTokens, Texts
from vhe.runtime import native as compiled

ALIGNED, MOST_PRODUCTS = 16, 16  # as in alignment.c


def is_available(words: Tensor, filtering: Filtering) -> bool:
    """Whether alignment.c is there for such words and kernels."""
    return compiled.is_available(words) and len(filtering.of_rows) <= MOST_PRODUCTS


_NUMBERS = {
    *("pairs", "dim", "vocabulary", "threads"),
    *("kernels", "width", "longest", "tile", "products"),
}


class _Batch(ctypes.Structure):
    """What the functions read and write, in the order of alignment.c; tensors by their address."""

    _fields_ = tuple(
        (name, ctypes.c_long if name in _NUMBERS else ctypes.c_void_p)
        for name in (
            *("pairs", "dim", "vocabulary", "threads"),
            *("words", "tokens", "first", "length", "table"),
            *("kernels", "width", "longest", "kernel"),
            *("tile", "products", "to_outputs", "of_kernels", "of_rows"),
            *("similarity", "scores", "weights", "winner", "texts"),
        )
    )


class PackedPairs(PackedTokens):
    """The places of a batch as alignment.c wants them."""

    def __init__(
        self, words: Tensor, kernels: Tensor, parts: Sequence[Texts], filtering: Filtering
    ) -> None:
        super().__init__(parts)
        words, kernels = words.detach(), kernels.detach()
        places, pairs = len(self.tokens), len(self.first) // 2
        longest = _up(int(self.length.max()))
        area = self.length[:pairs] * _up(self.length[pairs:])  # of M of each pair, as rows
        self.numbers = {
            "pairs": pairs,
            "dim": words.shape[1],
            "vocabulary": len(words),
            "threads": torch.get_num_threads(),
            "kernels": len(kernels),
            "width": kernels.shape[1],
            "longest": longest,
            "tile": filtering.tile,
            "products": len(filtering.of_rows),
        }
        cut = kernels[:, :, :longest]
        self.weights = words.new_zeros(places)
        self.tensors = {
            "words": words.contiguous(),
            "tokens": self.tokens.long(),
            "first": torch.from_numpy(self.first),
            "length": torch.from_numpy(self.length),
            "table": torch.from_numpy(np.cumsum(area) - area),
            "kernel": pad(cut, (0, longest - cut.shape[2])).contiguous(),
            "to_outputs": filtering.to_outputs.contiguous(),
            "of_kernels": filtering.of_kernels.contiguous(),
            "of_rows": filtering.of_rows.contiguous(),
            "similarity": words.new_empty(int(area.sum())),
            "scores": words.new_empty(places),
            "weights": self.weights,
            "winner": torch.empty(places, dtype=torch.int32),
            "texts": words.new_zeros(2 * pairs, words.shape[1]),
        }

    def call(self, name: str, *more: Tensor) -> None:
        """Let a function of alignment.c work on this batch."""
        addresses = {key: tensor.data_ptr() for key, tensor in self.tensors.items()}
        compiled.call(name, _Batch(**self.numbers, **addresses), *more)


class Align(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, words: Tensor, kernels: Tensor, places: PackedPairs) -> Texts:
        places.call("align")
        ctx.save_for_backward(words, kernels)
        ctx.places = places
        text_i, text_j = places.tensors["texts"].chunk(2)
        return text_i, text_j

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        words, kernels = ctx.saved_tensors
        places = ctx.places
        gradient, to_words = torch.cat(gradients), torch.empty_like(words)
        kernel = places.tensors["kernel"]
        to_kernels = kernel.new_zeros(places.numbers["threads"], *kernel.shape)
        places.call("align_back", gradient, to_words, to_kernels)
        summed = torch.zeros_like(kernels)
        longest = min(kernels.shape[2], kernel.shape[2])
        summed[:, :, :longest] = to_kernels.sum(0)[:, :, :longest]
        return to_words, summed, None


def _up(count: Any) -> Any:
    return -(-count // ALIGNED) * ALIGNED
