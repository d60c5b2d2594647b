"""The command as people meet it: answers, one-line errors with status 2, help, an interruption."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from vhe.cli import VERBS, main

ROOT = Path(__file__).parent.parent
TINY = {
    "word_dim": 8,
    "latent_dim": 8,
    "structure_dim": 8,
    "hidden_dim": 8,
    "kernels": 4,
    "kernel_width": 3,
    "min_count": 1,
    "steps": 6,
    "batch_size": 16,
    "validate_every": 3,
    "contexts": 4,
    "validation": 0.2,
}
TOPICS = ("cats purr on warm sofas", "trains run on steel rails", "bread rises in hot ovens")


def tiny(**changes: float) -> list[str]:
    """--set and settings of a model that trains in a moment on one thread."""
    return ["--threads", "1", "--set", *(f"{k}={v}" for k, v in {**TINY, **changes}.items())]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """--vertices and --edges of 30 vertices in three rings, each about a topic; ids 100 to 129."""
    folder = tmp_path_factory.mktemp("network")
    vertices, edges = folder / "vertices.csv", folder / "edges.csv"
    texts = [f"{100 + k},{TOPICS[k // 10]} {'ab'[k % 2]}{k % 5}" for k in range(30)]
    vertices.write_text("id,text\n" + "\n".join(texts) + "\n")
    rings = [
        f"{100 + 10 * t + k},{100 + 10 * t + (k + step) % 10}"
        for t in range(3)
        for k in range(10)
        for step in (1, 2)
    ]
    edges.write_text("source,target\n" + "\n".join(rings) + "\n")
    return ["--vertices", str(vertices), "--edges", str(edges)]


@pytest.fixture(scope="module")
def model(files: list[str], tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model folder that the command made from ``files``."""
    out = str(tmp_path_factory.mktemp("models") / "tiny")
    assert main(["fit", *files, "--out", out, "--seed", "1", *tiny()]) == 0
    return out


def answer(capsys: pytest.CaptureFixture[str], *tokens: str) -> dict:
    """Run with --json and parse everything that is on standard output."""
    status = main([*tokens, "--json"])
    printed = capsys.readouterr()
    assert status == 0, printed.err
    return json.loads(printed.out)


def refusal(capsys: pytest.CaptureFixture[str], *tokens: str) -> str:
    """Run something wrong; the one line that says so."""
    status = main(list(tokens))
    printed = capsys.readouterr()
    assert status == 2
    assert printed.out == ""
    lines = printed.err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("vhe: ")
    assert "Traceback" not in lines[0]
    return lines[0]


