"""Several processes that train one model together, as torchrun starts them.

Every process has the whole network and the whole model. A step's pairs are a function of the seed
and the step, so each process takes its share of them unasked, and what is exchanged is the
gradient: one sum a step for all dense weights, the touched rows alone for a learned table. The same
sums everywhere make the same weights everywhere. The first process speaks and writes, the others
only work.
"""

from __future__ import annotations

import contextlib
import math
import os
import secrets
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from vhe.errors import VHEError
from vhe.pair.protocol import PairModel
from vhe.runtime import ranks

SECONDS_TO_MEET = 1800.0  # one may read its network longer than another
SHARED = Path("/dev", "shm")  # files in memory, where the system has them

Numbers = TypeVar("Numbers", bound=NDArray[Any])


class Lost(VHEError):
    """Another process of the training has ended."""


def size() -> int:
    """How many processes work together now."""
    return dist.get_world_size() if dist.is_initialized() else 1


def rank() -> int:
    """The number of this one."""
    return dist.get_rank() if dist.is_initialized() else 0


@contextlib.contextmanager
def together() -> Iterator[None]:
    """Inside, the processes can speak to each other, if there are several."""
    if ranks.started() == 1 or dist.is_initialized():
        yield
        return
    store, number, count = next(rendezvous("env://"))
    store = PrefixStore(_appointment(store, number, count), store)
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend, store=store, rank=number, world_size=count)
    try:
        yield
    finally:
        dist.destroy_process_group()


def _appointment(store: Store, number: int, count: int) -> str:
    """A word that all processes know and that none before them knew.

    torchrun's store outlives its processes, and what the last ones left there would be taken for an
    answer. So the first process publishes a new word; the others repeat it, each with a new word of
    its own, and go when that is repeated to them.
    """
    own, word, patience = secrets.token_hex(8), "", time.monotonic() + SECONDS_TO_MEET
    waiting = set(range(1, count)) if number == 0 else {number}
    if number == 0:
        word = own
        store.set("vhe/word", word)
    while waiting:
        if time.monotonic() > patience:
            raise Lost("the other processes of this training did not come")
        time.sleep(0.01)
        if number == 0:
            for other in sorted(waiting):
                said, _, theirs = _read(store, f"vhe/from/{other}").partition(" ")
                if said == word:
                    store.set(f"vhe/to/{other}", theirs)
                    waiting.remove(other)
        elif _read(store, f"vhe/to/{number}") == own:
            waiting.clear()
        elif (said := _read(store, "vhe/word")) not in ("", word):
            word = said
            store.set(f"vhe/from/{number}", f"{word} {own}")
    return f"vhe/{word}"


def _read(store: Store, key: str) -> str:
    return store.get(key).decode() if store.check([key]) else ""


@contextlib.contextmanager
def _heard() -> Iterator[bool]:
    """Whether there are others to speak to; their silence becomes a sentence."""
    try:
        yield dist.is_initialized()
    except RuntimeError as error:
        raise Lost(
            "another process of this training has ended; the same command with --resume goes on "
            "from what was kept"
        ) from error


def agreed(value: float) -> float:
    """What the first process says."""
    with _heard() as several:
        if several:
            said = torch.tensor([value], dtype=torch.float64)
            dist.broadcast(said, 0)
            value = said.item()
    return value


def agreed_score(score: float | None) -> float | None:
    """A score that may be missing, as the first process found it."""
    found = agreed(math.nan if score is None else score)
    return None if math.isnan(found) else found


def anyone(yes: bool) -> bool:
    """Whether any process says yes."""
    return bool(summed(np.array([float(yes)]))[0])


def summed(array: Numbers) -> Numbers:
    """The sum of the arrays of all processes, which it becomes."""
    with _heard() as several:
        if several:
            dist.all_reduce(torch.from_numpy(array))
    return array


def begin_alike(model: PairModel) -> None:
    """Give all processes the weights of the first: other processors round otherwise."""
    with _heard() as several:
        for weights in model.state_dict().values() if several else ():
            dist.broadcast(weights, 0)


