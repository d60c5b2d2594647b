"""The report: ours and the paper's figures where they belong, and nothing else."""

import json
from pathlib import Path

import pytest

from vhe.errors import VHEError
from vhe.paper.report import display, page, write_report


def link(method: str, auc: float, seed: int, **changes) -> dict:
    cell = {"task": "link", "dataset": "cora", "method": method, "ratio": 0.55, "seed": seed}
    scores = {"auc": auc, "ap": 0.5, "mrr": 0.25, "hits10": 0.75, "seconds": 1.0}
    return {**cell, "protocol": "lines", **scores, **changes}


def row(text: str, section: str, method: str) -> list[str]:
    """The cells of a method below a heading of Cora."""
    part = text.split("## hepth")[0].split(f"### {section}\n")[1].split("###")[0]
    line = next(line for line in part.splitlines() if line.startswith(f"| {method} |"))
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


def test_figures_stand_beside_each_other() -> None:
    results = [link("vhe", 0.97, 0), link("vhe", 0.98, 1), link("tfidf", 0.8, 0)]
    text = page("link", results)
    vhe = row(text, "AUC, lines", "VHE")
    assert vhe[4] == "97.5 ± 0.7 (98.3 ± 0.2)"
    assert vhe[0] == "(94.4 ± 0.3)"
    assert row(text, "AUC, lines", "TF-IDF") == ["", "", "", "", "80.0", "", "", "", ""]
    assert "1 cell with both figures, 1 with ours alone, 107 with the paper's alone." in text
    assert "1 to 2 seeds" in text
    assert "paper's settings" not in text


def test_the_clean_protocol_has_all_measures_and_no_published_figures() -> None:
    text = page("link", [link("vhe", 0.9, 0, protocol="clean")])
    assert row(text, "AUC, clean", "VHE") == ["90.0"]
    assert row(text, "MRR, clean", "VHE") == ["25.0"]
    assert row(text, "Hits@10, clean", "VHE") == ["75.0"]
    assert "### MRR, lines" not in text
    assert "nothing was measured here yet" in text.lower()  # the table of the paper's figures


def test_both_forms_of_vhe_are_compared_with_the_papers() -> None:
    text = page("link", [link("vhe-paper", 0.6, 0)])
    assert row(text, "AUC, lines", "VHE, paper's settings")[4] == "60.0 (98.3 ± 0.2)"


def test_classification_compares_accuracy_only() -> None:
    cell = {"task": "classify", "dataset": "cora", "method": "vhe", "labelled": 0.1, "seed": 0}
    text = page("classify", [{**cell, "accuracy": 0.859, "macro_f1": 0.84, "seconds": 1}])
    assert row(text, "Accuracy", "VHE")[0] == "85.9 (82.6)"
    assert row(text, "Macro F1", "VHE") == ["84.0"]


def test_a_method_that_is_gone_and_a_dataset_of_ones_own_are_shown() -> None:
    text = page("link", [link("former", 0.7, 0, dataset="mine")])
    assert "## mine" in text
    assert "| former | 70.0 |" in text


def test_names_are_printed_as_the_paper_does() -> None:
    assert [display(m) for m in ("cane-text", "pwa-mlp", "naive-vae")] == [
        "CANE†",
        "PWA‡",
        "Naive-VAE",
    ]


def test_pages_are_written_and_their_tables_are_even(tmp_path: Path) -> None:
    results, out = tmp_path / "results", tmp_path / "docs"
    (results / "link").mkdir(parents=True)
    origin = {"origin": {"git": "abc", "machine": "Linux"}}
    for seed in (0, 1):
        path = results / "link" / f"cora-vhe-55-lines-{seed}.json"
        path.write_text(json.dumps(link("vhe", 0.9, seed) | origin))
    (results / "link" / "cora-vhe-55-lines-2.json").write_text('{"task": "li')
    written = write_report(results, out)
    assert {path.name for path in written} == {"README.md", "link.md", "classify.md", "unseen.md"}
    assert "2 measurements" in (out / "README.md").read_text()
    for path in written:
        block: list[int] = []
        for line in path.read_text().splitlines():
            if line.startswith("|"):
                block.append(line.count("|"))
                assert block[0] == block[-1]
            else:
                block = []


def test_nothing_to_report_is_said(tmp_path: Path) -> None:
    with pytest.raises(VHEError, match="no finished result"):
        write_report(tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()
