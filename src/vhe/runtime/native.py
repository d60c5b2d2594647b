"""Native kernels: the C code in `vhe/native`, built with the package where there is a C compiler.

Vector instructions make the alignment and the posterior several times as fast as torch operations.
The library has one version of each kernel per instruction set and the best that the processor has
is called. It is loaded from this package only. Where it was not built, torch does the same work.

``VHE_NATIVE=0`` disables it; ``VHE_NATIVE=baseline`` or ``avx2`` limits the instructions.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

FILE = Path(__file__).parents[1] / "native" / ("kernels.dll" if os.name == "nt" else "kernels.so")
INTERFACE = 1  # of the library; as vhe_interface in native/baseline.c
LEVELS = ("baseline", "avx2", "avx512")

_MATRIX = (torch.int64, torch.int32, torch.float32)  # row offsets, columns and values
_FLOATS = torch.float32
# The arguments of each kernel: sizes, tensors of some type, or a structure.
SIGNATURES: dict[str, tuple[type | torch.dtype, ...]] = {
    "sparse_product": (int, int, int, *_MATRIX, _FLOATS, _FLOATS),
    "sparse_product_transposed": (int, int, int, int, *_MATRIX, _FLOATS, _FLOATS),
    "solve": (int, int, int, int, *_MATRIX, _FLOATS, _FLOATS, _FLOATS),
    "align": (ctypes.Structure,),
    "align_back": (ctypes.Structure, _FLOATS, _FLOATS, _FLOATS),
}
_OUT_OF_MEMORY, _INVALID = 1, 2  # what a kernel returns; 0 if all is well


@cache
def library() -> ctypes.CDLL | None:
    """The kernels; None if they were not built, cannot be loaded or are disabled."""
    if os.environ.get("VHE_NATIVE") == "0" or not FILE.exists():
        return None
    try:
        functions = ctypes.CDLL(str(FILE))
        if functions.vhe_interface() != INTERFACE:  # built from other sources
            return None
        _declare(functions)
    except (OSError, AttributeError):
        return None
    functions.vhe_use_threads(_torch_threads())
    return functions


def level() -> str:
    """What computes on a CPU: the instruction set of the native kernels, or "torch"."""
    functions = library()
    if functions is None:
        return "torch"
    wanted = os.environ.get("VHE_NATIVE")
    most = LEVELS.index(wanted) if wanted in LEVELS else len(LEVELS)
    return LEVELS[min(functions.vhe_level(), most)]


def is_available(tensor: Tensor) -> bool:
    """Whether the native kernels can work on tensors of this device and type."""
    return tensor.is_cpu and tensor.dtype == torch.float32 and library() is not None


def call(name: str, *arguments: int | Tensor | ctypes.Structure) -> None:
    """Call a kernel; it checks that all sizes and indices agree before it starts.

    Tensors are passed by address and number of elements, structures by address.
    """
    given: list[object] = []
    held = []  # converted tensors, until the call returns
    for each, kind in zip(arguments, SIGNATURES[name], strict=True):
        if isinstance(each, Tensor):
            assert isinstance(kind, torch.dtype)
            held.append(each.long() if kind == torch.int64 else each)
            given += [address(held[-1], kind), held[-1].numel()]
        else:
            given.append(each if isinstance(each, int) else ctypes.byref(each))
    functions = library()
    assert functions is not None, "call is_available() first"
    code = getattr(functions, f"vhe_{name}_{level()}")(*given)
    if code == _OUT_OF_MEMORY:
        raise MemoryError(f"not enough memory for {name}")
    if code == _INVALID:
        raise ValueError(f"{name}: the sizes of the arguments do not agree")


def address(tensor: Tensor, dtype: torch.dtype) -> int:
    """The address of the elements of a tensor, which must be contiguous and of this type."""
    if not (tensor.is_cpu and tensor.dtype == dtype and tensor.is_contiguous()):
        raise TypeError(f"expected a contiguous {dtype} tensor on the CPU, got {tensor.dtype}")
    return tensor.data_ptr()


def _declare(functions: ctypes.CDLL) -> None:
    """Set the argument types of all functions."""
    functions.vhe_use_threads.argtypes = (ctypes.c_void_p,)
    functions.vhe_use_threads.restype = None
    for name, kinds in SIGNATURES.items():
        types: list[type] = []
        for kind in kinds:
            if isinstance(kind, torch.dtype):
                types += [ctypes.c_void_p, ctypes.c_int64]
            else:
                types.append(ctypes.c_int64 if kind is int else ctypes.c_void_p)
        for each in LEVELS[: functions.vhe_level() + 1]:
            getattr(functions, f"vhe_{name}_{each}").argtypes = types


def _torch_threads() -> int | None:
    """The address of GOMP_parallel in the OpenMP runtime that torch is linked to.

    Two OpenMP runtimes in one process would compete for the processor. GNU's and LLVM's runtimes
    have this function; on Windows there is none, and the kernels use one thread.
    """
    name = {"linux": "libtorch_cpu.so", "darwin": "libtorch_cpu.dylib"}.get(sys.platform)
    if name is None:
        return None
    try:
        linked = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / name))
        return ctypes.cast(linked.GOMP_parallel, ctypes.c_void_p).value
    except (OSError, AttributeError):
        return None
