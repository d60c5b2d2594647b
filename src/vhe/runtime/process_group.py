"""The processes of a distributed run, as torchrun starts them.

Every process has the whole network and the whole model; torch's DistributedDataParallel averages
the gradients (`pair.training`). The process of rank 0 prints and writes files.
"""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Iterator
from itertools import count
from typing import Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from vhe.errors import VHEError

Array = TypeVar("Array", bound=NDArray[Any])
Number = TypeVar("Number", int, float)

_groups = count()  # process groups that this process has joined


class PeerLostError(VHEError):
    """Another process of the distributed run has ended."""


def _from_torchrun(name: str, default: int) -> int:
    """A variable that torchrun sets; other launchers set some of the same names."""
    return int(os.environ.get(name, default)) if "TORCHELASTIC_RUN_ID" in os.environ else default


def world_size() -> int:
    """Number of processes that torchrun has started."""
    return _from_torchrun("WORLD_SIZE", 1)


def is_first() -> bool:
    """Whether this process has rank 0, and so prints and writes."""
    return _from_torchrun("RANK", 0) == 0


def local_rank() -> int:
    """Rank of this process on its machine."""
    return _from_torchrun("LOCAL_RANK", 0)


def local_world_size() -> int:
    """Number of processes on this machine."""
    return _from_torchrun("LOCAL_WORLD_SIZE", 1)


def restarted() -> bool:
    """Whether torchrun restarted the processes after a failure (--max-restarts)."""
    return _from_torchrun("TORCHELASTIC_RESTART_COUNT", 0) > 0


def size() -> int:
    """Number of processes in the current group."""
    return dist.get_world_size() if dist.is_initialized() else 1


def rank() -> int:
    return dist.get_rank() if dist.is_initialized() else 0


@contextlib.contextmanager
def initialised() -> Iterator[None]:
    """Connect the processes that torchrun started; does nothing in a single process."""
    if world_size() == 1 or dist.is_initialized():
        yield
        return
    store, number, processes = next(rendezvous("env://"))
    # torchrun's store outlives a group and its processes: a later group must not read the addresses
    # of an earlier one
    restarts = _from_torchrun("TORCHELASTIC_RESTART_COUNT", 0)
    store = PrefixStore(f"vhe/{restarts}/{next(_groups)}", store)
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend, store=store, rank=number, world_size=processes)
    try:
        yield
    finally:
        gc.collect()  # DistributedDataParallel is part of a cycle and refers to the group
        dist.destroy_process_group()


@contextlib.contextmanager
def reporting_lost_peers() -> Iterator[None]:
    """Turn a failed communication into a `PeerLostError`."""
    try:
        yield
    except RuntimeError as error:
        if not dist.is_initialized():
            raise
        raise PeerLostError(
            f"rank {rank()}: another process of this training has ended ({error}); run the same "
            "command with --resume to continue from the last checkpoint"
        ) from error


def broadcast(value: Number) -> Number:
    """The value of rank 0."""
    if not dist.is_initialized():
        return value
    kind = torch.int64 if isinstance(value, int) else torch.float64
    shared = torch.tensor([value], dtype=kind)
    with reporting_lost_peers():
        dist.broadcast(shared, 0)
    return type(value)(shared.item())


def any_rank(flag: bool) -> bool:
    """Whether the flag is set in any process."""
    return bool(all_reduce(np.array([float(flag)]))[0])


def all_reduce(array: Array) -> Array:
    """The sum over all processes, which replaces the array in place."""
    if dist.is_initialized():
        with reporting_lost_peers():
            dist.all_reduce(torch.from_numpy(array))
    return array
