"""`vhe reproduce` and its report."""

import json
from pathlib import Path

import pytest

from vhe.cli import main
from vhe.data.network import TextNetwork
from vhe.evaluation.experiment import Evaluator

FEW = ["link", "--methods", "tfidf", "--ratio", "55", "--seeds", "0-1", "--datasets", "cora"]


@pytest.fixture
def small(network: TextNetwork, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every dataset is the small network."""
    monkeypatch.setattr("vhe.data.datasets.load", lambda name: network)


@pytest.mark.usefixtures("small")
def test_run_resume_and_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results, out = str(tmp_path / "results"), str(tmp_path / "docs")
    assert main(["reproduce", *FEW, "--results", results, "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["done"] == 4
    assert "[4/4] link cora tfidf 55 % clean seed 1" in printed.err
    assert main(["reproduce", *FEW, "--results", results]) == 0
    printed = capsys.readouterr()
    assert "finished before  4" in printed.out
    assert main(["reproduce", "report", "--results", results, "--out", out, "--json"]) == 0
    files = json.loads(capsys.readouterr().out)["files"]
    assert {Path(file).name for file in files} >= {"README.md", "ratio-cora.svg"}
    assert "| TF-IDF |" in (Path(out) / "link.md").read_text()


@pytest.mark.usefixtures("small")
def test_ctrl_c_prints_how_to_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(self: Evaluator, experiment: object) -> dict:
        raise KeyboardInterrupt

    monkeypatch.setattr(Evaluator, "measure", interrupted)
    assert main(["reproduce", *FEW, "--results", str(tmp_path / "r")]) == 130
    lines = capsys.readouterr().err.splitlines()
    assert "the same command resumes" in lines[-2]
    assert lines[-1] == "vhe: interrupted"


@pytest.mark.usefixtures("small")
def test_a_failed_experiment_sets_the_exit_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(self: Evaluator, experiment: object) -> dict:
        raise RuntimeError("out of luck")

    monkeypatch.setattr(Evaluator, "measure", broken)
    assert main(["reproduce", *FEW, "--results", str(tmp_path / "r")]) == 1
    printed = capsys.readouterr()
    assert "failed           4" in printed.out
    assert "Traceback" not in printed.err


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (["reproduce", "--datasets", "coar"], "did you mean 'cora'"),
        (["reproduce", "--methods", "vh"], "did you mean vhe"),
        (["reproduce", "classify", "--datasets", "hepth"], "no experiment matches"),
        (["reproduce", "link", "--ratio", "50"], "no experiment matches"),
        (["reproduce", "--seeds", "x"], "--seeds x"),
        (["reproduce", "everything"], "everything"),
        (["reproduce", "--workers", "0"], "--workers"),
        (["reproduce", "tsne", "--datasets", "hepth"], "no experiment matches"),
        (["reproduce", "report", "--results", "{tmp}/none"], "no finished results"),
        (["reproduce", "link", "--out", "{tmp}/pages"], "use vhe reproduce report"),
    ],
)
def test_an_error_is_one_line_and_status_2(
    tokens: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([token.format(tmp=tmp_path) for token in tokens]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1
    assert message in printed.err


@pytest.mark.usefixtures("small")
def test_the_same_command_runs_in_the_background(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started = []

    class Process:
        pid = 4321

        def __init__(self, command: list[str], **how: object) -> None:
            started.append((command, how))

    results = tmp_path / "results"
    tokens = [*FEW, "--protocol", "clean", "--results", str(results)]
    with monkeypatch.context() as patch:
        patch.setattr("vhe.cli.reproduce.subprocess.Popen", Process)
        assert main(["reproduce", *tokens, "--background"]) == 0
    printed = capsys.readouterr().out
    assert "kill 4321" in printed
    assert f"tail -f {results}.log" in printed
    assert not list(results.rglob("*.json"))
    command, how = started[0]
    assert how["start_new_session"]
    assert command[1:3] == ["-m", "vhe"]
    assert main(command[3:]) == 0  # run the started command in this process
    assert len(list(results.rglob("*.json"))) == 2
    assert (tmp_path / "results.log").exists()


@pytest.mark.usefixtures("small")
def test_results_of_removed_methods_are_one_line_on_standard_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results, out = tmp_path / "results", tmp_path / "docs"
    assert main(["reproduce", *FEW, "--results", str(results)]) == 0
    for path in list(results.rglob("*.json")):
        old = path.read_text().replace('"tfidf"', '"vhe-paper"')
        path.with_name(path.name.replace("tfidf", "vhe-paper")).write_text(old)
    capsys.readouterr()
    assert main(["reproduce", "report", "--results", str(results), "--out", str(out)]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("note: ignored 4 results")
    assert "vhe-paper (4)" in line