def run(*tokens: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The command as a program of its own, with environment variables."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "COLUMNS": "80", **variables}
    return subprocess.run(
        [sys.executable, "-m", "vhe", *tokens],
        capture_output=True,
        text=True,
        env=environment,
        stdin=subprocess.DEVNULL,
    )


# help and version


@pytest.mark.parametrize("verb", [verb.__name__ for verb, _, _ in VERBS])
def test_help_of_every_verb_ends_with_an_example(
    verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([verb, "--help"]) == 0
    lines = capsys.readouterr().out.rstrip().splitlines()
    assert lines[-1].startswith(f"Example: vhe {verb}")
    assert lines[0].startswith(f"Usage: vhe {verb}")
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(("verb", "example"), [(verb, example) for verb, _, example in VERBS])
def test_examples_are_understood(verb, example: str) -> None:
    from vhe.cli import command

    found, bound, _ = command().parse_args([verb.__name__, *example.split()])
    assert found is verb
    assert bound.arguments


def test_help_and_version_are_there_without_anything_heavy() -> None:
    script = (
        "import sys; from vhe.cli import main; main(['--help']); main(['--version']);"
        "assert not {'torch', 'pandas', 'sklearn', 'scipy', 'pyarrow'} & set(sys.modules)"
    )
    environment = {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert "fit" in done.stdout
    assert done.stdout.splitlines()[-1] == "0.1.0"


# mistakes


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        (["fti"], 'Did you mean "fit"'),
        (["fit", "nonsense", "--out", "{tmp}/m"], "'nonsense' is neither a dataset"),
        (["fit", "hepht", "--out", "{tmp}/m"], "did you mean 'hepth'"),
        (["fit", "--out", "{tmp}/m"], "no network was given"),
        (["fit", "cora"], "--out"),
        (["fit", "cora", "--out", "{tmp}/m", "--sed", "1"], "--sed"),
        (["fit", "cora", "--out", "{tmp}/m", "--seed", "x"], "--seed"),
        (["fit", "cora", "--out", "{tmp}/m", "--seed", "-1"], "--seed"),
        (["fit", "cora", "--out", "{tmp}/m", "--threads", "0"], "--threads"),
        (["fit", "cora", "--out", "{tmp}/m", "--set", "homophilly=1"], "did you mean homophily"),
        (["fit", "cora", "--out", "{tmp}/m", "--set", "homophily=2"], "homophily is 2"),
        (["fit", "cora", "--out", "{tmp}/m", "--set", "homophily"], "KEY=VALUE"),
        (["fit", "cora", "--out", "{tmp}/m", "--config", "no.toml"], "no.toml"),
        (["fit", "cora", "--out", "{tmp}/m", "--resume", "--overwrite"], "contradict"),
        (["fit", "cora", "--out", "{tmp}/m", "--resume"], "no interrupted training"),
        (["fit", "cora", "--out", "{tmp}/file"], "is a file"),
        (["fit", "cora", "--out", "{tmp}/file/m"], "cannot be written"),
        (["fit", "cora", "--out", "{tmp}"], "holds files that are no model"),
        (["fit", "--edges", "{tmp}/file", "--out", "{tmp}/m"], "--vertices"),
        (["fit", "cora", "--edges", "{tmp}/file", "--out", "{tmp}/m"], "leave one of them out"),
        (["fit", "--vertices", "{tmp}/no.csv", "--edges", "no.csv", "--out", "m"], "no.csv"),
        (["embed", "{tmp}/none", "--out", "{tmp}/e.csv"], "is no model folder"),
        (["embed", "{tmp}/none", "--out", "{tmp}/e.xls"], "'.xls'"),
        (["embed", "{tmp}/none", "--out", "{tmp}/e.txt", "--std"], "--std"),
        (["embed", "{tmp}/none", "--out", "{tmp}/e.csv", "--contexts", "some"], "--contexts"),
        (["score", "{tmp}/none", "a"], "two vertices are needed"),
        (["score", "{tmp}/none", "a", "b", "--pairs", "{tmp}/file"], "leave one of them out"),
        (["data", "nonsense"], "neither a dataset"),
        (["doctor", "now"], "now"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(
    tokens: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert said in refusal(capsys, *(token.format(tmp=tmp_path) for token in tokens))
    assert {path.name for path in tmp_path.iterdir()} == {"file"}


def test_a_fault_in_a_file_is_named_by_its_line(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edges = tmp_path / "edges.csv"
    edges.write_text("source,target\n100,101\n100,999\n")
    tokens = ["fit", *files[:2], "--edges", str(edges), "--out", str(tmp_path / "m")]
    assert f"{edges}:3" in refusal(capsys, *tokens)


def test_what_the_operating_system_refuses_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "/somewhere/weights.safetensors")

    monkeypatch.setattr("vhe.cli.data.read_network", full)
    assert "/somewhere/weights.safetensors: no space left" in refusal(capsys, "data", "seealso")


def test_a_reader_that_goes_away_is_no_error() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "vhe", "data", "--json"],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    os.close(writer)
    assert done.stderr == ""


# answers


def test_data_lists_the_datasets(capsys: pytest.CaptureFixture[str]) -> None:
    listed = answer(capsys, "data")["datasets"]
    assert [entry["name"] for entry in listed] == ["seealso", "cora", "hepth", "zhihu", "debian"]
    assert main(["data"]) == 0
    table = capsys.readouterr().out
    assert "hepth" in table
    assert max(map(len, table.splitlines())) <= 80


@pytest.mark.skipif("VHE_DATA_DIR" not in os.environ, reason="VHE_DATA_DIR is not set")
def test_data_counts_what_is_in_a_network(capsys: pytest.CaptureFixture[str]) -> None:
    counts = answer(capsys, "data", "hepth")
    assert (counts["vertices"], counts["links"], counts["isolated"]) == (1038, 1974, 0)


def test_doctor_knows_the_machine(capsys: pytest.CaptureFixture[str]) -> None:
    report = answer(capsys, "doctor")
    assert report["python"] == ".".join(map(str, sys.version_info[:3]))
    assert report["core"]["numpy"]["version"] == np.__version__
    assert report["torch"]["gflops"] > 0
    assert set(report["data"]["datasets"]) == {"seealso", "cora", "hepth", "zhihu", "debian"}


def test_doctor_fails_only_when_the_core_is_broken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("vhe.cli.doctor.CORE", ("numpy", "no_such_package"))
    monkeypatch.setattr("vhe.cli.doctor._matrix_rate", lambda _: 1.0)
    assert main(["doctor"]) == 1
    printed = capsys.readouterr()
    assert "no_such_package cannot be imported" in printed.err
    assert "numpy" in printed.out


def test_output_on_a_terminal_without_unicode() -> None:
    done = run("data", "nonsense-é", PYTHONIOENCODING="ascii")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    done = run("--help", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert "doctor" in done.stdout


def test_output_is_plain_where_there_is_no_terminal() -> None:
    done = run("data")
    assert done.returncode == 0
    assert "\x1b" not in done.stdout + done.stderr


# a model


def test_fit_says_what_it_learned_and_where_it_is(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / "model"
    found = answer(capsys, "fit", *files, "--out", str(out), "--seed", "3", *tiny())
    assert (found["vertices"], found["links"]) == (30, 60)
    assert 0 <= found["validation_auc"] <= 1
    assert (out / "MANIFEST.json").exists()
    assert json.loads((out / "result.json").read_text())["seed"] == 3


def test_fit_draws_a_seed_says_it_and_stores_it(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fit", *files, "--out", str(tmp_path / "m"), *tiny()]) == 0
    said = capsys.readouterr().err
    seed = json.loads((tmp_path / "m" / "result.json").read_text())["seed"]
    assert f"seed {seed} was drawn" in said


def test_the_same_seed_gives_the_same_model(
    files: list[str], model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = str(tmp_path / "again")
    assert main(["fit", *files, "--out", again, "--seed", "1", *tiny()]) == 0
    for folder, name in ((model, "a.npy"), (again, "b.npy")):
        assert main(["embed", folder, "--out", str(tmp_path / name)]) == 0
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), np.load(tmp_path / "b.npy"))


def test_fit_replaces_a_model_only_when_asked(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fit = ["fit", *files, "--out", str(tmp_path / "m"), "--seed", "0", *tiny()]
    assert main(fit) == 0
    capsys.readouterr()
    assert "--overwrite" in refusal(capsys, *fit)
    assert main([*fit, "--overwrite"]) == 0


@pytest.mark.parametrize("name", ["e.parquet", "e.csv", "e.npy", "e.txt"])
def test_embed_writes_every_format(
    name: str, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / name
    found = answer(capsys, "embed", model, "--out", str(out), "--contexts", "all")
    assert (found["vertices"], found["dimensions"]) == (30, 8)
    assert out.stat().st_size > 0


def test_embed_writes_deviations(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["embed", model, "--out", str(tmp_path / "e.npy"), "--std"]) == 0
    mean, std = np.load(tmp_path / "e.npy")
    assert mean.shape == std.shape == (30, 8)
    assert (std > 0).all()


def test_score_of_two_vertices_whose_ids_are_numbers(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (pair,) = answer(capsys, "score", model, "100", "101")["pairs"]
    assert (str(pair["source"]), str(pair["target"])) == ("100", "101")
    assert 0 <= pair["probability"] <= 1
    assert -1 <= pair["score"] <= 1
    assert main(["score", model, "100", "101"]) == 0
    assert f"{pair['probability']:.4f}" in capsys.readouterr().out


def test_score_of_a_file_of_pairs(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("source,target\n100,101\n100,125\n")
    found = answer(capsys, "score", model, "--pairs", str(pairs))["pairs"]
    assert [str(pair["target"]) for pair in found] == ["101", "125"]
    pairs.write_text("source,target\n100,101\n100,999\n")
    assert f"{pairs}:3" in refusal(capsys, "score", model, "--pairs", str(pairs))
    pairs.write_text("source,target\n")
    assert answer(capsys, "score", model, "--pairs", str(pairs)) == {"pairs": []}


def test_score_names_an_unknown_vertex(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "999" in refusal(capsys, "score", model, "100", "999")


def test_a_damaged_model_is_refused(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "m"
    assert main(["fit", *files, "--out", str(out), "--seed", "0", *tiny()]) == 0
    weights = out / "weights.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    capsys.readouterr()
    assert "weights.safetensors" in refusal(capsys, "score", str(out), "100", "101")


def test_an_interrupted_fit_is_saved_and_can_be_resumed(
    files: list[str],
    model: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from vhe.pair.training import Trainer

    step = Trainer._step

    def interrupted(self: Trainer, number: int) -> dict[str, float]:
        if number == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return step(self, number)

    out = tmp_path / "m"
    fit = ["fit", *files, "--out", str(out), *tiny()]
    monkeypatch.setattr(Trainer, "_step", interrupted)
    assert main([*fit, "--seed", "1", "--json"]) == 130
    monkeypatch.undo()
    printed = capsys.readouterr()
    assert printed.err.splitlines()[-1] == "vhe: interrupted"
    assert printed.out == ""
    assert main(["score", str(out), "100", "101"]) == 0

    assert main([*fit, "--resume"]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["m"]
    for folder, name in ((model, "a.npy"), (str(out), "b.npy")):
        assert main(["embed", folder, "--out", str(tmp_path / name)]) == 0
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), np.load(tmp_path / "b.npy"))


def test_ctrl_c_ends_the_program_with_status_130(files: list[str], tmp_path: Path) -> None:
    fit = ["fit", *files, "--out", str(tmp_path / "m"), "--seed", "0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "vhe", *fit, *tiny(steps=400, validate_every=400)],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"},
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("training"):
            break
    process.send_signal(signal.SIGINT)
    said = process.stderr.read()
    assert process.wait(timeout=60) == 130
    assert said.splitlines()[-1] == "vhe: interrupted"
    assert "Traceback" not in said
