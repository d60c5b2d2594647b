"""`vhe report-tables`: the tables of stored results as LaTeX, CSV and JSON."""

import csv
import io
import json
from pathlib import Path

import pytest

from vhe.cli import main


@pytest.fixture
def results(tmp_path: Path) -> str:
    """Results of two methods at two fractions of the edges, in both protocols."""
    folder = tmp_path / "results" / "link"
    folder.mkdir(parents=True)
    for number, (method, ratio, protocol, seed) in enumerate(
        (method, ratio, protocol, seed)
        for method in ("vhe", "tfidf")
        for ratio in (0.15, 0.55)
        for protocol in ("lines", "clean")
        for seed in (0, 1)
    ):
        about = {"task": "link", "dataset": "cora", "method": method, "ratio": ratio}
        scores = {"auc": 0.9 + number / 500, "ap": 0.5, "mrr": 0.4, "hits10": 0.3, "ece": 0.02}
        result = about | {"protocol": protocol, "seed": seed, "seconds": 1.0} | scores
        (folder / f"{number}.json").write_text(json.dumps(result))
    return str(tmp_path / "results")


def test_latex_is_printed_with_its_origin(results: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report-tables", "--results", results, "--measures", "auc"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("% 16 measurements; seeds 0 to 1.")
    assert text.count(r"\begin{tabular}") == 2
    assert "Cora, link, AUC, protocol lines, 2 seeds" in text
    assert r"VHE & 90.1 $\pm$ 0.1 & 90.9 $\pm$ 0.1 \\" in text
    assert r"TF-IDF & \textbf{91.7 $\pm$ 0.1} & \textbf{92.5 $\pm$ 0.1} \\" in text
    assert r"VHE as published & 94.4 $\pm$ 0.3 & 98.3 $\pm$ 0.2 \\" in text


def test_options_select_the_figures(results: str, capsys: pytest.CaptureFixture[str]) -> None:
    choice = ["--protocol", "clean", "--ratio", "15", "--methods", "vhe", "--measures", "mrr,ece"]
    choice += ["--task", "link", "--datasets", "cora"]
    assert main(["report-tables", "--results", results, "--format", "csv", *choice]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["measure"], row["mean"], row["seeds"]) for row in rows] == [
        ("mrr", "0.4", "2"),
        ("ece", "0.02", "2"),
    ]
    assert main(["report-tables", "--results", results, "--json", *choice]) == 0
    records = json.loads(capsys.readouterr().out)["tables"]
    assert [record["mean"] for record in records] == [0.4, 0.02]


def test_a_file_is_written_whole(
    results: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "tables.csv"
    command = ["report-tables", "--results", results, "--format", "csv"]
    assert main([*command, "--out", str(out)]) == 0
    assert capsys.readouterr().out.strip() == str(out)
    assert main(command) == 0
    assert capsys.readouterr().out == out.read_text()
    assert main([*command, "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["file"] == str(out)


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (["--measures", "acu"], "known: auc, ap"),
        (["--methods", "vh"], "did you mean vhe"),
        (["--ratio", "x"], "--ratio x"),
        (["--datasets", "hepth"], "no result matches"),
        (["--format", "html"], "html"),
        (["--results", "none"], "no finished results"),
        (["--out", "/dev/null/t.tex"], "cannot write"),
    ],
)
def test_an_error_is_one_line_and_status_2(
    tokens: list[str], message: str, results: str, capsys: pytest.CaptureFixture[str]
) -> None:
    where = [] if "--results" in tokens else ["--results", results]
    assert main(["report-tables", *where, *tokens]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    assert message in line
