"""Speed of the search for the most probable missing links, relative to scoring all pairs.

    python benchmarks/suggest.py [--vertices 63000] [--k 10]

Prints ratios to scoring the pairs one by one (extrapolated from a sample): one call per vertex,
exact search in blocks, and the index with exact ranking; and the recall of the index. The embedding
is random, in nested clusters.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from vhe.predict.scoring import CosineMethod
from vhe.predict.suggest import exact_partners, partners


class Embedding(CosineMethod):
    """A method with a given embedding."""

    def __init__(self, rows: np.ndarray) -> None:
        self.embedding_ = rows


def clusters(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Return rows in nested clusters."""
    groups = rng.normal(size=(max(n // 2000, 1), d))
    centres = groups[rng.integers(len(groups), size=max(n // 50, 1))] + rng.normal(
        size=(max(n // 50, 1), d)
    )
    rows = centres[rng.integers(len(centres), size=n)] + rng.normal(size=(n, d))
    return rows.astype(np.float32)


def seconds(work: Callable[..., Any], *arguments: object) -> tuple[float, Any]:
    started = time.perf_counter()
    result = work(*arguments)
    return time.perf_counter() - started, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vertices", type=int, default=63_000)
    parser.add_argument("--dimensions", type=int, default=200)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--sample", type=int, default=2000, help="vertices compared exactly")
    arguments = parser.parse_args()
    n, rng = arguments.vertices, np.random.default_rng(0)
    rows = clusters(n, arguments.dimensions, rng)
    links = rng.integers(n, size=(4 * n, 2))
    method = Embedding(rows)

    pairs = rng.integers(n, size=(500, 2))
    single, _ = seconds(lambda: [method.score_indices(pair[:1], pair[1:]) for pair in pairs])
    every_pair = single / len(pairs) * n * (n - 1) / 2

    queries = rng.choice(n, min(20, n), replace=False)
    row, _ = seconds(lambda: [method.score_matrix(v[None], np.arange(n)) for v in queries])
    every_row = row / len(queries) * n

    by_index, (found, _) = seconds(partners, rows, links, arguments.k)
    chosen = np.sort(rng.choice(n, min(arguments.sample, n), replace=False))
    no_bias = np.zeros(len(rows), dtype=np.float32)
    exact_sample, (exact, _) = seconds(exact_partners, rows, links, arguments.k, chosen, no_bias)
    exact_all = exact_sample / len(chosen) * n
    recall = np.mean(
        [len(set(a) & set(b)) / arguments.k for a, b in zip(found[chosen], exact, strict=True)]
    )
    print(f"{n:,} vertices, {arguments.dimensions} dimensions, {arguments.k} links per vertex")
    print(f"pairs one by one (from {len(pairs)})       {every_pair:12,.0f} s   1x")
    for name, took in (
        (f"one call per vertex (from {len(queries)})", every_row),
        (f"blocks, exact (from {len(chosen):,})", exact_all),
        ("index, ranked exactly", by_index),
    ):
        print(f"{name:32s} {took:12,.1f} s   {every_pair / took:,.0f}x")
    print(f"recall of the exact top {arguments.k}: {recall:.4f}")


if __name__ == "__main__":
    main()
