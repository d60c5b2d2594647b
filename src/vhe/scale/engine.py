"""The connection to Dask: maps and tree reductions over tasks, phases that are checkpoints.

Tasks read and write files of a folder that all workers share and return little, so that a lost
worker costs the tasks that it was running; Dask starts them again elsewhere.
"""

from __future__ import annotations

import contextlib
import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from vhe.errors import VHEError
from vhe.runtime.progress import Progress
from vhe.scale.shards import write_json

CONNECT_SECONDS = 20
FAN_IN = 8  # results that one task of a reduction combines
DEFAULT_MEMORY = 2 << 30  # bytes per worker, where Dask does not report a limit

OnPhase = Callable[[str, str], None]  # called with the name of a phase, and "start" or "end"


@contextlib.contextmanager
def connected(scheduler: str, workers: int, max_memory: int | None, local: Path) -> Iterator[Any]:
    """A client of a scheduler; "local" starts one with worker processes on this machine."""
    try:
        from distributed import Client, LocalCluster

        from vhe.scale.memory import ReusedMemory
    except ImportError:
        raise VHEError(
            "fitting with a scheduler needs Dask: install it with pip install 'vhe[scale]'"
        ) from None
    with contextlib.ExitStack() as stack:
        logger = logging.getLogger("distributed.client")
        stack.callback(logger.setLevel, logger.level)
        logger.setLevel(logging.CRITICAL)  # what it logs as an error is raised as well
        address: Any = scheduler
        if scheduler == "local":
            address = stack.enter_context(
                LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    memory_limit=max_memory or "auto",
                    silence_logs=logging.CRITICAL,  # errors are raised here as well
                    dashboard_address="127.0.0.1:0",
                    local_directory=str(local),
                )
            )
        try:
            client = stack.enter_context(
                Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
            )
        except (OSError, TimeoutError, ValueError) as error:
            raise VHEError(
                f"the Dask scheduler {scheduler} cannot be reached "
                f"({type(error).__name__}): check the address and that it is running"
            ) from None
        try:
            client.wait_for_workers(1, timeout=CONNECT_SECONDS)
        except TimeoutError:
            raise VHEError(f"the Dask scheduler {scheduler} has no workers: start some") from None
        client.register_plugin(ReusedMemory())
        yield client


class Engine:
    """Runs the tasks of a fit.

    Parameters
    ----------
    client : of Dask
    folder : for the checkpoints
    show : print progress
    on_phase : called at the start and at the end of each phase that runs
    """

    def __init__(
        self, client: Any, folder: Path, *, show: bool, on_phase: OnPhase | None = None
    ) -> None:
        self.client, self.folder, self.show = client, folder, show
        self.on_phase = on_phase or (lambda name, moment: None)
        self.seconds: dict[str, float] = {}

    def worker_memory(self) -> tuple[int, int]:
        """The number of threads of all workers, and the least memory in bytes of a thread."""
        found = self.client.scheduler_info(n_workers=-1)["workers"].values()
        memory = [(w["memory_limit"] or DEFAULT_MEMORY) // w["nthreads"] for w in found]
        return sum(w["nthreads"] for w in found), int(min(memory, default=DEFAULT_MEMORY))

    def phase(self, name: str, run: Callable[[], Any]) -> Any:
        """The result of a phase (JSON), from its checkpoint if it has finished before."""
        marker = self.folder / f"{name}.json"
        if marker.exists():
            saved = json.loads(marker.read_text(encoding="utf-8"))
            self.seconds[name] = saved["seconds"]
            return saved["result"]
        began = time.monotonic()
        self.on_phase(name, "start")
        result = run()
        self.seconds[name] = round(time.monotonic() - began, 3)
        write_json(marker, {"result": result, "seconds": self.seconds[name]})
        self.on_phase(name, "end")
        return result

    def map(self, task: str, function: Callable[..., Any], items: Iterable[Any], *args: Any) -> Any:
        """function(item, *args) of each item, in their order."""
        with self._progress(task) as watch:
            futures = watch(self.submit(function, [items], *args))
            return self.client.gather(futures)

    def reduce(
        self,
        task: str,
        function: Callable[..., Any],
        items: Iterable[Any],
        *args: Any,
        combine: Callable[[list[Any]], Any],
    ) -> Any:
        """function(item, *args) of each item, combined in their order by a tree of tasks."""
        with self._progress(task) as watch:
            futures = watch(self.submit(function, [items], *args))
            while len(futures) > 1:
                groups = [futures[k : k + FAN_IN] for k in range(0, len(futures), FAN_IN)]
                futures = self.submit(combine, [groups])
                del groups
            return futures[0].result()

    def submit(
        self, function: Callable[..., Any], columns: Sequence[Iterable[Any]], *args: Any
    ) -> list[Any]:
        """Futures of function(*row, *args) for the rows of some columns.

        The columns may contain futures and lists of futures, so that tasks depend on each other.
        """
        return list(self.client.map(Applied(function, args), *map(list, columns), pure=False))

    def gather(self, task: str, futures: Sequence[Any]) -> Any:
        """The results of futures."""
        with self._progress(task) as watch:
            return self.client.gather(watch(list(futures)))

    @contextlib.contextmanager
    def _progress(self, task: str) -> Iterator[Callable[[list[Any]], list[Any]]]:
        from distributed import CancelledError, KilledWorker
        from distributed.comm.core import CommClosedError

        done = 0
        try:
            with Progress(task, show=self.show) as progress:

                def watch(futures: list[Any]) -> list[Any]:
                    def count(_: Any) -> None:
                        nonlocal done
                        done += 1
                        progress.report(done, total)

                    total = len(futures)
                    for future in futures:
                        future.add_done_callback(count)
                    return futures

                yield watch
        except VHEError:
            raise
        except KilledWorker as error:
            raise VHEError(
                f"{task}: {error.allowed_failures + 1} workers ended while they ran the same task, "
                "probably out of memory: give each worker more memory, or lower max_memory"
            ) from None
        except MemoryError:
            raise VHEError(
                f"{task}: a worker ran out of memory: give each worker more, or lower max_memory"
            ) from None
        except (CancelledError, CommClosedError, TimeoutError) as error:
            raise VHEError(
                f"{task}: the connection to the Dask scheduler was lost ({type(error).__name__}): "
                "start it again and continue with resume (--resume)"
            ) from None


class Applied:
    """A function with its last arguments."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.function, self.args = function, args
        self.__name__ = function.__name__  # what Dask's dashboard shows

    def __call__(self, *first: Any) -> Any:
        return self.function(*first, *self.args)
