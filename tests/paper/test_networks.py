"""The page of networks of other kinds: means, the best of a column, differences."""

import json
from pathlib import Path

from vhe.paper.networks import networks_page

Row = tuple[int, str, int, float, float]  # percentage, method, seed, AUC, MRR


def write(folder: Path, name: str, rows: list[Row]) -> None:
    keys = ("ratio", "method", "seed", "auc", "mrr")
    stored = {
        "network": name,
        "vertices": 10,
        "links": 20,
        "origin": {"git": "0123456789abcdef"},
        "scores": [dict(zip(keys, row, strict=True)) for row in rows],
    }
    (folder / "networks").mkdir(exist_ok=True)
    (folder / "networks" / f"{name}.json").write_text(json.dumps(stored))


def test_means_over_seeds_and_the_best_of_each_measure(tmp_path: Path) -> None:
    rows = [(15, "vhe", 0, 0.9, 0.5), (15, "vhe", 1, 0.8, 0.3), (15, "tfidf", 0, 0.7, 0.45)]
    rows += [(15, "tfidf", 1, 0.7, 0.45), (15, "tfidf", 2, 0.1, 0.1), (15, "tadw", 0, 0.6, 0.1)]
    write(tmp_path, "perl", rows)
    page = "\n".join(networks_page(tmp_path))
    assert "| `VHE` | **85.0** / 40.0 |" in page
    assert "| TF-IDF | 70.0 / **45.0** |" in page
    assert "TADW" not in page  # not measured with the second seed
    assert "10 vertices, 4.0 links per vertex; seeds 0 to 1; `VHE` at commit 0123456789." in page
    assert "AUC: `VHE` is at or above one scale, diffused text and TF-IDF in 1 of 1" in page
    assert "at worst -5.0 (Perl modules, 15 %)" in page


def test_ablations_are_mean_differences_of_the_same_fit(tmp_path: Path) -> None:
    removed = ("scales", "words", "degree", "structure", "scales,words,degree,structure")
    scores = [([0.9, 0.5], [0.7, 0.2]), ([0.8, 0.3], [0.8, 0.4])]
    fits = [
        {"ratio": 95, "seed": seed, "scores": {"": default} | {name: other for name in removed}}
        for seed, (default, other) in enumerate(scores)
    ]
    (tmp_path / "ablation").mkdir()
    (tmp_path / "ablation" / "headers.json").write_text(json.dumps({"fits": fits}))
    line = "| C++ headers, 95 % | 2 | " + " | ".join(["-10.0 / -10.0"] * len(removed)) + " |"
    assert line in networks_page(tmp_path)
