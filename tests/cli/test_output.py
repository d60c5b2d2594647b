"""What reaches the terminal and exported files: no control characters, no formulas, plurals."""

import csv
import json
import logging
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import vhe
from vhe.cli import main
from vhe.cli.output import (
    console,
    diagnostics_to_stderr,
    print_json,
    print_status,
    print_table,
    printable,
)

ROOT = Path(__file__).parents[2]
TITLE, CLEAR = "\x1b]0;owned\x07", "\x9b2J"
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
IDS = (f"a{TITLE}", f"b{CLEAR}", "=1+1", "+cmd", "-5", "@sum", "\tx", "\ry", "plain")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model whose ids and texts contain escape sequences and formulas."""
    texts = {f"{i}": f"topic{k % 3} word {TITLE}{CLEAR} =2" for k, i in enumerate(IDS)}
    texts |= {f"v{k}": f"topic{k % 3} word about{k % 7}" for k in range(21)}
    names = list(texts)
    edges = list(zip(names, names[3:], strict=False)) + list(zip(names, names[6:], strict=False))
    network = vhe.TextNetwork.from_edges(texts, edges)
    settings = {"latent_dim": 8, "min_count": 1, "max_steps": 2, "validation": 0.2}
    folder = tmp_path_factory.mktemp("hostile") / "model"
    vhe.VHE(random_state=0, verbose=False, **settings).fit(network).save(folder)
    return str(folder)


@pytest.mark.parametrize(
    "tokens",
    [
        ("suggest", "{model}", "plain", "-k", "20"),
        ("suggest", "{model}", "plain", "-k", "20", "--json"),
        ("score", "{model}", IDS[0], IDS[1]),
        ("score", "{model}", IDS[0], IDS[1], "--json"),
        ("explain", "{model}", IDS[0], IDS[1]),
        ("explain", "{model}", IDS[0], IDS[1], "--json"),
        ("score", "{model}", "plain", f"unknown{TITLE}{CLEAR}"),
        ("data", f"unknown{TITLE}{CLEAR}"),
        (f"unknown{TITLE}{CLEAR}",),
    ],
)
def test_no_control_character_reaches_the_terminal(
    tokens: tuple[str, ...], model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main([token.format(model=model) for token in tokens])
    printed = capsys.readouterr()
    assert printed.out or printed.err
    assert not CONTROL.search(printed.out + printed.err)


def test_control_characters_are_visible_symbols(capsys: pytest.CaptureFixture[str]) -> None:
    print_status(f"{TITLE}{CLEAR}")
    print_table([(f"a{TITLE}", f"b{CLEAR}\x85")])
    console().print(f"{TITLE}{CLEAR}")
    printed = capsys.readouterr()
    assert printed.err == "␛]0;owned␇�2J\n"
    assert printed.out.splitlines()[0] == "a␛]0;owned␇  b�2J�"
    assert not CONTROL.search(printed.out)
    assert printable("tab\tand\nline") == "tab\tand\nline"


def test_json_keeps_control_characters_as_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"id": f"{TITLE}{CLEAR}"})
    printed = capsys.readouterr().out
    assert not CONTROL.search(printed)
    assert json.loads(printed) == {"id": f"{TITLE}{CLEAR}"}


def test_colours_and_progress_still_control_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    console(markup=True).print(f"[bold]x[/bold]{TITLE}")
    printed = capsys.readouterr().out
    assert printed.startswith("\x1b[1mx\x1b[0m")
    assert TITLE not in printed


def test_warnings_of_the_logger_are_notes_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("vhe.some.module")
    with diagnostics_to_stderr(json=False):
        for _ in range(2):
            logger.warning("a remark%s", CLEAR)
        logger.info("not shown")
        warnings.warn("of another library", stacklevel=1)
    assert capsys.readouterr().err == "note: a remark�2J\nnote: of another library\n"
    assert not logging.getLogger("vhe").handlers


def test_the_library_logs_instead_of_printing() -> None:
    """Except for progress, the address of `explore`, and processes that answer on their output."""
    pattern = re.compile(r"(?<![\w.])print\(|warnings\.warn\(|sys\.std(out|err)\b")
    files = (ROOT / "src/vhe").rglob("*.py")
    found = {
        p.relative_to(ROOT / "src/vhe").as_posix() for p in files if pattern.search(p.read_text())
    }
    assert {name for name in found if not name.startswith(("cli/", "__main__"))} == {
        "bench/startup.py",
        "runtime/progress.py",
        "web/background.py",
        "web/notebook.py",
    }


def test_commands_print_by_the_output_module_only() -> None:
    for path in (ROOT / "src/vhe/cli").glob("*.py"):
        if path.name != "output.py":
            assert not re.search(r"(?<![\w.])print\(|Console\(\)", path.read_text()), path.name


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_exported_tables_contain_no_formulas(ending: str, model: str, tmp_path: Path) -> None:
    safe, raw = tmp_path / f"safe.{ending}", tmp_path / f"raw.{ending}"
    assert main(["suggest", model, "--all", "--out", str(safe)]) == 0
    assert main(["suggest", model, "--all", "--raw", "--out", str(raw)]) == 0
    delimiter = "\t" if ending == "tsv" else ","
    cells, unchanged = (
        [c for row in csv.reader(p.open(newline=""), delimiter=delimiter) for c in row]
        for p in (safe, raw)
    )
    assert {"'=1+1", "'+cmd", "'@sum", "'\tx", "'\ny", "-5"} <= set(cells)
    assert not [c for c in cells if c.startswith(("=", "+", "@", "\t", "\r"))]
    assert set(IDS) - {"\ry"} <= set(unchanged)


def test_exported_embeddings_contain_no_formulas(model: str, tmp_path: Path) -> None:
    found = {}
    for name, option in (("safe", []), ("raw", ["--raw"])):
        out = tmp_path / f"{name}.csv"
        assert main(["embed", model, "--out", str(out), *option]) == 0
        with out.open(newline="") as file:
            found[name] = list(csv.reader(file))
    safe, raw = ([row[0] for row in found[name]] for name in ("safe", "raw"))
    assert raw[1 : len(IDS) + 1] == list(IDS)
    assert safe[3:9] == ["'=1+1", "'+cmd", "-5", "'@sum", "'\tx", "'\ny"]
    assert [row[1:] for row in found["safe"]] == [row[1:] for row in found["raw"]]
    assert any(float(cell) < 0 for row in found["safe"][1:] for cell in row[1:])


@pytest.mark.parametrize("closed", [">&-", "--json >&-", "2>&-"])
def test_a_closed_stream_is_no_error(closed: str, model: str) -> None:
    command = f"{sys.executable} -m vhe suggest {model} plain {closed}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, shell=True, capture_output=True, text=True, env=environment)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("tokens", "hint"),
    [
        (["FIT"], "unknown command FIT (did you mean fit?); see vhe --help"),
        (["Sugest"], "unknown command Sugest (did you mean suggest?); see vhe --help"),
        (["xyz"], "unknown command xyz; see vhe --help"),
        (["data", "--JSN"], "unknown option --JSN (did you mean --json?); see vhe data --help"),
        (["data", "--qqqq"], "unknown option --qqqq; see vhe data --help"),
        (["--verison"], "unknown option --verison (did you mean --version?); see vhe --help"),
        (["explain", "m", "a", "b", "--html"], "--html requires a value; see vhe explain --help"),
        (["fit", "x", "--out", "m", "--seed", "a"], "--seed a: must be an integer; see vhe fit"),
        (["fit", "x", "--out", "m", "--seed", "-1"], "--seed -1: must be >= 0; see vhe fit"),
        (["fit", "x", "--out", "m", "--epochs", "a"], "--epochs a: must be a number; see vhe fit"),
        (
            ["fit", "x", "--out", "m", "--seed", "1", "--seed", "2"],
            "--seed is given more than once; see vhe fit",
        ),
        (
            ["fit", "x", "--out", "m", "--model", "grpah"],
            "--model grpah: must be one of graph, pair (did you mean graph?); see vhe fit",
        ),
        (["config", "both"], "MODEL both: must be one of graph, pair; see vhe config --help"),
        (["embed", "m", "--out", "e.npy", "--contexts", "a"], "--contexts a: not a possible value"),
    ],
)
def test_an_invalid_command_line_is_explained(
    tokens: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(tokens) == 2
    printed = capsys.readouterr().err
    assert printed.startswith(f"vhe: {hint}")
    assert printed.count("\n") == 1


def test_a_file_is_not_a_model_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "papers.csv"
    file.write_text("id,text\n")
    assert main(["suggest", str(file)]) == 2
    assert capsys.readouterr().err.startswith(f"vhe: {file}: a file, not a model folder; fit a")


def test_an_error_ends_without_a_full_stop(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["suggest", model, "nobody"]) == 2
    assert capsys.readouterr().err.endswith(" has no vertex 'nobody'\n")


def test_one_vertex_is_singular(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = tmp_path / "new.csv"
    new.write_text("id,text\nn1,topic1 word\n")
    assert main(["add", model, "--vertices", str(new), "--out", str(tmp_path / "grown")]) == 0
    printed = capsys.readouterr().out
    assert "1 vertex in " in printed
    assert " 1 vertices" not in printed
