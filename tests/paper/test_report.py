"""The report: our results and the published ones in the right entries."""

import json
import re
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from vhe.errors import VHEError
from vhe.paper.report import task_page, write_report
from vhe.paper.tables import display


def page(task: str, results: list[dict]) -> str:
    return "\n".join(task_page(task, "Title", "About.", results))


def link(method: str, auc: float, seed: int, **changes) -> dict:
    fields = {"task": "link", "dataset": "cora", "method": method, "ratio": 0.55, "seed": seed}
    scores = {"auc": auc, "ap": 0.5, "mrr": 0.25, "hits10": 0.75, "seconds": 1.0}
    return {**fields, "protocol": "lines", **scores, **changes}


def row(text: str, section: str, method: str) -> list[str]:
    """The entries of a method below a heading of Cora."""
    part = text.split("## HepTh")[0].split(f"### {section}\n")[1].split("###")[0]
    line = next(line for line in part.splitlines() if line.startswith(f"| {method} |"))
    return [entry.strip() for entry in line.strip("|").split("|")][1:]


def test_our_results_and_published_ones_share_an_entry() -> None:
    results = [link("vhe", 0.97, 0), link("vhe", 0.98, 1), link("tfidf", 0.8, 0)]
    text = page("link", results)
    vhe = row(text, "AUC, lines", "VHE")
    assert vhe[4] == "**97.5 ± 0.7** (2) [**98.3 ± 0.2**]"
    assert vhe[0] == "not measured [**94.4 ± 0.3**]"
    assert row(text, "AUC, lines", "PWA")[0] == "not measured [92.2 ± 0.6]"
    assert row(text, "AUC, lines", "TF-IDF") == ["", "", "", "", "80.0 (1)", "", "", "", ""]
    assert "1 entry with both results, 1 with ours only, 107 with the paper's only." in text
    assert "1 to 2 seeds" in text
    assert "paper's settings" not in text


def test_the_clean_protocol_has_all_measures_and_no_published_results() -> None:
    text = page("link", [link("vhe", 0.9, 0, protocol="clean")])
    assert row(text, "AUC, clean", "VHE") == ["90.0 (1)"]
    assert row(text, "MRR, clean", "VHE") == ["25.0 (1)"]
    assert row(text, "Hits@10, clean", "VHE") == ["75.0 (1)"]
    assert "### MRR, lines" not in text
    assert "not measured here yet" in text.lower()  # the table of published results


def test_both_models_are_compared_with_the_published_vhe() -> None:
    text = page("link", [link("pair-vhe-paper", 0.6, 0), link("pair-vhe", 0.9, 0)])
    published = "[**98.3 ± 0.2**]"
    assert row(text, "AUC, lines", "VHE")[4] == f"not measured {published}"
    assert row(text, "AUC, lines", "PairVHE")[4] == f"**90.0** (1) {published}"
    assert row(text, "AUC, lines", "PairVHE, paper's settings")[4] == f"60.0 (1) {published}"
    assert "| PairVHE" not in page("link", [link("vhe", 0.9, 0)])


def test_classification_compares_accuracy_only() -> None:
    fields = {"task": "classify", "dataset": "cora", "method": "vhe", "labelled": 0.1, "seed": 0}
    text = page("classify", [{**fields, "accuracy": 0.859, "macro_f1": 0.84, "seconds": 1}])
    assert row(text, "Accuracy", "VHE")[0] == "85.9 (1) [**82.6**]"
    assert row(text, "Macro F1", "VHE") == ["84.0 (1)"]


def test_unknown_methods_and_datasets_are_shown() -> None:
    text = page("link", [link("former", 0.7, 0, dataset="mine")])
    assert "## mine" in text
    assert "| former | 70.0 (1) |" in text


def test_the_best_of_several_entries_of_a_column_are_bold() -> None:
    clean = {"protocol": "clean", "brier": 0.1, "ece": 0.02}
    results = [
        link("vhe", 0.9001, 0, **clean),
        link("pair-vhe", 0.8999, 0, **clean | {"brier": 0.2}),
        link("tfidf", 0.8, 0, protocol="clean"),
    ]
    text = page("link", results)
    assert row(text, "AUC, clean", "VHE") == ["**90.0** (1)"]
    assert row(text, "AUC, clean", "PairVHE") == ["**90.0** (1)"]
    assert row(text, "AUC, clean", "TF-IDF") == ["80.0 (1)"]
    assert row(text, "Brier score, clean", "VHE") == ["**10.0** (1)"]  # lower is better
    assert row(text, "Brier score, clean", "PairVHE") == ["20.0 (1)"]
    assert "| TF-IDF |" not in text.split("### Brier score, clean")[1]


def test_missing_texts_of_zhihu_are_stated() -> None:
    text = page("link", [link("vhe", 0.9, 0)])
    assert text.count("text of Zhihu (`data.txt`) was not available") == 1
    part = text.split("## Zhihu")[1]
    assert part.count("no text [") == 108
    assert "not measured [" not in part
    measured = page("link", [link("vhe", 0.9, 0, dataset="zhihu")])
    assert "no text" not in measured.split("## Zhihu")[1]


