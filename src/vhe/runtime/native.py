"""Native kernels: the C code in `vhe/native`, compiled on the machine that runs it.

Vector instructions make the alignment and the posterior several times as fast as torch operations.
The first fit compiles the kernels, which takes a few seconds, and caches them beside downloaded
data. Without a C compiler, or with `VHE_COMPILE=0`, torch does the same work.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import stat
import subprocess
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor

from vhe.errors import VHEError
from vhe.runtime.files import atomic_write, cache_folder

FOLDER = Path(__file__).parents[1] / "native"
FLAGS = (("-march=native", "-fopenmp"), ("-mcpu=native", "-fopenmp"), ("-march=native",), ())


@lru_cache
def library() -> ctypes.CDLL | None:
    """The compiled functions; None without a compiler or with VHE_COMPILE=0."""
    compiler = next(filter(None, map(shutil.which, (os.environ.get("CC", ""), "cc", "gcc"))), None)
    if os.environ.get("VHE_COMPILE") == "0" or os.name == "nt" or compiler is None:
        return None
    try:
        path = cached_library(compiler)
        try:
            return _loaded(path)
        except OSError:  # missing or damaged
            with atomic_write(path) as partial:
                _compile(compiler, partial)
            return _loaded(path)
    except (VHEError, OSError, subprocess.SubprocessError):
        return None


def _loaded(path: Path) -> ctypes.CDLL:
    """Load a library, unless another user could have written it."""
    status = path.stat()
    if status.st_uid not in (0, os.getuid()) or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(f"{path} is writable by other users")
    return ctypes.CDLL(str(path))


def is_available(tensor: Tensor) -> bool:
    """Whether the native kernels can work on tensors of this device and type."""
    return tensor.is_cpu and tensor.dtype == torch.float32 and library() is not None


def call(name: str, *arguments: int | Tensor | ctypes.Structure) -> None:
    """Call a function; tensors and structures are passed by their address."""
    functions = library()
    assert functions is not None, "call is_available() first"
    given = [
        ctypes.c_void_p(each.data_ptr())
        if isinstance(each, Tensor)
        else ctypes.byref(each)
        if isinstance(each, ctypes.Structure)
        else ctypes.c_long(each)
        for each in arguments
    ]
    if not functions[name](*given):
        raise MemoryError(name)


def cached_library(compiler: str) -> Path:
    """The file for this source, compiler and processor; several machines may share the folder."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    flags = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    digest = hashlib.sha256(f"{platform.machine()} {platform.system()} {flags} {compiler}".encode())
    for file in sorted(FOLDER.glob("*.[ch]")):
        digest.update(file.read_bytes())
    return cache_folder() / f"compiled-{digest.hexdigest()[:16]}.so"


def _compile(compiler: str, path: Path) -> None:
    sources = [str(file) for file in sorted(FOLDER.glob("*.c"))]
    for flags in FLAGS:
        command = [compiler, "-O3", *flags, "-fPIC", "-shared", *sources, "-lm", "-o", str(path)]
        if subprocess.run(command, capture_output=True, timeout=120, check=False).returncode == 0:
            path.chmod(0o755)
            return
    raise OSError(f"{compiler} cannot compile {sources}")