def share(work: NDArray[np.int64]) -> tuple[NDArray[np.int64], float]:
    """The rows of this process, of rows that take so much ``work`` each, and how much they weigh.

    Weights of all processes add up to one. Where rows are too few for all, everybody takes all.
    """
    everyone = np.arange(len(work))
    if len(work) < size():
        return everyone, 1 / size()
    rows = np.sort(np.argsort(work, kind="stable")[rank() :: size()]) if size() > 1 else everyone
    return rows, len(rows) / max(len(work), 1)


class Gradients:
    """The gradients of a model, summed over all processes: in memory that they share where they are
    on one machine, which takes a third of the time, and by messages elsewhere."""

    def __init__(self, model: PairModel) -> None:
        learned = [p for p in model.parameters() if p.requires_grad]
        self.tables = [p for p in learned if p is model.structure.weight]  # with sparse gradients
        self.dense = [p for p in learned if p is not model.structure.weight]
        self.sizes = [p.numel() for p in self.dense]
        self.board: Tensor | None = None  # (processes + 1, weights): what each says, and the sum
        with _heard() as several:
            if several and self.dense[0].is_cpu:
                self.board = shared_memory(size() + 1, sum(self.sizes))

    def add(self, terms: dict[str, float]) -> dict[str, float]:
        """Sum the gradients, and the terms; both are weighed by the share of each process."""
        with _heard() as several:
            if not several:
                return terms
            for table in self.tables:
                table.grad = _gathered(table.grad)
            found = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.dense]
            values = torch.tensor(list(terms.values()), device=found[0].device)
            flat = self._sum([gradient.flatten() for gradient in found], values)
            for p, piece in zip(self.dense, flat.split(self.sizes), strict=True):
                p.grad = piece.view_as(p)
            return dict(zip(terms, values.tolist(), strict=True))

    def _sum(self, pieces: list[Tensor], values: Tensor) -> Tensor:
        """The sum of the pieces, one after the other; ``values`` become their own sum."""
        board, count = self.board, sum(self.sizes)
        if board is None:
            flat = torch.cat([*pieces, values])
            dist.all_reduce(flat)
            values.copy_(flat[count:])
            return flat[:count]
        torch.cat(pieces, out=board[rank()])
        dist.all_reduce(values)  # nobody is through before all have written
        own = slice(count * rank() // size(), count * (rank() + 1) // size())
        torch.sum(board[:-1, own], dim=0, out=board[-1, own])
        dist.barrier()
        return board[-1]


def shared_memory(rows: int, count: int) -> Tensor | None:
    """Numbers (rows, count) that all processes see; None if they do not, or without room."""
    path = _reserved(4 * rows * count) if rank() == 0 else ""
    said: list[Any] = [path]
    dist.broadcast_object_list(said)
    found = None
    with contextlib.suppress(RuntimeError):
        if said[0] and os.path.exists(said[0]):  # which it does not on another machine
            found = torch.from_file(said[0], shared=True, size=rows * count).view(rows, count)
    missing = anyone(found is None)
    if path:  # all have it open, so nothing is left behind when they end
        os.unlink(path)
    return None if missing else found


def _reserved(room: int) -> str:
    """A file in memory with room for so many bytes, or nothing."""
    try:
        handle, path = tempfile.mkstemp(prefix="vhe-", dir=SHARED)
    except OSError:
        return ""
    try:
        os.posix_fallocate(handle, 0, room)
        return path
    except OSError:
        os.unlink(path)
        return ""
    finally:
        os.close(handle)


def _gathered(gradient: Tensor | None) -> Tensor:
    """The rows of a sparse gradient that any process has touched."""
    assert gradient is not None
    gradient = gradient.coalesce()
    rows, values = gradient.indices()[0], gradient.values()
    counts = [torch.zeros(1, dtype=torch.int64, device=rows.device) for _ in range(size())]
    dist.all_gather(counts, torch.tensor([len(rows)], device=rows.device))
    most = int(max(counts))
    parts = []
    for mine in (rows, values):  # all send as much as the longest
        padded = mine.new_zeros(most, *mine.shape[1:])
        padded[: len(mine)] = mine
        theirs = [torch.empty_like(padded) for _ in counts]
        dist.all_gather(theirs, padded)
        parts.append(torch.cat([one[: int(n)] for one, n in zip(theirs, counts, strict=True)]))
    return torch.sparse_coo_tensor(parts[0].unsqueeze(0), parts[1], gradient.shape).coalesce()