def test_names_are_printed_as_the_paper_does() -> None:
    assert [display(m) for m in ("cane-text", "pwa-mlp", "naive-vae")] == [
        "CANE†",
        "PWA‡",
        "Naive-VAE",
    ]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of every task and an incomplete file."""
    folder = tmp_path_factory.mktemp("results")
    groups = [{"least": 1, "most": 2, "edges": 5, "auc": 0.8}]
    groups.append({"least": 3, "most": 9, "edges": 0, "auc": None})
    found = [link("vhe", 0.9, 0), link("vhe", 0.92, 1), link("pwa", 0.9, 0, protocol="clean")]
    found += [link(method, 0.8, 0, task="degree", groups=groups) for method in ("vhe", "pwa")]
    for task, setting, values in (
        ("lambda", "homophily", (0.0, 0.99)),
        ("alpha", "alpha", (0.0, 0.2)),
        ("structure", "structure", ("none", "learned")),
    ):
        found += [link("pair-vhe", 0.9, 0, task=task, settings={setting: v}) for v in values]
    fields = {"dataset": "cora", "method": "vhe", "seed": 0, "seconds": 1}
    found.append({**fields, "task": "classify", "labelled": 0.1, "accuracy": 0.8, "macro_f1": 0.7})
    points = {"points": [[0, 0], [1, 1], [2, 0]], "labels": ["a", "<b>", None]}
    found.append({**fields, "task": "tsne", "ratio": 1.0, "purity": 0.5, **points})
    for k, result in enumerate(found):
        path = folder / result["task"] / f"{k}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(result | {"origin": {"git": "abc", "machine": "Linux"}}))
    (folder / "link" / "cora-vhe-55-lines-2.json").write_text('{"task": "li')
    return folder


@pytest.fixture(scope="module")
def out(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of these results."""
    folder = tmp_path_factory.mktemp("docs")
    write_report(results, folder)
    return folder


PICTURES = {f"{name}.svg" for name in ("ratio-cora", "degree", "lambda", "alpha", "structure")}


def test_all_pages_are_written_with_rectangular_tables(out: Path) -> None:
    names = ("README", "link", "classify", "unseen", "ablation", "figures")
    pages = {f"{name}.md" for name in names}
    written = {path.name for path in out.rglob("*") if path.is_file()}
    assert written == {*pages, *PICTURES, "tsne.svg"}
    assert "3 measurements" in (out / "README.md").read_text()
    for path in out.glob("*.md"):
        text = path.read_text()
        for target in re.findall(r"\]\(([^)]+)\)", text):
            assert (out / target).exists()
        block: list[int] = []
        for line in text.splitlines():
            if line.startswith("|"):
                block.append(line.count("|"))
                assert block[0] == block[-1]
            else:
                block = []
    figures = (out / "figures.md").read_text()
    assert "| PairVHE | 90.0 (1) | 90.0 (1) |" in figures
    assert "| method | λ = 0 | λ = 0.99 |" in figures
    assert "| method | without | learned |" in figures
    assert "| method | 1–2 |" in figures


def test_the_same_results_give_the_same_bytes(results: Path, out: Path, tmp_path: Path) -> None:
    again = write_report(results, tmp_path)
    for path in again:
        assert path.read_bytes() == (out / path.relative_to(tmp_path)).read_bytes()


def test_pictures_are_readable_on_light_and_dark_backgrounds(out: Path) -> None:
    for path in (out / "figures").glob("*.svg"):
        text = path.read_text()
        ElementTree.fromstring(text)
        assert "prefers-color-scheme: dark" in text
        assert "currentColor" in text
        assert "<dc:date>" not in text
    assert "&lt;b&gt;" in (out / "figures" / "tsne.svg").read_text()


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(VHEError, match="no finished results"):
        write_report(tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_results_outside_the_grid_are_ignored_with_one_warning(
    results: Path,
    out: Path,
    tmp_path: Path,
    logs: Any,
) -> None:
    folder = tmp_path / "results"
    shutil.copytree(results, folder)
    outdated = [link("vhe-paper", 0.99, 0), link("vhe-pairs", 0.99, 0), link("vhe-pairs", 0.99, 1)]
    outdated.append(link("vhe", 0.99, 0, task="ablation", settings={"softness": 0.0}))
    for k, result in enumerate(outdated):
        path = folder / result["task"] / f"old-{k}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(result))
    with logs("ignored 4 results") as caught:
        write_report(folder, tmp_path / "docs")
    (message,) = caught
    for name in ("link vhe-paper (1)", "link vhe-pairs (2)", "ablation vhe (1)"):
        assert name in message
    for path in out.rglob("*.*"):
        assert (tmp_path / "docs" / path.relative_to(out)).read_bytes() == path.read_bytes()


def test_ablations_of_both_models_have_their_own_rows() -> None:
    ablations = [
        link(method, auc, 0, task="ablation", protocol="clean", settings=settings)
        for method, auc, settings in (
            ("vhe", 0.9, {}),
            ("vhe", 0.8, {"word_init": "random"}),
            ("pair-vhe", 0.7, {}),
            ("pair-vhe", 0.6, {"word_init": "random"}),
        )
    ]
    text = page("ablation", ablations)
    assert [line.split("|")[1:3] for line in text.split("### MRR")[0].splitlines()[-7:-1]][2:] == [
        [" VHE, default settings ", " **90.0** (1) "],
        [" VHE, random initial word vectors ", " 80.0 (1) "],
        [" PairVHE, default settings ", " 70.0 (1) "],
        [" PairVHE, random initial word vectors ", " 60.0 (1) "],
    ]
