"""Seconds and peak memory of each phase of a fit by several worker processes.

    python benchmarks/scale.py [--vertices 20000] [--topics 100] [--workers 2] [--memory-limit 3GB]
        [--features degree] [--recall 200] [--data FOLDER] [--keep FOLDER]
        [--store results/scale]

The network is that of benchmarks/sizes.py. CPU seconds are those of all workers, memory is the
largest resident size of a worker during the phase (Linux), "others" the mean number of cores that
other programs used meanwhile. Which features the link posterior uses is decided by the fit to the
sample: its further scales need a posterior each, its words most of the time of the suggestions.
Runs that are compared have ``--features degree``. With ``--recall K`` the suggestions of K vertices
are compared with the exact ones: the likeliest of all vertices by the link posterior.
"""

from __future__ import annotations

import argparse
import json
import logging
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil  # Dask needs it
from sizes import write_network

from vhe.config import VHEConfig


def reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def peak_megabytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024


def cpu_seconds() -> float:
    return time.process_time()


def busy_seconds() -> float:
    """CPU seconds of all programs since the machine started."""
    times = psutil.cpu_times()
    return float(times.user + times.system + getattr(times, "nice", 0.0))


def halo_rows(work: Path) -> int:
    """The rows that the blocks receive from each other in an iteration of the solver."""
    return sum(len(np.load(path)) for path in (work / "system-embedding-halo").iterdir())


def recall(work: Path, count: int, k: int = 10) -> float:
    """Share of the exactly ``k`` likeliest partners of some vertices that are suggested.

    ``work`` holds the tables of the fit before its end.
    """
    from vhe.predict.link_posterior import LinkPosterior
    from vhe.scale.shards import Sharded, read_array, shard
    from vhe.scale.suggest import _Tables

    def result(phase: str) -> Any:
        return json.loads((work / f"{phase}.json").read_text())["result"]

    sizes, posterior = result("lists"), LinkPosterior(**result("words")["link_posterior"])
    words, starts = result("vocabulary"), np.append(0, np.cumsum(sizes))
    sample = np.random.default_rng(0).choice(starts[-1], count, replace=False)
    read = _Tables(work, sizes, posterior, words)
    queries = read(sample)
    best: list[Any] = [[] for _ in sample]
    for start in range(0, starts[-1], 20_000):
        targets = np.arange(start, min(start + 20_000, starts[-1]))
        scores = posterior.log_odds_matrix(queries, read(targets))
        for own, score, vertex in zip(best, scores, sample, strict=True):
            block = int(np.searchsorted(starts, vertex, side="right")) - 1
            ends = read_array(shard(work, "links-offsets", block))[vertex - starts[block] :][:2]
            linked = read_array(shard(work, "links", block))[ends[0] : ends[1]]
            score[np.isin(targets, np.append(linked, vertex))] = -np.inf
            chosen = np.argsort(-score)[:k]
            own += zip(-score[chosen], targets[chosen].tolist(), strict=True)
            own[:] = sorted(own)[:k]
    found = Sharded(work, "suggestions", sizes).take(sample)["row"][:, :k]
    shares = [len({*a} & {j for _, j in b}) / k for a, b in zip(found, best, strict=True)]
    return float(np.mean(shares))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vertices", type=int, default=20_000)
    parser.add_argument("--topics", type=int, default=100, help="of the synthetic network")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory-limit", default="3GB", help="of each worker")
    parser.add_argument("--data", type=Path, help="folder of the networks (default: temporary)")
    parser.add_argument("--keep", type=Path, help="folder for the model (default: deleted)")
    parser.add_argument("--store", type=Path, help="folder for the figures, such as results/scale")
    parser.add_argument(
        "--features", default=VHEConfig.link_features, help="of the link posterior (link_features)"
    )
    parser.add_argument("--recall", type=int, default=0, metavar="K")
    arguments = parser.parse_args()

    from distributed import Client, LocalCluster

    from vhe import scale

    folder = Path(tempfile.mkdtemp(prefix="vhe-scale-", dir=arguments.data))
    out = arguments.keep or folder / "model"
    phases: list[dict[str, Any]] = []
    shares: list[float] = []
    halo: list[float] = []
    try:
        vertices, edges = write_network(
            arguments.vertices, arguments.data or folder, arguments.topics
        )
        with (
            LocalCluster(
                n_workers=arguments.workers,
                threads_per_worker=1,
                memory_limit=arguments.memory_limit,
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
            ) as cluster,
            Client(cluster) as client,
        ):
            print("| phase | seconds | CPU seconds | peak memory of a worker, MB |")
            print("|---|---|---|---|")
            began, cpu = 0.0, 0.0
            started, busy, own = time.monotonic(), busy_seconds(), time.process_time()
            of_workers = sum(client.run(cpu_seconds).values())

            def on_phase(name: str, moment: str) -> None:
                nonlocal began, cpu
                if moment == "start":
                    client.run(reset_peak)
                    began, cpu = time.monotonic(), sum(client.run(cpu_seconds).values())
                    return
                found = {
                    "phase": name,
                    "seconds": round(time.monotonic() - began, 2),
                    "cpu_seconds": round(sum(client.run(cpu_seconds).values()) - cpu, 2),
                    "peak_mb": max(client.run(peak_megabytes).values()),
                }
                phases.append(found)
                print(f"| {' | '.join(map(str, found.values()))} |", flush=True)
                if name == "system of embedding":
                    halo.append(halo_rows(out / "work") / arguments.vertices)
                if name == "suggestions" and arguments.recall:
                    shares.append(recall(out / "work", arguments.recall))
                    print(f"recall of the 10 likeliest: {shares[0]:.3f}", flush=True)

            scale.fit(
                vertices,
                edges,
                out,
                scheduler=cluster.scheduler_address,
                config=VHEConfig(link_features=arguments.features),
                seed=0,
                verbose=False,
                on_phase=on_phase,
            )
            others = busy_seconds() - busy - (time.process_time() - own)
            others -= sum(client.run(cpu_seconds).values()) - of_workers
            others /= time.monotonic() - started
        found = {
            "vertices": arguments.vertices,
            "topics": arguments.topics,
            "workers": arguments.workers,
            "memory_limit": arguments.memory_limit,
            "features": arguments.features,
            "others": round(max(others, 0.0), 2),
            "seconds": round(sum(phase["seconds"] for phase in phases), 1),
            "cpu_seconds": round(sum(phase["cpu_seconds"] for phase in phases), 1),
            "peak_mb": max(phase["peak_mb"] for phase in phases),
            "recall": shares[0] if shares else None,
            "halo_rows_per_vertex": round(halo[0], 4),
            "phases": phases,
        }
        print(f"| all | {found['seconds']} | {found['cpu_seconds']} | {found['peak_mb']} |")
        if arguments.store:
            _store(arguments.store / "engine.json", found)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _store(path: Path, found: dict[str, Any]) -> None:
    """Add a run to a file, in place of an older one of the same size and workers."""
    runs = json.loads(path.read_text()) if path.exists() else []
    same = ("vertices", "topics", "workers", "memory_limit", "features")
    runs = [run for run in runs if any(run.get(key) != found[key] for key in same)]
    runs = sorted([*runs, found], key=lambda run: (run["workers"], run["vertices"]))
    path.write_text(json.dumps(runs, indent=1) + "\n")


if __name__ == "__main__":
    main()
