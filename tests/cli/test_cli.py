"""The command line: results, one-line errors with status 2, help, interruption."""

import errno
import inspect
import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vhe import __version__
from vhe.cli import COMMANDS, main, make_app, name_of
from vhe.cli.fit import training_sentence
from vhe.config import PairVHEConfig, VHEConfig
from vhe.data.network import TextNetwork
from vhe.errors import VHEError
from vhe.estimators import VHE, PairVHE, load_model
from vhe.runtime import native

ROOT = Path(__file__).parents[2]
GRAPH = {
    "latent_dim": 8,
    "min_count": 1,
    "max_steps": 6,
    "step_links": 16,
    "validate_every": 3,
    "validation": 0.2,
}
PAIR = {
    "word_dim": 8,
    "latent_dim": 8,
    "structure_dim": 8,
    "hidden_dim": 8,
    "kernels": 4,
    "kernel_width": 3,
    "min_count": 1,
    "steps": 6,
    "batch_size": 16,
    "near_pairs": 8,
    "contexts": 4,
    "validation": 0.2,
}


def tiny(model: str = "graph", **changes: float) -> list[str]:
    """Options for a fast fit of a model on one thread."""
    settings = (PAIR if model == "pair" else GRAPH) | changes
    return ["--model", model, "--threads", "1", "--set", *(f"{k}={v}" for k, v in settings.items())]


