"""Kill -9 of workers and of the scheduler during fits of the engine.

    python benchmarks/scale_kills.py [--part 0] [--runs 5] [--scheduler-runs 2]
        [--store results/reliability]

In each run, a random one of two workers ends at a random moment of the fit; the run counts if it
completes with the embedding of an undisturbed fit. In further runs the process of the scheduler
ends, is started again, and the fit is resumed. A run whose fit ends before the kill is repeated.
The part is the random seed. ``--store`` writes the figures to dask_faults[PART].json in a folder.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client
from sizes import write_network

from vhe import VHEError, scale
from vhe.config import VHEConfig

VERTICES = 1000
CONFIG = VHEConfig(latent_dim=16, max_steps=4, validate_every=2)


class Cluster:
    """A scheduler and two workers, each in its own process."""

    def __init__(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{port}"
        self.folder = folder
        options = ["--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]
        self.scheduler = self._start("scheduler", *options)
        own = ["--nworkers", "2", "--nthreads", "1", "--no-dashboard"]
        self.workers = self._start("worker", self.address, *own)
        with Client(self.address, timeout=120) as client:
            client.wait_for_workers(2, timeout=120)

    def _start(self, *command: str) -> subprocess.Popen[bytes]:
        log = (self.folder / f"{command[0]}.log").open("ab")
        return subprocess.Popen(
            [sys.executable, "-m", "dask", *command], cwd=self.folder, stdout=log, stderr=log
        )

    def worker_pids(self) -> list[int]:
        with Client(self.address, timeout=60) as client:
            return list(client.run(os.getpid).values())

    def close(self) -> None:
        for process in (self.workers, self.scheduler):
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def fit(data: tuple[Path, Path], out: Path, address: str, resume: bool = False) -> Any:
    model = scale.fit(
        *data,
        out,
        scheduler=address,
        resume=resume,
        config=CONFIG,
        seed=0,
        verbose=False,
        rows_per_part=150,
        rows_per_block=150,
    )
    return np.concatenate([np.array(mean) for _, mean, _ in model.shards()])


class Killer(threading.Timer):
    """Kills a process after some seconds, unless it is cancelled before."""

    def __init__(self, seconds: float, pid: int) -> None:
        super().__init__(seconds, self.kill, (pid,))
        self.killed = False

    def kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        self.killed = True

    def __enter__(self) -> Killer:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.cancel()
        self.join()


class Faults:
    """Runs of the engine with a kill in each, and their figures."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.rng = folder, random.Random(seed)
        self.cluster = Cluster(folder)
        self.data = write_network(VERTICES, folder)
        fit(self.data, folder / "warm", self.cluster.address)  # workers have imported everything
        began = time.monotonic()
        self.reference = fit(self.data, folder / "reference", self.cluster.address)
        self.seconds = time.monotonic() - began
        self.problems: list[str] = []

    def same(self, means: Any) -> bool:
        if np.allclose(means, self.reference, atol=1e-4):
            return True
        self.problems.append(f"another embedding, by up to {abs(means - self.reference).max()}")
        return False

    def worker(self) -> tuple[bool, bool]:
        """Kill a worker; whether it was killed during the fit, and whether the fit completed."""
        pid = self.rng.choice(self.cluster.worker_pids())
        moment = self.rng.uniform(0, self.seconds)
        try:
            with Killer(moment, pid) as killer:
                means = fit(self.data, self.folder / "run", self.cluster.address)
            return killer.killed, self.same(means)
        except Exception as error:
            self.problems.append(f"worker killed after {moment:.1f} s: {error!r}")
            return True, False
        finally:
            shutil.rmtree(self.folder / "run", ignore_errors=True)

    def scheduler(self) -> tuple[bool, bool]:
        """Kill the scheduler; whether that ended the fit, and whether it was resumed."""
        moment = self.rng.uniform(0, self.seconds)
        out = self.folder / "run"
        try:
            with Killer(moment, self.cluster.scheduler.pid):
                fit(self.data, out, self.cluster.address)
            return False, False
        except VHEError as error:
            print(f"after {moment:.1f} s: {error}")
            self.cluster.close()
            self.cluster = Cluster(self.folder)
            try:
                means = fit(self.data, out, self.cluster.address, resume=True)
                return True, self.same(means)
            except VHEError as failure:
                self.problems.append(f"scheduler killed after {moment:.1f} s: {failure}")
                return True, False
        finally:
            shutil.rmtree(out, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", type=int, default=0)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--scheduler-runs", type=int, default=2)
    parser.add_argument("--store", type=Path, help="folder for the figures")
    arguments = parser.parse_args()
    found: dict[str, Any] = {"vertices": VERTICES, "workers_killed": 0, "completed": 0}
    found |= {"schedulers_killed": 0, "resumed": 0}
    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="vhe-kills-"))
    faults = Faults(folder, arguments.part)
    try:
        while found["workers_killed"] < arguments.runs:
            killed, completed = faults.worker()
            found["workers_killed"] += killed
            found["completed"] += killed and completed
            print(f"{found['completed']} of {found['workers_killed']} completed", flush=True)
        while found["schedulers_killed"] < arguments.scheduler_runs:
            killed, resumed = faults.scheduler()
            found["schedulers_killed"] += killed
            found["resumed"] += killed and resumed
            print(f"{found['resumed']} of {found['schedulers_killed']} resumed", flush=True)
    finally:
        faults.cluster.close()
        shutil.rmtree(folder, ignore_errors=True)
    found |= {"problems": faults.problems, "seconds": round(time.monotonic() - began, 1)}
    found["machine"] = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    log = ["git", "log", "-1", "--format=%h", "--", "src", "benchmarks/scale_kills.py"]
    found["commit"] = subprocess.run(log, capture_output=True, text=True).stdout.strip()
    print(json.dumps(found))
    if arguments.store:
        path = arguments.store / f"dask_faults[{arguments.part}].json"
        path.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
