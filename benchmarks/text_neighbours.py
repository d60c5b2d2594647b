"""Text neighbours by clusters (what `vhe fit` does) and by an index (usearch): recall and time.

    python benchmarks/text_neighbours.py [--networks 100000,debian] [--queries 500]
        [--only clusters] [--data FOLDER] [--store results/scale]

A network is a named dataset, or the number of vertices of one of benchmarks/sizes.py. The codes are
those of the initial word vectors. Recall is the share of the exact ten nearest texts of some texts
that are among the pairs found; CPU seconds are those of one thread, without the exact search.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pyarrow import parquet
from sizes import write_network

from vhe.data.datasets import load
from vhe.data.text import PADDING, Corpus
from vhe.graph.model import NEIGHBOURS
from vhe.graph.neighbours import ROUNDING, _unit_rows, nearest_texts
from vhe.text.codes import TextCodes
from vhe.text.lsa import lsa_word_vectors

DIM = 200

Pairs = tuple[Any, Any]


def text_codes(name: str, data: Path) -> Any:
    """The codes (n, d) of the texts that are not empty."""
    if name.isdigit():
        vertices, _ = write_network(int(name), data)
        corpus = Corpus.build(parquet.read_table(vertices)["text"].to_pylist())
    else:
        corpus = Corpus.build(load(name).texts)
    words = torch.zeros(len(corpus.vocabulary) + 1, DIM)
    words[PADDING + 1 :] = torch.from_numpy(lsa_word_vectors(corpus, DIM, 0))
    codes, _ = TextCodes(corpus).table(words)
    return codes[corpus.lengths > 0]


def by_index(codes: Any, dtype: str, expansion: int) -> Pairs:
    """The pairs (k, 2) of each text and its nearest ones, by usearch."""
    from usearch.index import Index

    n, unit = len(codes), _unit_rows(codes)
    index = Index(ndim=unit.shape[1], metric="ip", dtype=dtype, expansion_search=expansion)
    index.add(np.arange(n), unit, threads=1)
    found = index.search(unit, NEIGHBOURS + 1, threads=1)
    i, j = np.repeat(np.arange(n), NEIGHBOURS + 1), found.keys.astype(np.int64).ravel()
    other = i != j
    pairs = np.unique(np.sort(np.stack([i[other], j[other]], axis=1), axis=1), axis=0)
    return pairs, None


def recall(codes: Any, pairs: Any, queries: int) -> float:
    """The share of the ten nearest texts of some texts that are among the pairs.

    Of equally near texts, which are common (duplicates), any will do.
    """
    n, unit = len(codes), _unit_rows(codes)
    sample = np.random.default_rng(0).choice(n, min(queries, n), replace=False)
    ends = np.concatenate([pairs, pairs[:, ::-1]])
    ends = ends[np.argsort(ends[:, 0], kind="stable")]
    first, last = (np.searchsorted(ends[:, 0], sample, side=side) for side in ("left", "right"))
    found = total = 0
    for i, start, end in zip(sample.tolist(), first, last, strict=True):
        cosine = unit @ unit[i]
        cosine[i] = -2
        best = np.partition(cosine, n - NEIGHBOURS)[n - NEIGHBOURS :]
        best = best[best > 0]
        near = cosine[ends[start:end, 1]] >= best.min(initial=2) - ROUNDING
        found += min(int(near.sum()), len(best))
        total += len(best)
    return float(found / max(total, 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", default="100000,debian")
    parser.add_argument("--data", type=Path, default=Path(), help="folder of the networks")
    parser.add_argument("--only", help="method, such as clusters (default: all)")
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--store", type=Path, help="folder for the figures, such as results/scale")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    ways: dict[str, Callable[[Any], Pairs]] = {"clusters": nearest_texts}
    for dtype, expansion in (("f16", 64), ("i8", 64)):
        name = f"usearch {dtype}, expansion {expansion}"
        ways[name] = lambda codes, d=dtype, e=expansion: by_index(codes, d, e)  # type: ignore[misc]
    rows = []
    print("| network | texts | method | CPU s | recall |\n|---|---|---|---|---|")
    for network in arguments.networks.split(","):
        codes = text_codes(network, arguments.data)
        for name, way in ways.items():
            if arguments.only not in (None, name):
                continue
            began = time.process_time()
            pairs, _ = way(codes)
            seconds = round(time.process_time() - began, 1)
            share = round(recall(codes, pairs, arguments.queries), 4)
            print(f"| {network} | {len(codes):,} | {name} | {seconds} | {share} |", flush=True)
            rows.append(
                {
                    "network": network,
                    "texts": len(codes),
                    "method": name,
                    "cpu_seconds": seconds,
                    "recall": share,
                }
            )
    if arguments.store:
        path = arguments.store / "text-neighbours.json"
        known = {(row["network"], row["method"]) for row in rows}
        former = json.loads(path.read_text()) if path.exists() else []
        former = [row for row in former if (row["network"], row["method"]) not in known]
        path.write_text(json.dumps(former + rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
