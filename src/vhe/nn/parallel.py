"""Parts of a batch on several cores: a thread of ours for each core, one core for each operation.

The operations on a part are small, and a small operation on two cores mostly waits for the second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

import torch

Part = TypeVar("Part")
Result = TypeVar("Result")


def in_shares(work: Callable[[Sequence[Part]], Result], parts: Sequence[Part]) -> list[Result]:
    """``work`` on every n-th part for each of n threads; which thread gets which never changes."""
    threads = max(1, min(torch.get_num_threads(), len(parts)))
    if threads == 1:
        return [work(parts)]
    pool, inference = _pool(torch.get_num_threads()), torch.is_inference_mode_enabled()

    def alone(share: Sequence[Part]) -> Result:
        with torch.inference_mode(inference), torch.set_grad_enabled(False):
            return work(share)

    return list(pool.map(alone, [parts[k::threads] for k in range(threads)]))


@lru_cache(maxsize=1)
def _pool(threads: int) -> ThreadPoolExecutor:
    pool = ThreadPoolExecutor(threads, "vhe", initializer=torch.set_num_threads, initargs=(1,))
    list(pool.map(lambda _: None, range(threads)))
    torch.set_num_threads(threads)  # what a worker sets is the start of threads to come, too
    return pool