@pytest.fixture(scope="module")
def model(files: list[str], tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model folder written by vhe fit."""
    out = str(tmp_path_factory.mktemp("models") / "tiny")
    assert main(["fit", *files, "--out", out, "--seed", "1", *tiny()]) == 0
    return out


@pytest.fixture(scope="module")
def pair_model(files: list[str], tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder of a pair model written by vhe fit."""
    out = str(tmp_path_factory.mktemp("models") / "pair")
    assert main(["fit", *files, "--out", out, "--seed", "1", *tiny("pair")]) == 0
    return out


def run_json(capsys: pytest.CaptureFixture[str], *tokens: str) -> dict:
    """Run with --json and parse standard output."""
    status = main([*tokens, "--json"])
    printed = capsys.readouterr()
    assert status == 0, printed.err
    return json.loads(printed.out)


def error_line(capsys: pytest.CaptureFixture[str], *tokens: str) -> str:
    """Run an invalid command; return the one line on standard error."""
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
    """Run the command as a subprocess with environment variables."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "COLUMNS": "80", **variables}
    return subprocess.run(
        [sys.executable, "-m", "vhe", *tokens],
        capture_output=True,
        text=True,
        env=environment,
        stdin=subprocess.DEVNULL,
    )


# help and version


@pytest.mark.parametrize("columns", [80, 40])
@pytest.mark.parametrize("name", [name_of(command) for command, _, _ in COMMANDS])
def test_help_fits_the_terminal_and_ends_with_an_example(
    name: str,
    columns: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main([name, "--help"]) == 0
    lines = capsys.readouterr().out.rstrip().splitlines()
    assert lines[0].startswith(f"Usage: vhe {name}")
    assert max(map(len, lines)) <= columns
    assert any(line.startswith(f"Example: vhe {name}") for line in lines[-3:])
    assert "…" not in "".join(lines)


@pytest.mark.parametrize("command", [command for command, _, _ in COMMANDS])
def test_help_states_every_default(
    command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main([name_of(command), "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name, parameter in inspect.signature(command).parameters.items():
        if parameter.default in (None, False) or name == "config":
            continue
        label = f"--{name.replace('_', '-')} " if parameter.kind.name == "KEYWORD_ONLY" else name
        line = next(x for x in lines if x.strip().lower().startswith(label.lower()))
        end = "(required)" if parameter.default is parameter.empty else str(parameter.default)
        assert end in line
        assert "(required)" in line or f"(default: {parameter.default})" in line


@pytest.mark.parametrize(("model", "config"), [("graph", VHEConfig), ("pair", PairVHEConfig)])
@pytest.mark.parametrize("option", ["--model={}", "--model {}"])
def test_help_lists_the_settings_of_a_model(
    model: str,
    config,
    option: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["fit", *option.format(model).split(), "--help"]) == 0
    shown = capsys.readouterr().out
    assert f"Settings of the {model} model" in shown
    lines = [line.split(maxsplit=1) for line in shown.split("Settings of the")[1].splitlines()]
    listed = {words[0]: words[1].strip() for words in lines[1:] if len(words) == 2}
    assert list(listed) == [f.name for f in fields(config)]
    for f in fields(config):
        default = str(f.default) if not isinstance(f.default, bool | None) else None
        default = default or {None: "none", True: "true", False: "false", "": "empty"}[f.default]
        assert listed[f.name] == f"{f.metadata['help']} (default: {default})"


def test_plain_help_says_how_to_list_settings(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "vhe config" in shown
    assert "Settings of the" not in shown


def test_config_lists_every_setting(capsys: pytest.CaptureFixture[str]) -> None:
    listed = run_json(capsys, "config")
    for model, config in (("graph", VHEConfig), ("pair", PairVHEConfig)):
        assert {name: entry["default"] for name, entry in listed[model].items()} == {
            f.name: f.default for f in fields(config)
        }
        assert all(entry["help"] for entry in listed[model].values())
    assert list(run_json(capsys, "config", "pair")) == ["pair"]
    assert main(["config"]) == 0
    shown = capsys.readouterr().out
    assert "Settings of the graph model" in shown
    assert "homophily" in shown
    assert "config" in error_line(capsys, "config", "both")


@pytest.mark.parametrize(("command", "example"), [(c, example) for c, _, example in COMMANDS])
def test_examples_are_valid(command, example: str) -> None:
    found, bound, _ = make_app().parse_args([name_of(command), *example.split()])
    assert found is command
    assert bound.arguments


def test_help_and_version_import_no_heavy_packages() -> None:
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
    assert done.stdout.splitlines()[-1] == __version__


# errors


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (["fti"], "did you mean fit?"),
        (["fit", "cora"], "vhe: --out is required; see vhe fit --help"),
        (["explain", "{tmp}/none", "a"], "vhe: B is required; see vhe explain --help"),
        (["fit", "nonsense", "--out", "{tmp}/m"], "'nonsense' is neither a dataset"),
        (["fit", "hepht", "--out", "{tmp}/m"], "did you mean 'hepth'"),
        (["fit", "--out", "{tmp}/m"], "no network given"),
        (["fit", "cora"], "--out"),
        (["fit", "v.csv", "e.csv", "--out", "m"], "given as --vertices FILE --edges FILE"),
        (["score", "{tmp}/none", "a", "b", "c"], "unexpected argument c"),
        (["fit", "cora", "--out", "{tmp}/m", "--sed", "1"], "--sed"),
        (["fit", "cora", "--out", "{tmp}/m", "--seed", "x"], "--seed"),
        (["fit", "cora", "--out", "{tmp}/m", "--seed", "-1"], "--seed"),
        (["fit", "cora", "--out", "{tmp}/m", "--threads", "0"], "--threads"),
        (["fit", "cora", "--out", "{tmp}/m", "--set", "latent_dims=1"], "did you mean latent_dim"),
        (["fit", "cora", "--out", "{tmp}/m", "--set", "Latent_Dim=1"], "did you mean latent_dim"),
        (["fit", "cora", "--out", "{tmp}/m", "--set", "size=1"], "known settings: "),
        (["fit", "cora", "--out", "{tmp}/m", "--set", "latent_dim=0"], "latent_dim is 0"),
        (["fit", "cora", "--out", "{tmp}/m", "--set", "latent_dim"], "expected KEY=VALUE"),
        (["fit", "cora", "--out", "{tmp}/m", "--set", "homophily=.9"], "add --model pair"),
        (
            ["fit", "cora", "--out", "{tmp}/m", "--model", "pair", "--set", "max_steps=9"],
            "add --model graph",
        ),
        (["fit", "cora", "--out", "{tmp}/m", "--model", "both"], "--model"),
        (
            ["fit", "cora", "--out", "{tmp}/m", "--model", "graph", "--config", "paper"],
            "settings are those of the pair model",
        ),
        (["fit", "cora", "--out", "{tmp}/m", "--epochs", "-1"], "--epochs"),
        (["fit", "cora", "--out", "{tmp}/m", "--checkpoint-minutes", "-1"], "--checkpoint-minutes"),
        (["fit", "cora", "--out", "{tmp}/m", "--config", "no.toml"], "no.toml"),
        (["fit", "cora", "--out", "{tmp}/m", "--resume", "--overwrite"], "exclude each other"),
        (["fit", "cora", "--out", "{tmp}/m", "--resume"], "no interrupted training"),
        (
            ["fit", "cora", "--out", "{tmp}/m", "--scheduler", "local", "--decisions", "d.sqlite"],
            "--scheduler excludes --overwrite, --map, --decisions",
        ),
        (["fit", "cora", "--out", "{tmp}/file"], "is a file"),
        (["fit", "cora", "--out", "{tmp}/file/m"], "cannot be written"),
        (["fit", "cora", "--out", "{tmp}"], "contains other files"),
        (["fit", "--edges", "{tmp}/file", "--out", "{tmp}/m"], "--vertices"),
        (["fit", "cora", "--edges", "{tmp}/file", "--out", "{tmp}/m"], "omit the option"),
        (["fit", "--vertices", "{tmp}/no.csv", "--edges", "no.csv", "--out", "m"], "no.csv"),
        (["embed", "{tmp}/none", "--out", "{tmp}/e.csv"], "no such model folder"),
        (["embed", "{tmp}/none", "--out", "{tmp}/e.xls"], "'.xls'"),
        (["embed", "{tmp}/none", "--out", "{tmp}/e.txt", "--std"], "--std"),
        (["embed", "{tmp}/none", "--out", "{tmp}/e.csv", "--contexts", "some"], "--contexts"),
        (["score", "{tmp}/none", "a"], "two vertices are required"),
        (["score", "{tmp}/none", "a", "b", "--pairs", "{tmp}/file"], "omit one of them"),
        (["report", "{tmp}/none", "--out", "{tmp}/r.pdf"], "'.pdf'"),
        (["report", "{tmp}/none", "--out", "{tmp}/r.html"], "no such model folder"),
        (["data", "nonsense"], "neither a dataset"),
        (["doctor", "now"], "now"),
    ],
)
def test_an_error_is_one_line_and_status_2(
    tokens: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert message in error_line(capsys, *(token.format(tmp=tmp_path) for token in tokens))
    assert {path.name for path in tmp_path.iterdir()} == {"file"}


@pytest.mark.parametrize(
    ("tokens", "options"),
    [
        (["suggest", "m", "a", "--decisions", "d.sqlite"], "--decisions"),
        (["suggest", "m", "a", "--out", "{tmp}/s.csv"], "--out"),
        (["suggest", "m", "a", "--format", "csv", "--threads", "1"], "--threads and --format"),
        (["embed", "m", "--out", "{tmp}/e.parquet", "--contexts", "2"], "--contexts"),
        (["add", "m", "--vertices", "v", "--out", "{tmp}/m", "--method", "fast"], "--method"),
    ],
)
def test_options_that_have_no_effect_on_a_model_in_shards_are_refused(
    tokens: list[str],
    options: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(f"vhe.cli.{tokens[0]}.open_sharded", lambda folder: object())
    line = error_line(capsys, *(token.format(tmp=tmp_path) for token in tokens))
    assert line == f"vhe: m is a model in shards: omit {options}"


@pytest.mark.parametrize("model", ["graph", "pair"])
def test_epochs_must_be_finite(
    model: str, files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main(
        ["fit", *files, "--out", str(tmp_path / "m"), "--epochs", "inf", "--model", model]
    )
    assert status == 2
    assert "vhe: --epochs inf: give a finite number" in capsys.readouterr().err


def test_an_error_in_a_file_names_its_line(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edges = tmp_path / "edges.csv"
    edges.write_text("source,target\n100,101\n100,999\n")
    tokens = ["fit", *files[:2], "--edges", str(edges), "--out", str(tmp_path / "m")]
    assert f"{edges}:3" in error_line(capsys, *tokens)


def test_an_operating_system_error_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "/somewhere/weights.safetensors")

    monkeypatch.setattr("vhe.cli.data.read_network", full)
    assert "/somewhere/weights.safetensors: no space left" in error_line(capsys, "data", "seealso")


def test_a_closed_pipe_is_no_error() -> None:
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


# results


def test_data_lists_the_datasets(capsys: pytest.CaptureFixture[str]) -> None:
    listed = run_json(capsys, "data")["datasets"]
    assert [entry["name"] for entry in listed] == ["seealso", "cora", "hepth", "zhihu", "debian"]
    assert main(["data"]) == 0
    table = capsys.readouterr().out
    assert "hepth" in table
    assert "available locally" in table
    assert max(map(len, table.splitlines())) <= 80


def test_data_prints_statistics_of_two_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "v.csv").write_text("id,text\na,red fox\nb,brown fox\n")
    (tmp_path / "e.csv").write_text("source,target\na,b\n")
    tables = ("--vertices", f"{tmp_path}/v.csv", "--edges", f"{tmp_path}/e.csv")
    assert run_json(capsys, "data", *tables)["vertices"] == 2


@pytest.mark.skipif("VHE_DATA_DIR" not in os.environ, reason="VHE_DATA_DIR is not set")
def test_data_prints_statistics(capsys: pytest.CaptureFixture[str]) -> None:
    counts = run_json(capsys, "data", "hepth")
    assert (counts["vertices"], counts["links"], counts["isolated"]) == (1038, 1974, 0)


def test_doctor_reports_the_environment(capsys: pytest.CaptureFixture[str]) -> None:
    report = run_json(capsys, "doctor")
    assert report["python"] == ".".join(map(str, sys.version_info[:3]))
    assert report["core"]["numpy"]["version"] == np.__version__
    assert report["torch"]["gflops"] > 0
    assert report["torch"]["native_kernels"] == native.level()
    assert set(report["data"]["datasets"]) == {"seealso", "cora", "hepth", "zhihu", "debian"}


def test_doctor_fails_only_if_a_core_package_is_broken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("vhe.cli.doctor.CORE", ("numpy", "no_such_package"))
    monkeypatch.setattr("vhe.cli.doctor._matrix_rate", lambda _: 1.0)
    assert main(["doctor"]) == 1
    printed = capsys.readouterr()
    assert "cannot import no_such_package" in printed.err
    assert "numpy" in printed.out


def test_output_on_a_terminal_without_unicode() -> None:
    done = run("data", "nonsense-é", PYTHONIOENCODING="ascii")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    done = run("--help", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert "doctor" in done.stdout


def test_output_is_plain_without_a_terminal() -> None:
    done = run("data")
    assert done.returncode == 0
    assert "\x1b" not in done.stdout + done.stderr


# models


@pytest.mark.parametrize("model", ["graph", "pair"])
def test_fit_reports_and_saves_the_model(
    model: str, files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / "model"
    found = run_json(capsys, "fit", *files, "--out", str(out), "--seed", "3", *tiny(model))
    assert (found["vertices"], found["links"]) == (30, 60)
    assert 0 <= found["validation_auc"] <= 1
    assert (out / "MANIFEST.json").exists()
    assert json.loads((out / "result.json").read_text())["seed"] == 3
    estimator = load_model(out)
    assert estimator.result_["model"] == model
    assert isinstance(estimator, PairVHE if model == "pair" else VHE)


def test_fit_prints_the_next_steps(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "my model"
    assert main(["fit", *files, "--out", str(out), "--seed", "0", *tiny()]) == 0
    shown = capsys.readouterr().out
    for command in ("suggest", "report", "serve"):
        assert f"  vhe {command} '{out}'" in shown


def test_a_full_disk_is_noticed_before_training(
    files: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from types import SimpleNamespace

    monkeypatch.setattr("vhe.cli.paths.shutil.disk_usage", lambda path: SimpleNamespace(free=1000))
    line = error_line(capsys, "fit", *files, "--out", str(tmp_path / "m"), "--seed", "0", *tiny())
    assert "0 MB are free on this disk" in line
    assert not (tmp_path / "m").exists()


def refused_before_training(
    files: list[str],
    out: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> str:
    """The error of a fit that must not start."""

    def fit(*arguments: object, **options: object) -> None:
        raise AssertionError("training has started")

    with monkeypatch.context() as patch:
        patch.setattr("vhe.estimators.VHE.fit", fit)
        return error_line(capsys, "fit", *files, "--out", str(out), "--overwrite", *tiny())


def test_a_name_near_the_length_limit_is_noticed_before_training(
    files: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A temporary folder has a longer name than the model folder."""
    line = refused_before_training(files, tmp_path / ("m" * 245), monkeypatch, capsys)
    assert "file name too long" in line.lower()
    assert os.listdir(tmp_path) == []


def test_a_mount_point_is_noticed_before_training(
    files: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "volume"
    out.mkdir()
    rename = os.rename

    def refuse(source: Any, target: Any, **options: Any) -> None:
        if Path(source) == out or Path(target) == out:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        rename(source, target, **options)

    monkeypatch.setattr(os, "rename", refuse)
    assert "mount point" in refused_before_training(files, out, monkeypatch, capsys)
    assert os.listdir(tmp_path) == ["volume"]


def test_files_of_others_in_a_model_folder_are_noticed_before_training(
    files: list[str],
    model: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "m"
    shutil.copytree(model, out)
    (out / "thesis.txt").write_text("not of vhe")
    line = refused_before_training(files, out, monkeypatch, capsys)
    assert "MANIFEST.json does not list ('thesis.txt')" in line
    assert (out / "thesis.txt").read_text() == "not of vhe"


@pytest.mark.parametrize("command", ["suggest", "embed", "map", "report", "add", "evaluate"])
def test_heavy_commands_limit_their_threads(
    command: str, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    monkeypatch.chdir(tmp_path)  # the outputs are relative
    seen = []

    def read(*_: object, **__: object) -> None:
        seen.append(torch.get_num_threads())
        raise VHEError("enough")

    monkeypatch.setattr(f"vhe.cli.{command}.read_model", read, raising=False)
    monkeypatch.setattr(f"vhe.cli.{command}.read_network", read, raising=False)
    monkeypatch.setattr("vhe.web.loading.load", read)  # of map and report
    out = {"suggest": (), "evaluate": (), "embed": ("--out", "e.npy"), "add": ("--out", "m2")}
    options = out.get(command, ("--out", "x.html"))
    target = ("link", "seealso") if command == "evaluate" else (model,)
    options += ("--vertices", "v.csv") if command == "add" else ()
    before = torch.get_num_threads()
    for threads in (1, 3):
        assert main([command, *target, *options, "--threads", str(threads)]) == 2
    assert seen == [1, 3]
    assert torch.get_num_threads() == before


def test_the_graph_model_is_the_default_and_paper_implies_the_pair_model(
    files: list[str], tmp_path: Path
) -> None:
    fit = ["fit", *files, "--threads", "1", "--out"]
    graph = [f"{k}={v}" for k, v in GRAPH.items()]
    pair = [f"{k}={v}" for k, v in PAIR.items()] + ["epochs=0"]
    assert main([*fit, str(tmp_path / "default"), "--set", *graph]) == 0
    assert main([*fit, str(tmp_path / "paper"), "--config", "paper", "--set", *pair]) == 0
    assert isinstance(load_model(tmp_path / "default"), VHE)
    paper = load_model(tmp_path / "paper")
    assert paper.config == PairVHEConfig.paper().replace(**PAIR, epochs=0)


@pytest.mark.parametrize("model", ["graph", "pair"])
def test_settings_are_read_from_a_file(model: str, files: list[str], tmp_path: Path) -> None:
    config = tmp_path / "settings.toml"
    settings = PAIR if model == "pair" else GRAPH
    config.write_text("\n".join(f"{k} = {v}" for k, v in settings.items()))
    fit = ["fit", *files, "--model", model, "--threads", "1", "--config", str(config)]
    assert main([*fit, "--out", str(tmp_path / "m"), "--set", "validation=0.25"]) == 0
    found = load_model(tmp_path / "m").config.to_dict()
    assert found.items() >= (settings | {"validation": 0.25}).items()


def test_epochs_are_passes_over_the_links(files: list[str], tmp_path: Path) -> None:
    fit = ["fit", *files, "--out"]
    # 1.5 passes over 60 links, 16 per step
    assert main([*fit, str(tmp_path / "graph"), "--epochs", "1.5", *tiny()]) == 0
    assert load_model(tmp_path / "graph").config.max_steps == 6
    assert main([*fit, str(tmp_path / "none"), "--epochs", "0", *tiny()]) == 0
    assert load_model(tmp_path / "none").config.max_steps == 0
    assert main([*fit, str(tmp_path / "pair"), "--epochs", "2", *tiny("pair")]) == 0
    config = load_model(tmp_path / "pair").config
    assert (config.epochs, config.steps) == (2, 0)


@pytest.mark.parametrize(
    ("result", "sentence"),
    [
        (
            {"model": "graph", "trained": False, "steps": 20, "best_step": 0},
            "training did not improve validation; using the closed-form solution",
        ),
        (
            {"model": "graph", "trained": True, "steps": 80, "best_step": 40},
            "best validation AUC 96.1 % at step 40 of 80",
        ),
        (
            {"model": "pair", "trained": True, "steps": 90, "best_step": 90},
            "validation AUC 96.1 % at step 90 of 90",
        ),
        (
            {
                "model": "pair",
                "trained": True,
                "steps": 90,
                "best_step": 90,
                "validation_auc": None,
            },
            "too few links for validation: probabilities are rough",
        ),
        (
            {"model": "graph", "trained": False, "steps": 0, "best_step": 0},
            "none; using the initial word vectors",
        ),
    ],
)
def test_the_training_is_summarised_in_one_line(result: dict, sentence: str) -> None:
    assert training_sentence({"validation_auc": 0.961} | result) == sentence


def test_fit_prints_that_training_did_not_help(
    files: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from vhe.graph.training import CrossFitTrainer

    scores = iter((0.9, 0.8, 0.7))
    monkeypatch.setattr(CrossFitTrainer, "validate", lambda self: next(scores))
    assert main(["fit", *files, "--out", str(tmp_path / "m"), "--seed", "0", *tiny()]) == 0
    sentence = "training did not improve validation; using the closed-form solution"
    assert sentence in capsys.readouterr().out


@pytest.mark.parametrize("rank", [0, 1])
def test_the_graph_model_is_refused_under_torchrun(
    rank: int,
    files: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in (("WORLD_SIZE", 2), ("RANK", rank), ("TORCHELASTIC_RUN_ID", "x")):
        monkeypatch.setenv(name, str(value))
    out = tmp_path / "m"
    if rank == 0:
        line = error_line(capsys, "fit", *files, "--out", str(out), *tiny())
        assert "trains in one process" in line
        assert "--model pair" in line
    else:
        assert main(["fit", *files, "--out", str(out), *tiny()]) == 2
        assert capsys.readouterr() == ("", "")
    assert not list(tmp_path.iterdir())


def test_other_processes_of_torchrun_are_silent_and_write_nothing(
    files: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in (("WORLD_SIZE", 2), ("RANK", 1), ("TORCHELASTIC_RUN_ID", "x")):
        monkeypatch.setenv(name, str(value))
    fits = []

    def fit(self: PairVHE, network: TextNetwork, **options: object) -> PairVHE:
        print("note", file=sys.stderr)
        fits.append((self.verbose, len(network), options))
        return self

    monkeypatch.setattr(PairVHE, "fit", fit)
    out = tmp_path / "m"
    options = ["--checkpoint-minutes", "0.5", *tiny("pair")]
    assert main(["fit", *files, "--out", str(out), *options]) == 0
    assert capsys.readouterr() == ("", "")
    checkpoint = {"checkpoint": tmp_path / "m.training", "checkpoint_minutes": 0.5}
    assert fits == [(False, 30, checkpoint | {"resume": False})]
    assert not list(tmp_path.iterdir())


def test_fit_draws_prints_and_stores_a_seed(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fit", *files, "--out", str(tmp_path / "m"), *tiny()]) == 0
    status = capsys.readouterr().err
    seed = json.loads((tmp_path / "m" / "result.json").read_text())["seed"]
    assert f"using random seed {seed}" in status


def test_the_same_seed_gives_the_same_model(
    files: list[str], model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = str(tmp_path / "again")
    assert main(["fit", *files, "--out", again, "--seed", "1", *tiny()]) == 0
    for folder, name in ((model, "a.npy"), (again, "b.npy")):
        assert main(["embed", folder, "--out", str(tmp_path / name)]) == 0
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), np.load(tmp_path / "b.npy"))


def test_fit_replaces_a_model_only_with_overwrite(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fit = ["fit", *files, "--out", str(tmp_path / "m"), "--seed", "0", *tiny()]
    assert main(fit) == 0
    capsys.readouterr()
    assert "--overwrite" in error_line(capsys, *fit)
    assert main([*fit, "--overwrite"]) == 0


@pytest.mark.parametrize("name", ["e.parquet", "e.csv", "e.npy", "e.txt"])
def test_embed_writes_every_format(
    name: str, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / name
    found = run_json(capsys, "embed", model, "--out", str(out))
    assert (found["vertices"], found["dimensions"]) == (30, 8)
    assert out.stat().st_size > 0


@pytest.mark.parametrize("kind", ["graph", "pair"])
def test_embed_writes_standard_deviations(
    kind: str, model: str, pair_model: str, tmp_path: Path
) -> None:
    out, folder = tmp_path / "e.npy", pair_model if kind == "pair" else model
    assert main(["embed", folder, "--out", str(out), "--std"]) == 0
    mean, std = np.load(out)
    assert mean.shape == std.shape == (30, 8)
    assert (std > 0).all()


def test_embed_averages_over_contexts_of_a_pair_model(
    model: str, pair_model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {}
    for contexts in ("2", "all"):
        out = tmp_path / f"{contexts}.npy"
        assert main(["embed", pair_model, "--out", str(out), "--contexts", contexts]) == 0
        found[contexts] = np.load(out)
    assert np.abs(found["2"] - found["all"]).max() > 0
    capsys.readouterr()
    tokens = ["embed", model, "--out", str(tmp_path / "e.npy"), "--contexts", "2"]
    assert "contexts" in error_line(capsys, *tokens)


def test_score_of_two_vertices_with_numeric_ids(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (pair,) = run_json(capsys, "score", model, "100", "101")["pairs"]
    assert (str(pair["source"]), str(pair["target"])) == ("100", "101")
    assert 0 <= pair["probability"] < pair["balanced_probability"] <= 1
    odds = pair["balanced_probability"] / (1 - pair["balanced_probability"])
    assert np.log(odds) == pytest.approx(pair["score"])
    assert main(["score", model, "100", "101"]) == 0
    shown = capsys.readouterr().out
    for name in ("probability", "balanced_probability"):
        assert f"{pair[name]:.4f}" in shown
    (suggested, *_) = load_model(model).suggest_links("100", 1)
    (pair,) = run_json(capsys, "score", model, "100", str(suggested.id))["pairs"]
    assert pair["probability"] == pytest.approx(suggested.probability)


def test_numbers_are_not_folded_on_a_narrow_terminal(
    model: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (pair,) = run_json(capsys, "score", model, "100", "125")["pairs"]
    monkeypatch.setenv("COLUMNS", "40")
    assert main(["score", model, "100", "125"]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 40
    numbers = shown.splitlines()[-1].split()[2:]
    assert numbers[:2] == [f"{pair[name]:.4f}" for name in ("probability", "balanced_probability")]
    assert numbers[2:] == [f"{pair['score']:.3f}"]


def test_score_of_a_file_of_pairs(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("source,target\n100,101\n100,125\n")
    found = run_json(capsys, "score", model, "--pairs", str(pairs))["pairs"]
    assert [str(pair["target"]) for pair in found] == ["101", "125"]
    pairs.write_text("source,target\n100,101\n100,999\n")
    assert f"{pairs}:3" in error_line(capsys, "score", model, "--pairs", str(pairs))
    pairs.write_text("source,target\n")
    assert run_json(capsys, "score", model, "--pairs", str(pairs)) == {"pairs": []}


def test_score_names_an_unknown_vertex(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "999" in error_line(capsys, "score", model, "100", "999")


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
    assert "weights.safetensors" in error_line(capsys, "score", str(out), "100", "101")


def test_an_interrupted_fit_is_saved_and_resumed(
    files: list[str],
    model: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from vhe.graph.training import CrossFitTrainer

    step = CrossFitTrainer.step

    def interrupted(self: CrossFitTrainer, number: int) -> dict[str, float]:
        if number == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return step(self, number)

    out = tmp_path / "m"
    fit = ["fit", *files, "--out", str(out), *tiny()]
    monkeypatch.setattr(CrossFitTrainer, "step", interrupted)
    assert main([*fit, "--seed", "1", "--json"]) == 130
    monkeypatch.undo()
    printed = capsys.readouterr()
    assert printed.err.splitlines()[-1] == "vhe: interrupted"
    assert "with --resume" in printed.err.splitlines()[-2]
    assert printed.out == ""
    assert main(["score", str(out), "100", "101"]) == 0

    assert main([*fit, "--resume"]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["m"]
    for folder, name in ((model, "a.npy"), (str(out), "b.npy")):
        assert main(["embed", folder, "--out", str(tmp_path / name)]) == 0
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), np.load(tmp_path / "b.npy"))


def test_ctrl_c_exits_with_status_130(files: list[str], tmp_path: Path) -> None:
    fit = ["fit", *files, "--out", str(tmp_path / "m"), "--seed", "0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "vhe", *fit, *tiny(max_steps=10**6, validate_every=10**6)],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"},
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("training"):
            break
    process.send_signal(signal.SIGINT)
    output = process.stderr.read()
    assert process.wait(timeout=60) == 130
    assert output.splitlines()[-1] == "vhe: interrupted"
    assert "Traceback" not in output
