"""The alignment as machine code: `alignment.c`, compiled on the machine where it runs.

A processor's own vectors make it several times as fast as torch's operations. The first training
compiles it, in a second or two, and keeps it beside the downloaded data; where there is no C
compiler, torch does the same work. `VHE_COMPILE=0` says that it should.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from vhe.data.datasets import cache_folder
from vhe.data.files import replacing
from vhe.errors import VHEError
from vhe.nn.filtering import Filtering
from vhe.nn.places import Places, Texts

SOURCE = Path(__file__).with_name("alignment.c")
ALIGNED, MOST_PRODUCTS = 16, 16  # as in alignment.c
FLAGS = (("-march=native", "-fopenmp"), ("-mcpu=native", "-fopenmp"), ("-march=native",), ())


@lru_cache
def library() -> ctypes.CDLL | None:
    """The compiled functions, or None where there is no compiler, or it is not wanted."""
    compiler = next(filter(None, map(shutil.which, (os.environ.get("CC", ""), "cc", "gcc"))), None)
    if os.environ.get("VHE_COMPILE") == "0" or os.name == "nt" or compiler is None:
        return None
    path = kept_at(compiler)
    try:
        try:
            found = ctypes.CDLL(str(path))
        except OSError:  # not there yet, or damaged
            with replacing(path) as partial:
                _compile(compiler, partial)
            found = ctypes.CDLL(str(path))
    except (VHEError, OSError, subprocess.SubprocessError):
        return None
    return found


def kept_at(compiler: str) -> Path:
    """The file for this source, compiler and processor; other machines may share the folder."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    flags = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    machine = f"{platform.machine()} {platform.system()} {flags} {compiler}"
    what = hashlib.sha256(SOURCE.read_bytes() + machine.encode()).hexdigest()[:16]
    return cache_folder() / f"alignment-{what}.so"


def serves(words: Tensor, filtering: Filtering) -> bool:
    """Whether the compiled functions are there for such words and kernels."""
    kind = words.is_cpu and words.dtype == torch.float32
    return kind and len(filtering.of_rows) <= MOST_PRODUCTS and library() is not None


def _compile(compiler: str, path: Path) -> None:
    for flags in FLAGS:
        command = [compiler, "-O3", *flags, "-fPIC", "-shared", str(SOURCE), "-lm", "-o", str(path)]
        if subprocess.run(command, capture_output=True, timeout=120, check=False).returncode == 0:
            return
    raise OSError(f"{compiler} cannot compile {SOURCE.name}")


_NUMBERS = ("pairs", "dim", "threads", "kernels", "width", "longest", "tile", "products")


class _Batch(ctypes.Structure):
    """What the functions read and write, in the order of alignment.c; tensors by their address."""

    _fields_ = tuple(
        (name, ctypes.c_long if name in _NUMBERS else ctypes.c_void_p)
        for name in (
            *("pairs", "dim", "threads", "words", "tokens", "first", "length", "table"),
            *("kernels", "width", "longest", "kernel"),
            *("tile", "products", "to_outputs", "of_kernels", "of_rows"),
            *("similarity", "scores", "weights", "winner", "texts"),
        )
    )


class CompiledPlaces(Places):
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
            "tokens": self.tokens,
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
        functions = library()
        assert functions is not None, "ask serves() first"
        addresses = {key: tensor.data_ptr() for key, tensor in self.tensors.items()}
        batch = _Batch(**self.numbers, **addresses)
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in more)
        if not functions[name](ctypes.byref(batch), *pointers):
            raise MemoryError("the alignment of these texts")


class Align(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, words: Tensor, kernels: Tensor, places: CompiledPlaces) -> Texts:
        places.call("align")
        ctx.save_for_backward(words, kernels)
        ctx.places = places
        text_i, text_j = places.tensors["texts"].chunk(2)
        return text_i, text_j

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        words, kernels = ctx.saved_tensors
        places = ctx.places
        gradient, to_words = torch.cat(gradients), torch.zeros_like(words)
        kernel = places.tensors["kernel"]
        to_kernels = kernel.new_zeros(places.numbers["threads"], *kernel.shape)
        room = words.new_empty(len(places.tokens), _up(words.shape[1]))
        places.call("align_back", gradient, room, to_words, to_kernels)
        summed = torch.zeros_like(kernels)
        longest = min(kernels.shape[2], kernel.shape[2])
        summed[:, :, :longest] = to_kernels.sum(0)[:, :, :longest]
        return to_words, summed, None


def _up(count: Any) -> Any:
    return -(-count // ALIGNED) * ALIGNED
