"""What of the machine is used: the device, how many of its cores, and how its memory."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator
from functools import lru_cache

import torch

from vhe.data.checks import is_integer
from vhe.errors import VHEError
from vhe.runtime import process_group as distributed
from vhe.runtime import ranks

KEPT = 256 << 20  # bytes that may be free and stay with the process


@lru_cache
def keep_memory() -> None:
    """Let the C library keep what is freed, which is what the next step of a training asks for.

    Otherwise the system takes it back and hands it out again page by page, each of them emptied.
    """
    with contextlib.suppress(OSError, AttributeError):  # of other systems than Linux
        if sys.platform == "linux":
            trim_threshold, mmap_threshold = -1, -3  # as in malloc.h
            ctypes.CDLL(None).mallopt(trim_threshold, KEPT)
            ctypes.CDLL(None).mallopt(mmap_threshold, 32 << 20)  # the most that it takes


def find_device(name: str) -> torch.device:
    """The device of that name; "auto" is a GPU where there is one, its own for each process."""
    if name == "auto" and torch.cuda.is_available():
        return torch.device("cuda", ranks.local_rank() % torch.cuda.device_count())
    if name == "auto":
        return torch.device("cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)  # a GPU that is not there is found here
    except (RuntimeError, TypeError, AssertionError):
        raise VHEError(f"there is no device {name!r} here: use auto, cpu or cuda") from None
    return device


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextlib.contextmanager
def using_threads(count: int | None) -> Iterator[None]:
    """Use a number of threads inside a with block.

    None leaves the choice to torch; of several processes each takes its share of the cores.
    """
    if count is not None and not (is_integer(count) and count >= 1):
        raise VHEError(f"threads is {count!r}, but it has to be a whole number of at least 1")
    before = torch.get_num_threads()
    if count is None and distributed.size() > 1:
        count = max(1, cores() // ranks.local_size())
    torch.set_num_threads(before if count is None else count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
