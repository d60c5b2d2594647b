"""How much memory `vhe evaluate link` takes on a large network, a method at a time.

    python benchmarks/evaluate_memory.py [--vertices 60000] [--methods tfidf,diffused-text,tadw]

The network is made up (`vhe.bench.measure.made_up`). Each method runs in a process of its own.
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
    """A Parquet file of vertices and one of edges."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from vhe.bench.measure import made_up

    network = made_up(n)
    vertices, edges = folder / "vertices.parquet", folder / "edges.parquet"
    pq.write_table(pa.table({"id": list(network.ids), "text": list(network.texts)}), vertices)
    source, target = network.edges.T
    pq.write_table(pa.table({"source": source, "target": target}), edges)
    return vertices, edges


def measure(words: list[str]) -> None:
    """Run the command, and print the most memory that this process has held."""
    from vhe.bench.measure import peak_gigabytes
    from vhe.cli import main

    began = time.monotonic()
    status = main(words)
    print(f"  peak {peak_gigabytes():.2f} GB, {time.monotonic() - began:.0f} s\n", flush=True)
    sys.exit(status)


def run() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vertices", type=int, default=60_000)
    parser.add_argument("--methods", default="tfidf,diffused-text,tadw")
    parser.add_argument("--protocol", default="clean")
    parser.add_argument("--ratio", default="55")
    told = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as folder:
        vertices, edges = write_network(Path(folder), told.vertices)
        for method in told.methods.split(","):
            words = ["evaluate", "link", "--vertices", str(vertices), "--edges", str(edges)]
            words += ["--method", method, "--protocol", told.protocol, "--seeds", "0"]
            words += ["--ratio", told.ratio]
            print(f"{method}, {told.vertices:,} vertices, {told.protocol}", flush=True)
            process = multiprocessing.get_context("spawn").Process(target=measure, args=(words,))
            process.start()
            process.join()


if __name__ == "__main__":
    run()
