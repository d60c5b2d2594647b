"""`vhe evaluate`: one JSON document, a table of 80 columns, one-line errors."""

import json
from pathlib import Path

import pytest

from vhe.cli import main

TOPICS = ("cats purr on warm sofas", "trains run on steel rails", "bread rises in hot ovens")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """--vertices and --edges of 45 vertices in three rings, one per topic."""
    folder = tmp_path_factory.mktemp("network")
    vertices, edges = folder / "vertices.csv", folder / "edges.csv"
    rows = [f"{k},{TOPICS[k // 15]} {'abc'[k % 3]}{k % 5},{'ctb'[k // 15]}" for k in range(45)]
    vertices.write_text("id,text,label\n" + "\n".join(rows) + "\n")
    rings = [f"{15 * t + k},{15 * t + (k + 1) % 15}" for t in range(3) for k in range(15)]
    edges.write_text("source,target\n" + "\n".join(rings) + "\n")
    return ["--vertices", str(vertices), "--edges", str(edges)]


def results(capsys: pytest.CaptureFixture[str], *tokens: str) -> list[dict]:
    status = main(["evaluate", *tokens, "--json"])
    printed = capsys.readouterr()
    assert status == 0, printed.err
    document = json.loads(printed.out)
    assert list(document) == ["results"]
    return document["results"]


@pytest.mark.parametrize("task", ["link", "unseen"])
def test_each_experiment_has_one_result(
    task: str, files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--method", "tfidf,diffused-text", "--ratio", "0.55,80", "--seeds", "0-2"]
    found = results(capsys, task, *files, *options, "--protocol", "lines")
    assert len(found) == 12
    assert set(found[0]) == {
        *("task", "dataset", "method", "ratio", "protocol", "seed"),
        *("auc", "ap", "mrr", "hits10", "seconds"),
    }
    assert len({(r["method"], r["ratio"], r["seed"]) for r in found}) == 12
    assert {r["ratio"] for r in found} == {0.55, 0.8}
    assert {r["protocol"] for r in found} == {"lines"}
    assert {r["task"] for r in found} == {task}
    assert min(r["auc"] for r in found) > 0.6


def test_classification_has_its_own_scores(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    found = results(capsys, "classify", *files, "--method", "tfidf", "--seeds", "1,4")
    assert [r["labelled"] for r in found] == [0.1, 0.3, 0.5, 0.7] * 2
    assert set(found[0]) == {
        *("task", "dataset", "method", "labelled", "seed"),
        *("accuracy", "macro_f1", "seconds"),
    }
    assert found[-1]["accuracy"] > 0.9


@pytest.mark.parametrize("task", ["link", "classify"])
def test_the_table_has_means_in_80_columns_and_progress_is_on_standard_error(
    task: str, files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    tokens = ["evaluate", task, *files, "--method", "tfidf,diffused-text", "--seeds", "0-1"]
    assert main(tokens) == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split()[1] == "method"
    assert " ± " in lines[2]
    assert "over 2 seeds" in lines[-1]
    assert len(lines) == 3 + (2 if task == "link" else 8)
    progress = [line for line in printed.err.splitlines() if line.startswith("[")]
    assert len(progress) == (4 if task == "link" else 16)
    assert progress[0].startswith(f"[1/{len(progress)}] {task} ")


def test_means_in_the_table_are_those_of_the_results(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    tokens = ["link", *files, "--method", "diffused-text", "--ratio", "60", "--seeds", "0-3"]
    found = results(capsys, *tokens)
    assert main(["evaluate", *tokens]) == 0
    row = capsys.readouterr().out.splitlines()[2].split()
    assert row[3] == f"{100 * sum(r['auc'] for r in found) / 4:.1f}"


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (["link", "cora", "--method", "tfdif"], "did you mean tfidf"),
        (["link", "cora", "--method", ","], "--method is empty"),
        (["link", "cora", "--ratio", "1"], "--ratio 1"),
        (["link", "cora", "--seeds", "9-0"], "--seeds 9-0"),
        (["link", "cora", "--protocol", "dirty"], "--protocol"),
        (["link", "cora", "--labelled", "10"], "--labelled: link uses no labels"),
        (["classify", "cora", "--ratio", "10"], "--ratio: classify holds out no edges"),
        (["classify", "cora", "--protocol", "clean"], "--protocol: classify holds out no edges"),
        (["unseen", "cora", "--method", "tfidf,line"], "line cannot embed unseen vertices"),
        (["link", "--method", "tfidf"], "no network given"),
        (
            ["link", "cora", "--method", "tfidf", "--reliability", "a.png"],
            "predicts no probabilities",
        ),
        (["link", "cora", "--reliability", "a.doc"], "a.doc: unknown picture format"),
        (
            ["classify", "cora", "--reliability", "a.png"],
            "classify predicts no links",
        ),
        (["nodes", "cora"], "nodes"),
        ([], "TASK"),
    ],
)
def test_an_error_is_one_line_and_status_2(
    tokens: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", *tokens]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1
    assert message in printed.err


def test_a_network_without_labels_cannot_be_classified(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = tmp_path / "bare.csv"
    lines = Path(files[1]).read_text().splitlines()
    bare.write_text("\n".join(line.rpartition(",")[0] for line in lines) + "\n")
    tokens = ["--vertices", str(bare), *files[2:], "--method", "tfidf"]
    assert main(["evaluate", "classify", *tokens]) == 2
    assert "label" in capsys.readouterr().err


def test_the_reliability_diagram_is_written(
    files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    pytest.importorskip("matplotlib")
    from vhe.baselines.tfidf import TFIDF

    monkeypatch.setattr(  # a fast method with probabilities
        TFIDF,
        "probability_indices",
        lambda self, i, j, balanced: self.score_indices(i, j),
        raising=False,
    )
    picture = tmp_path / "reliability.png"
    tokens = ["link", *files, "--method", "tfidf", "--seeds", "0-1", "--reliability", str(picture)]
    assert main(["evaluate", *tokens]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    printed = capsys.readouterr()
    assert "probabilities of tfidf: Brier score " in printed.out
    assert f"wrote {picture}" in printed.err
    assert all({"brier", "ece"} <= r.keys() for r in results(capsys, *tokens))
