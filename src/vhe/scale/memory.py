"""How workers allocate memory. Imports Dask, which is an extra."""

from __future__ import annotations

import contextlib
import ctypes
from typing import Any

from distributed import WorkerPlugin

TRIM_THRESHOLD, MMAP_THRESHOLD, ARENAS = -1, -3, -8  # parameters of mallopt, see its manual page
KEPT = 1 << 28  # bytes of freed memory that a worker keeps


class ReusedMemory(WorkerPlugin):
    """Lets a worker reuse freed memory.

    Dask makes glibc return freed memory to the system at once. New pages for every array then cost
    as much time as the computations of the solver.
    """

    name = "vhe-reused-memory"

    def setup(self, worker: Any) -> None:
        with contextlib.suppress(OSError, AttributeError, TypeError):  # not glibc
            allocator = ctypes.CDLL(None)
            for parameter, value in ((TRIM_THRESHOLD, KEPT), (MMAP_THRESHOLD, KEPT), (ARENAS, 1)):
                allocator.mallopt(parameter, value)
