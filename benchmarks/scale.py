"""Seconds and peak memory of each phase of a fit by several worker processes.

    python benchmarks/scale.py [--vertices 20000] [--workers 2] [--memory-limit 3GB] [--recall 200]

The network is that of benchmarks/sizes.py, written to Parquet part files before the clock starts.
Memory is the largest resident size of a worker during the phase (Linux). With ``--recall K`` the
suggestions of K vertices are compared with the exact ones.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

PART_ROWS = 100_000


def write_network(n: int, folder: Path) -> None:
    """Write a synthetic network, one part file after the other."""
    import pyarrow as pa
    from pyarrow import parquet

    from vhe.bench.measure import synthetic

    network = synthetic(n)
    tables = {
        "vertices": pa.table({"id": np.arange(n), "text": list(network.texts)}),
        "edges": pa.table({"source": network.edges[:, 0], "target": network.edges[:, 1]}),
    }
    for name, table in tables.items():
        (folder / name).mkdir(parents=True)
        for start in range(0, len(table), PART_ROWS):
            part = folder / name / f"part-{start // PART_ROWS:05d}.parquet"
            parquet.write_table(table.slice(start, PART_ROWS), part, row_group_size=20_000)


def reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def peak_megabytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024


def recall(model: object, count: int, k: int = 10) -> float:
    """Share of the exactly ``k`` largest cosines that are among the candidates' first ranks.

    The exact search compares embeddings only, so that it is a lower bound where the link posterior
    ranks by other features, too.
    """
    from vhe.scale import ShardedModel

    assert isinstance(model, ShardedModel)
    unit = np.concatenate([mean for _, mean, _ in model.shards()])
    unit /= np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-12)
    sample = np.random.default_rng(0).choice(len(unit), count, replace=False)
    exact = np.argsort(-(unit[sample] @ unit.T), axis=1)[:, : k + 1]
    found = []
    for vertex, near in zip(sample.tolist(), exact, strict=True):
        suggested = {suggestion.id for suggestion in model.suggest(vertex, k)}
        found.append(len(suggested & {*near.tolist()}) / k)
    return float(np.mean(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vertices", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory-limit", default="3GB", help="of each worker")
    parser.add_argument("--folder", type=Path, help="for the data (default: a temporary folder)")
    parser.add_argument("--recall", type=int, default=0, metavar="K")
    arguments = parser.parse_args()

    from distributed import Client, LocalCluster

    from vhe import scale

    folder = Path(tempfile.mkdtemp(prefix="vhe-scale-", dir=arguments.folder))
    try:
        write_network(arguments.vertices, folder)
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
            print("| phase | seconds | peak memory of a worker, MB |\n|---|---|---|")
            began = 0.0

            def on_phase(name: str, moment: str) -> None:
                nonlocal began
                if moment == "start":
                    client.run(reset_peak)
                    began = time.monotonic()
                else:
                    seconds = time.monotonic() - began
                    peak = max(client.run(peak_megabytes).values())
                    print(f"| {name} | {seconds:.1f} | {peak:,} |", flush=True)

            started = time.monotonic()
            model = scale.fit(
                folder / "vertices",
                folder / "edges",
                folder / "model",
                scheduler=cluster.scheduler_address,
                seed=0,
                verbose=False,
                on_phase=on_phase,
            )
            print(f"| all | {time.monotonic() - started:.1f} | |")
        if arguments.recall:
            print(f"recall of the 10 nearest: {recall(model, arguments.recall):.3f}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
