"""The engine of several machines against one process: results/scale/agreement.json.

    python benchmarks/scale_agreement.py [--networks cora,hepth,seealso] [--store results/scale]

Both fit the training links of a split (clean, 55 %, seed 0) with the same settings, the engine by
two worker processes, once in other parts and blocks. Its sample is the whole network, as for all
networks of up to 20,000 vertices; ``half`` is its AUC with words from half of the vertices. AUC is
that of the cosine of the embeddings on the held-out links.
"""

from __future__ import annotations

import argparse
import json
import logging
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from distributed import LocalCluster
from pyarrow import parquet

import vhe
from vhe import scale
from vhe.runtime.arrays import unit_rows
from vhe.scale.words import LINK_FEATURES

RATIO, SEED = 0.55, 0


class Cosine:
    """A method that scores pairs by the cosine of embeddings."""

    def __init__(self, embedding: Any) -> None:
        self.unit = unit_rows(embedding)

    def score_indices(self, i: Any, j: Any) -> Any:
        return (self.unit[i] * self.unit[j]).sum(axis=1)


def write(network: vhe.TextNetwork, folder: Path, parts: int) -> None:
    ids = np.arange(len(network))
    vertices = pa.table({"id": ids, "text": list(network.texts)})
    edges = pa.table({"source": network.edges[:, 0], "target": network.edges[:, 1]})
    for name, table in (("vertices", vertices), ("edges", edges)):
        (folder / name).mkdir(parents=True)
        for k, rows in enumerate(np.array_split(np.arange(len(table)), parts)):
            path = folder / name / f"part-{k}.parquet"
            parquet.write_table(table.slice(rows[0], len(rows)), path)


def compared(name: str, address: str) -> dict[str, Any]:
    network = vhe.load(name)
    train, test = network.split_edges(RATIO, seed=SEED)
    model = vhe.VHE(
        random_state=SEED, verbose=False, threads=1, link_features=",".join(LINK_FEATURES)
    )
    model.fit(train)
    n, found = len(train), {"network": name, "vertices": len(train)}
    found["auc_one_process"] = 100 * vhe.evaluate(Cosine(model.embedding_), test).auc
    runs = {"same_words": (n, 3, None), "other_parts": (n, 5, n // 5), "half": (n // 2, 3, None)}
    reference: Any = None
    for run, (sample, parts, rows) in runs.items():
        with tempfile.TemporaryDirectory() as folder:
            write(train, Path(folder), parts)
            fitted = scale.fit(
                Path(folder) / "vertices",
                Path(folder) / "edges",
                Path(folder) / "model",
                scheduler=address,
                seed=SEED,
                verbose=False,
                sample=sample,
                rows_per_part=rows,
                rows_per_block=rows,
            )
            means = np.concatenate([np.array(mean) for _, mean, _ in fitted.shards()])
        found[f"auc_{run}"] = 100 * vhe.evaluate(Cosine(means), test).auc
        if run == "same_words":
            reference = means
            found["least_cosine"] = float(_cosines(means, model.embedding_).min())
        elif run == "other_parts":
            found["least_cosine_other_parts"] = float(_cosines(means, reference).min())
    return {k: round(v, 7) if isinstance(v, float) else v for k, v in found.items()}


def _cosines(a: Any, b: Any) -> Any:
    return (unit_rows(a.astype(np.float64)) * unit_rows(b.astype(np.float64))).sum(axis=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", default="cora,hepth,seealso")
    parser.add_argument("--store", type=Path, help="folder for the figures, such as results/scale")
    arguments = parser.parse_args()
    rows = []
    with LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
    ) as cluster:
        for name in arguments.networks.split(","):
            rows.append(compared(name, cluster.scheduler_address))
            print(json.dumps(rows[-1]), flush=True)
    if arguments.store:
        (arguments.store / "agreement.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
