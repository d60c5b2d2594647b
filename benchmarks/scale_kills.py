"""Kill -9 of workers and of the scheduler during fits of the engine: results/scale/kills.json.

    python benchmarks/scale_kills.py [--runs 20] [--scheduler-runs 3] [--store results/scale]

In each run, a random one of two workers ends at a random moment of the fit; the run counts if it
completes with the embedding of an undisturbed fit. In further runs the process of the scheduler
ends, is started again, and the fit is resumed.
"""

from __future__ import annotations

import argparse
import json
import os
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--scheduler-runs", type=int, default=3)
    parser.add_argument("--store", type=Path, help="folder for the figures, such as results/scale")
    arguments = parser.parse_args()
    rng = random.Random(0)
    folder = Path(tempfile.mkdtemp(prefix="vhe-kills-"))
    found: dict[str, Any] = {"vertices": VERTICES, "workers killed": 0, "schedulers killed": 0}
    found |= {"completed": 0, "resumed": 0, "seconds": []}
    cluster = Cluster(folder)
    try:
        data = write_network(VERTICES, folder)
        fit(data, folder / "warm", cluster.address)  # workers have imported everything
        began = time.monotonic()
        reference = fit(data, folder / "reference", cluster.address)
        seconds = time.monotonic() - began
        for number in range(arguments.runs):
            out, moment = folder / f"run{number}", rng.uniform(0, seconds)
            pid = rng.choice(cluster.worker_pids())
            timer = threading.Timer(moment, os.kill, (pid, signal.SIGKILL))
            timer.start()
            means = fit(data, out, cluster.address)
            timer.join()
            found["workers killed"] += 1
            found["completed"] += bool(np.allclose(means, reference, atol=1e-4))
            found["seconds"].append(round(moment, 2))
            print(f"{found['completed']} of {number + 1} completed", flush=True)
            shutil.rmtree(out)
        for number in range(arguments.scheduler_runs):
            out, moment = folder / f"resumed{number}", rng.uniform(0.2, 0.8) * seconds
            timer = threading.Timer(moment, cluster.scheduler.kill)
            timer.start()
            try:
                means = fit(data, out, cluster.address)
            except VHEError as error:
                print(f"after {moment:.1f} s: {error}")
                cluster.close()
                cluster = Cluster(folder)
                means = fit(data, out, cluster.address, resume=True)
                found["schedulers killed"] += 1
                found["resumed"] += bool(np.allclose(means, reference, atol=1e-4))
            print(f"{found['resumed']} of {found['schedulers killed']} resumed", flush=True)
    finally:
        cluster.close()
        shutil.rmtree(folder, ignore_errors=True)
    if arguments.store:
        (arguments.store / "kills.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
