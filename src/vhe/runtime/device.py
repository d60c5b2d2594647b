"""The resources of the machine that a fit uses: device, threads, memory."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import sys
from collections.abc import Iterator
from functools import lru_cache

import torch

from vhe.errors import VHEError
from vhe.runtime import process_group
from vhe.runtime.checks import is_integer

logger = logging.getLogger(__name__)

RETAINED = 256 << 20  # bytes of free memory that the process does not return
MOST_THREADS = 1024  # OpenMP ends the process when it cannot start as many as requested


@lru_cache
def retain_memory() -> None:
    """Let the C library retain freed memory, which the next training step allocates again.

    Otherwise the system takes it back and hands it out again page by page, filled with zeros.
    """
    with contextlib.suppress(OSError, AttributeError):  # not the GNU C library
        if sys.platform == "linux":
            trim_threshold, mmap_threshold = -1, -3  # as in malloc.h
            ctypes.CDLL(None).mallopt(trim_threshold, RETAINED)
            ctypes.CDLL(None).mallopt(mmap_threshold, 32 << 20)  # the largest value it accepts


def find_device(name: str) -> torch.device:
    """The device of that name; "auto" is a GPU if there is one, a different one per process."""
    if name == "auto" and torch.cuda.is_available():
        return torch.device("cuda", process_group.local_rank() % torch.cuda.device_count())
    if name == "auto":
        return torch.device("cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)  # raises if the device does not exist
    except (RuntimeError, TypeError, AssertionError):
        raise VHEError(f"device {name!r} is not available: use auto, cpu or cuda") from None
    return device


def cores() -> int:
    """Number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_forked = False  # whether this process is a fork of one that could have used several threads


def _use_one_thread() -> None:
    """OpenMP waits forever in a fork for the threads of the process that was forked."""
    global _forked
    if torch.get_num_threads() > 1:
        _forked = True
        torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_use_one_thread)


@contextlib.contextmanager
def using_threads(count: int | None) -> Iterator[None]:
    """Set the number of threads inside a with block.

    None leaves the choice to torch; several processes on one machine share its cores. A forked
    process uses one.
    """
    if count is not None and not (is_integer(count) and 1 <= count <= MOST_THREADS):
        raise VHEError(f"threads is {count!r}, but must be an integer from 1 to {MOST_THREADS}")
    before = torch.get_num_threads()
    if count is None and process_group.local_world_size() > 1:
        count = max(1, cores() // process_group.local_world_size())
    if _forked and (count or 1) > 1:
        logger.warning("a forked process uses one thread; start it by spawn to use more")
        count = 1
    torch.set_num_threads(before if count is None else count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
