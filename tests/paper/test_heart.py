"""HeaRT's Citeseer: ranks and hits against a loop, result files, the table."""

import json
from pathlib import Path

import numpy as np
import pytest

from vhe.errors import VHEError
from vhe.paper import heart


def test_scores_against_a_loop() -> None:
    rng = np.random.default_rng(0)
    positives, negatives = rng.integers(0, 9, 40) + 3.0, rng.integers(0, 9, 120) + 0.0
    hard = rng.integers(0, 12, (40, 500)) + 0.0
    found = heart.heart_scores(positives, negatives, hard)

    def rank(score: float, others: list[float]) -> float:
        best = 1 + sum(other > score for other in others)
        return (best + best + sum(other == score for other in others)) / 2

    ranks = [rank(p, negatives.tolist()) for p in positives]
    assert found.mrr == pytest.approx(np.mean([1 / r for r in ranks]))
    wins = [(p > q) + 0.5 * (p == q) for p in positives for q in negatives]
    assert found.auc == pytest.approx(np.mean(wins))
    for count, hits in ((10, found.hits10), (50, found.hits50), (100, found.hits100)):
        threshold = sorted(negatives, reverse=True)[count - 1]
        assert hits == pytest.approx(np.mean([p > threshold for p in positives]))
    hard_ranks = [rank(p, row.tolist()) for p, row in zip(positives, hard, strict=True)]
    assert found.heart_mrr == pytest.approx(np.mean([1 / r for r in hard_ranks]))
    assert found.heart_hits10 == pytest.approx(np.mean([r <= 10 for r in hard_ranks]))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A made-up benchmark of 40 vertices in two groups."""
    rng = np.random.default_rng(0)
    here = tmp_path / "data" / heart.FOLDER
    here.mkdir(parents=True)
    monkeypatch.setenv("VHE_DATA_DIR", str(tmp_path / "data"))
    words = [["cat", "purr", "paw"], ["star", "sun", "moon"]]
    texts = [" ".join(rng.choice(words[v % 2], 4)) for v in range(40)]
    (here / "data.txt").write_text("\n".join(texts) + "\n")
    pairs = [(i, j) for i in range(40) for j in range(i) if i % 2 == j % 2]
    chosen = rng.permutation(pairs)[:160]
    for name, part in zip(("train_pos", "valid_pos", "test_pos"), (100, 130, 160), strict=True):
        np.savetxt(here / f"{name}.txt", chosen[max(0, part - 100) : part][-30:], fmt="%d")
    np.savetxt(here / "train_pos.txt", chosen[:100], fmt="%d")
    others = [(i, j) for i in range(40) for j in range(i) if i % 2 != j % 2]
    np.savetxt(here / "test_neg.txt", rng.permutation(others)[:110], fmt="%d")
    hard = rng.integers(0, 40, (30, 500, 2))
    np.save(here / "heart_test_samples.npy", hard)
    return tmp_path


def test_runs_are_written_once_and_make_a_table(folder: Path) -> None:
    lines: list[str] = []
    heart.run_heart("tfidf", [0, 1], folder / "results", lines.append)
    heart.run_heart("tfidf", [0, 1], folder / "results", lines.append)
    assert len(lines) == 2
    record = json.loads((folder / "results/heart/citeseer-tfidf-0.json").read_text())
    assert record["scores"]["auc"] > 0.8
    table = "\n".join(heart.heart_table(folder / "results"))
    assert "| **TF-IDF** |" in table
    assert "2 seeds" in table
    assert "| LPFormer |" in table


def test_the_validation_links_are_not_in_the_graph(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    benchmark = heart.read_benchmark()
    given = {}
    from vhe.estimators import VHE

    def fit(self: VHE, network: object, *, validation_links: object) -> VHE:
        given.update(network=network, links=validation_links)
        raise VHEError("seen")

    monkeypatch.setattr(VHE, "fit", fit)
    with pytest.raises(VHEError, match="seen"):
        heart.measure("vhe", 0, benchmark)
    assert len(given["network"].links) == 100
    assert given["links"] == [tuple(link) for link in benchmark.validation.tolist()]


def test_a_missing_benchmark_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VHE_DATA_DIR", str(tmp_path))
    with pytest.raises(VHEError, match="heart-citeseer: cannot read the benchmark"):
        heart.read_benchmark()
