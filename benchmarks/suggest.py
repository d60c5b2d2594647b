"""How much faster the likeliest missing links of every vertex are found than by scoring all pairs.

    python benchmarks/suggest.py [--vertices 63000] [--k 10]

Prints three ratios to scoring the pairs one by one (timed on a sample, and extrapolated): of one
call for a whole row, of exact search in blocks, and of the index with exact ranking; and the share
of the exact answer that the index finds. The embedding is random, in clusters as a network has.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from vhe.predict import suggest
from vhe.predict.scoring import CosineMethod


class Embedding(CosineMethod):
    """A method that is its embedding."""

    def __init__(self, rows: np.ndarray) -> None:
        self.embedding_ = rows


def clusters(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Rows around centres that are themselves in groups: near ones, and nearer ones."""
    groups = rng.normal(size=(max(n // 2000, 1), d))
    centres = groups[rng.integers(len(groups), size=max(n // 50, 1))] + rng.normal(
        size=(max(n // 50, 1), d)
    )
    rows = centres[rng.integers(len(centres), size=n)] + rng.normal(size=(n, d))
    return rows.astype(np.float32)


def seconds(work: Callable[..., Any], *arguments: object) -> tuple[float, Any]:
    began = time.perf_counter()
    result = work(*arguments)
    return time.perf_counter() - began, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vertices", type=int, default=63_000)
    parser.add_argument("--dimensions", type=int, default=200)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--sample", type=int, default=2000, help="vertices compared exactly")
    given = parser.parse_args()
    n, rng = given.vertices, np.random.default_rng(0)
    rows = clusters(n, given.dimensions, rng)
    links = rng.integers(n, size=(4 * n, 2))
    method = Embedding(rows)

    pairs = rng.integers(n, size=(500, 2))
    single, _ = seconds(lambda: [method.score_indices(pair[:1], pair[1:]) for pair in pairs])
    every_pair = single / len(pairs) * n * (n - 1) / 2

    asked = rng.choice(n, min(20, n), replace=False)
    row, _ = seconds(lambda: [method.score_matrix(v[None], np.arange(n)) for v in asked])
    every_row = row / len(asked) * n

    by_index, (found, _) = seconds(neighbours.partners, rows, links, given.k)
    chosen = np.sort(rng.choice(n, min(given.sample, n), replace=False))
    nobody_is_popular = np.zeros(len(rows), dtype=np.float32)
    exact_sample, (exact, _) = seconds(
        neighbours.exact_partners, rows, links, given.k, chosen, nobody_is_popular
    )
    exact_all = exact_sample / len(chosen) * n
    recall = np.mean(
        [len(set(a) & set(b)) / given.k for a, b in zip(found[chosen], exact, strict=True)]
    )
    print(f"{n:,} vertices of {given.dimensions} numbers, {given.k} links each")
    print(f"pairs one by one (from {len(pairs)})       {every_pair:12,.0f} s   1x")
    for what, took in (
        (f"a row a call (from {len(asked)})", every_row),
        (f"blocks, exact (from {len(chosen):,})", exact_all),
        ("index, ranked exactly", by_index),
    ):
        print(f"{what:32s} {took:12,.1f} s   {every_pair / took:,.0f}x")
    print(f"recall of the exact top {given.k}: {recall:.4f}")


if __name__ == "__main__":
    main()
