"""Which of several processes this is, as torchrun tells each of them."""

from __future__ import annotations

import os


def _told(name: str, otherwise: int) -> int:
    return int(os.environ.get(name, otherwise)) if started_by_torchrun() else otherwise


def started_by_torchrun() -> bool:
    return "TORCHELASTIC_RUN_ID" in os.environ


def started() -> int:
    """How many processes were started."""
    return _told("WORLD_SIZE", 1)


def first() -> bool:
    """Whether this is the process that speaks and writes; true where there is but one."""
    return _told("RANK", 0) == 0


def local_rank() -> int:
    """The number of this process on its machine."""
    return _told("LOCAL_RANK", 0)


def local_size() -> int:
    """How many processes are on this machine."""
    return _told("LOCAL_WORLD_SIZE", 1)


def restarted() -> bool:
    """Whether torchrun started this process again after one had failed (--max-restarts)."""
    return _told("TORCHELASTIC_RESTART_COUNT", 0) > 0
