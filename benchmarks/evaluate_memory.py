"""Peak memory of `vhe evaluate link` on a large network, by method.

    python benchmarks/evaluate_memory.py [--vertices 60000] [--methods tfidf,diffused-text,tadw]

The network is synthetic (`vhe.bench.measure.synthetic`). Each method runs in its own process.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from pathlib import Path


def write_network(folder: Path, n: int) -> tuple[Path, Path]:
    """Write Parquet files of the vertices and the edges of a synthetic network."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from vhe.bench.measure import synthetic

    network = synthetic(n)
    vertices, edges = folder / "vertices.parquet", folder / "edges.parquet"
    pq.write_table(pa.table({"id": list(network.ids), "text": list(network.texts)}), vertices)
    source, target = network.edges.T
    pq.write_table(pa.table({"source": source, "target": target}), edges)
    return vertices, edges


def measure(command: list[str]) -> None:
    """Run the command and print the peak memory of this process."""
    from vhe.bench.measure import peak_gigabytes
    from vhe.cli import main

    started = time.monotonic()
    status = main(command)
    print(f"  peak {peak_gigabytes():.2f} GB, {time.monotonic() - started:.0f} s\n", flush=True)
    sys.exit(status)


def run() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vertices", type=int, default=60_000)
    parser.add_argument("--methods", default="tfidf,diffused-text,tadw")
    parser.add_argument("--protocol", default="clean")
    parser.add_argument("--ratio", default="55")
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as folder:
        vertices, edges = write_network(Path(folder), arguments.vertices)
        for method in arguments.methods.split(","):
            command = ["evaluate", "link", "--vertices", str(vertices), "--edges", str(edges)]
            command += ["--method", method, "--protocol", arguments.protocol, "--seeds", "0"]
            command += ["--ratio", arguments.ratio]
            print(f"{method}, {arguments.vertices:,} vertices, {arguments.protocol}", flush=True)
            process = multiprocessing.get_context("spawn").Process(target=measure, args=(command,))
            process.start()
            process.join()


if __name__ == "__main__":
    run()
