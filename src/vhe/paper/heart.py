"""HeaRT's Citeseer: a public benchmark of link prediction with a fixed split (Li et al. 2023).

Existing setting: each test link is ranked against all test negatives; Hits@K is the share of test
links above the K-th highest negative (as OGB counts it). HeaRT setting: each test link is ranked
against 500 hard negatives of its own. A rank is the mean of the optimistic and the pessimistic
rank. Settings are chosen, and the link posterior is fitted, on the validation links only.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vhe.data.network import TextNetwork
from vhe.errors import VHEError
from vhe.evaluation import methods
from vhe.paper.tables import display, in_order
from vhe.runtime.files import atomic_write
from vhe.runtime.messages import counted
from vhe.runtime.provenance import provenance

FOLDER = "heart-citeseer"
METRICS = {
    "auc": "AUC",
    "mrr": "MRR",
    "hits10": "Hits@10",
    "hits50": "Hits@50",
    "hits100": "Hits@100",
    "heart_mrr": "HeaRT MRR",
    "heart_hits10": "HeaRT Hits@10",
}

Links = NDArray[np.int64]


@dataclass(frozen=True)
class Benchmark:
    """The network of the training links, and links (m, 2) with their negatives."""

    network: TextNetwork
    validation: Links
    test: Links
    negatives: Links  # (m, 2)
    hard_negatives: Links  # (m, 500, 2)


@dataclass(frozen=True)
class HeartScores:
    """Scores of one fit in both settings, each a fraction between 0 and 1."""

    auc: float
    mrr: float
    hits10: float
    hits50: float
    hits100: float
    heart_mrr: float
    heart_hits10: float


def read_benchmark() -> Benchmark:
    """Read the files from the folder ``heart-citeseer`` in VHE_DATA_DIR."""
    folder = Path(os.environ.get("VHE_DATA_DIR", "")) / FOLDER
    try:
        texts = (folder / "data.txt").read_text(encoding="utf-8").splitlines()
        train, validation, test, negatives = (
            np.loadtxt(folder / f"{name}.txt", dtype=np.int64, ndmin=2)
            for name in ("train_pos", "valid_pos", "test_pos", "test_neg")
        )
        hard = np.load(folder / "heart_test_samples.npy", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise VHEError(
            f"{folder}: cannot read the benchmark ({error}); put its files, as docs/reproducing.md "
            f"lists them, into a folder {FOLDER} and set VHE_DATA_DIR to the folder around it"
        ) from None
    network = TextNetwork(range(len(texts)), texts, train, directed=False, name=FOLDER)
    return Benchmark(network, validation, test, negatives, hard)


def measure(method: str, seed: int, benchmark: Benchmark, **settings: Any) -> HeartScores:
    """Fit a method to the training links and score it on the test links."""
    model: Any = methods.make(method, seed, **settings)
    own_links = {}
    if hasattr(model, "predict_proba"):
        own_links["validation_links"] = [(int(i), int(j)) for i, j in benchmark.validation]
    model.fit(benchmark.network, **own_links)

    def score(pairs: Links) -> NDArray[np.floating]:
        flat = pairs.reshape(-1, 2)
        found: NDArray[np.floating] = model.score_indices(flat[:, 0], flat[:, 1])
        return found.reshape(pairs.shape[:-1])

    return heart_scores(
        score(benchmark.test), score(benchmark.negatives), score(benchmark.hard_negatives)
    )


def heart_scores(
    positives: NDArray[np.floating], negatives: NDArray[np.floating], hard: NDArray[np.floating]
) -> HeartScores:
    """The scores, from those of test links (m,), of negatives (k,) and of hard ones (m, 500)."""
    against_all = _ranks(positives, np.broadcast_to(negatives, (len(positives), len(negatives))))
    against_hard = _ranks(positives, hard)
    ordered = np.sort(negatives)
    return HeartScores(
        auc=float(1 - (against_all - 1).mean() / len(negatives)),
        mrr=float((1 / against_all).mean()),
        hits10=float((positives > ordered[-10]).mean()),
        hits50=float((positives > ordered[-50]).mean()),
        hits100=float((positives > ordered[-100]).mean()),
        heart_mrr=float((1 / against_hard).mean()),
        heart_hits10=float((against_hard <= 10).mean()),
    )


def _ranks(positives: NDArray[np.floating], others: NDArray[np.floating]) -> NDArray[np.float64]:
    above = (others > positives[:, None]).sum(axis=1)
    not_below = (others >= positives[:, None]).sum(axis=1)
    ranks: NDArray[np.float64] = 1 + (above + not_below) / 2
    return ranks


def run_heart(method: str, seeds: Sequence[int], results: Path, report: Any) -> None:
    """Measure each seed that has no result file yet, and write it."""
    benchmark: Benchmark | None = None
    for seed in seeds:
        path = result_path(results, method, seed)
        if path.exists():
            continue
        benchmark = benchmark or read_benchmark()
        scores = asdict(measure(method, seed, benchmark))
        record = provenance(seed) | {"method": method, "scores": scores}
        with atomic_write(path) as temporary:
            temporary.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        report(f"{method} seed {seed}: " + figures_line(scores))


def result_path(results: Path, method: str, seed: int) -> Path:
    return results / "heart" / f"citeseer-{method}-{seed}.json"


def figures_line(scores: dict[str, float]) -> str:
    return ", ".join(f"{METRICS[name]} {100 * scores[name]:.1f}" for name in METRICS)


def read_records(results: Path) -> list[dict[str, Any]]:
    """The measured seeds, with their origin as in other results."""
    paths = sorted((results / "heart").glob("citeseer-*.json"))
    records = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    return [record | {"origin": record} for record in records]


def read_scores(results: Path) -> dict[str, list[dict[str, float]]]:
    """The scores of each measured seed, by method."""
    found: dict[str, list[dict[str, float]]] = {}
    for record in read_records(results):
        found.setdefault(record["method"], []).append(record["scores"])
    return found


def heart_table(results: Path) -> list[str]:
    """Mean and standard deviation over the seeds beside the published figures, in Markdown."""
    lines = ["| method | " + " | ".join(METRICS.values()) + " | source |"]
    lines.append("|---" * (len(METRICS) + 2) + "|")
    measured = read_scores(results)
    for method in in_order(measured):
        runs, cells = measured[method], []
        for name in METRICS:
            values = 100 * np.array([run[name] for run in runs])
            spread = f" ± {values.std(ddof=1):.1f}" if len(values) > 1 else ""
            cells.append(f"{values.mean():.1f}{spread}")
        source = f"measured here, {counted(len(runs), 'seed')}"
        lines.append(f"| **{display(method)}** | " + " | ".join(cells) + f" | {source} |")
    for method, (figures, source) in published_scores().items():
        cells = [figures.get(name, "") for name in METRICS]
        lines.append(f"| {method} | " + " | ".join(cells) + f" | {source} |")
    return lines


def published_scores() -> dict[str, tuple[dict[str, str], str]]:
    """Published figures in percent by metric, and their sources, by method."""
    rows: dict[str, tuple[dict[str, str], str]] = {}
    with files(__package__).joinpath("heart.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            figures, source = rows.setdefault(row["method"], ({}, row["source"]))
            figures[row["metric"]] = row["value"]
            if row["source"] not in source:
                rows[row["method"]] = (figures, f"{source}; {row['source']}")
    return rows
