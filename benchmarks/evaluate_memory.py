"""How much memory `vhe evaluate link` takes on a large network, a method at a time.

    python benchmarks/evaluate_memory.py [--vertices 60000] [--methods tfidf,diffused-text,tadw]

The network is made up: texts of 60 words out of 30,000 in 200 topics, three links a vertex, most of
them inside a topic. Each method runs in a process of its own.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

WORDS, TOPICS, LENGTH, LINKS = 30_000, 200, 60, 3


def write_network(folder: Path, n: int) -> tuple[Path, Path]:
    """A Parquet file of vertices and one of edges."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    topic = rng.integers(TOPICS, size=n)
    # Word k of a topic stands in the vocabulary in steps of the number of topics.
    common = (WORDS * rng.random((n, LENGTH)) ** 3).astype(np.int64)
    own = common - common % TOPICS + topic[:, None]
    words = np.where(rng.random((n, LENGTH)) < 0.4, own, common)
    texts = [" ".join(f"w{k}" for k in row) for row in words]
    order = np.argsort(topic, kind="stable")
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    source = np.repeat(np.arange(n), LINKS)
    near = order[(place[source] + rng.integers(1, 100, size=len(source))) % n]
    target = np.where(rng.random(len(source)) < 0.9, near, rng.integers(n, size=len(source)))
    vertices, edges = folder / "vertices.parquet", folder / "edges.parquet"
    pq.write_table(pa.table({"id": np.arange(n), "text": texts}), vertices)
    pq.write_table(pa.table({"source": source, "target": target}), edges)
    return vertices, edges


def measure(words: list[str]) -> None:
    """Run the command, and print the most memory that this process has held."""
    from vhe.cli import main

    began = time.monotonic()
    status = main(words)
    unit = 2**30 if sys.platform == "darwin" else 2**20  # bytes there, KB elsewhere
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    print(f"  peak {most:.2f} GB, {time.monotonic() - began:.0f} s\n", flush=True)
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
