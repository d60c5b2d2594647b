"""`vhe reproduce` and `vhe report` as people meet them."""

import json
from pathlib import Path

import pytest

from vhe.cli import main
from vhe.data.network import TextNetwork
from vhe.evaluation.experiment import Bench

FEW = ["link", "--methods", "tfidf", "--ratio", "55", "--seeds", "0-1", "--datasets", "cora"]


@pytest.fixture
def small(network: TextNetwork, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every dataset is the small network."""
    monkeypatch.setattr("vhe.data.datasets.load", lambda name: network)


@pytest.mark.usefixtures("small")
def test_run_go_on_and_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results, out = str(tmp_path / "results"), str(tmp_path / "docs")
    assert main(["reproduce", *FEW, "--results", results, "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["done"] == 4
    assert "[4/4] link cora tfidf 55 % clean seed 1" in printed.err
    assert main(["reproduce", *FEW, "--results", results]) == 0
    printed = capsys.readouterr()
    assert "finished before  4" in printed.out
    assert main(["report", "--results", results, "--out", out, "--json"]) == 0
    files = json.loads(capsys.readouterr().out)["files"]
    assert {Path(file).name for file in files} >= {"README.md", "index.html", "ratio-cora.svg"}
    assert "| TF-IDF |" in (Path(out) / "link.md").read_text()


@pytest.mark.usefixtures("small")
def test_ctrl_c_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(self: Bench, cell: object) -> dict:
        raise KeyboardInterrupt

    monkeypatch.setattr(Bench, "measure", interrupted)
    assert main(["reproduce", *FEW, "--results", str(tmp_path / "r")]) == 130
    said = capsys.readouterr().err.splitlines()
    assert "the same command goes on" in said[-2]
    assert said[-1] == "vhe: interrupted"


@pytest.mark.usefixtures("small")
def test_a_cell_that_broke_is_told_by_the_exit_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(self: Bench, cell: object) -> dict:
        raise RuntimeError("out of luck")

    monkeypatch.setattr(Bench, "measure", broken)
    assert main(["reproduce", *FEW, "--results", str(tmp_path / "r")]) == 1
    printed = capsys.readouterr()
    assert "failed           4" in printed.out
    assert "Traceback" not in printed.err


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        (["reproduce", "--datasets", "coar"], "did you mean 'cora'"),
        (["reproduce", "--methods", "vh"], "did you mean vhe"),
        (["reproduce", "classify", "--datasets", "hepth"], "no such cell"),
        (["reproduce", "link", "--ratio", "50"], "no such cell"),
        (["reproduce", "--seeds", "x"], "--seeds x"),
        (["reproduce", "everything"], "everything"),
        (["reproduce", "--workers", "0"], "--workers 0"),
        (["reproduce", "tsne", "--datasets", "hepth"], "no such cell"),
        (["report", "--results", "{tmp}/none"], "no finished result"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(
    tokens: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([token.format(tmp=tmp_path) for token in tokens]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1
    assert said in printed.err


@pytest.mark.usefixtures("small")
def test_in_the_background_the_same_command_runs(
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
    assert main(command[3:]) == 0  # what was started, here
    assert len(list(results.rglob("*.json"))) == 2
    assert (tmp_path / "results.log").exists()
