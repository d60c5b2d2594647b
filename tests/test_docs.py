"""The documentation: its commands and programs run, its tree and figures match the repository.

The fenced blocks of a page run in order, in a temporary folder:

- `sh` contains commands, `python` a program, `text NAME` a file to be written;
- `text` directly after one of them is the expected output;
- after `<!-- long -->` a block is run by `make docs-test` only; here commands are only parsed, and
  programs use a small synthetic network;
- after `<!-- not run: reason -->` commands are only parsed, and output is not compared;
- after `<!-- needs PACKAGE -->` a block is run if that package is installed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import io
import json
import logging
import os
import re
import runpy
import shlex
import subprocess
import tomllib
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import vhe
from vhe.cli import main, make_app

ROOT = Path(__file__).parent.parent
LONG = bool(os.environ.get("VHE_DOCS_LONG"))  # set by make docs-test
WITHOUT_COMMANDS = {"log.md", "reliability.md", "settings.md"}
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    ROOT / "examples" / "README.md",
    *(page for page in sorted((ROOT / "docs").glob("*.md")) if page.name not in WITHOUT_COMMANDS),
]
FENCE = re.compile(
    r"(?:^ *<!-- (?P<mark>[^>]*) -->\n)?^(?P<indent> *)```(?P<info>[^\n]*)\n(?P<body>.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)
NUMBER = re.compile(r"-?\d+\.\d+|\d+")
TOLERANCE = 0.03  # of printed numbers, absolute or relative
DOWNLOADED = {"cora", "hepth", "zhihu", "debian"}


@dataclass(frozen=True)
class Block:
    kind: str
    file: str
    body: str
    mark: str
    line: int
    follows: bool  # directly after the previous block


def blocks(page: Path) -> list[Block]:
    text, found, end = page.read_text(encoding="utf-8"), [], 0
    for match in FENCE.finditer(text):
        kind, _, file = match["info"].partition(" ")
        body = re.sub(f"^{match['indent']}", "", match["body"], flags=re.MULTILINE)
        line = text[: match.start("info")].count("\n") + 1
        follows = not text[end : match.start()].strip()
        found.append(Block(kind, file.strip(), body, match["mark"] or "", line, follows))
        end = match.end()
    return found


def commands(body: str) -> Iterator[list[str]]:
    """The arguments of each command; a backslash continues a line."""
    for line in body.replace("\\\n", " ").splitlines():
        if words := shlex.split(line, comments=True):
            while re.fullmatch(r"[A-Z_]+=.*", words[0]):
                words = words[1:]
            yield words


# --- the folder in which a page runs


def topics(names: list[str]) -> vhe.TextNetwork:
    """A network of vertices with these ids in three topics, linked inside topics."""
    texts = {n: f"topic{k % 3} word{k % 3} about{k % 7} common" for k, n in enumerate(names)}
    edges = [(a, b) for a, b in zip(names, names[3:], strict=False)]
    edges += [(a, b) for a, b in zip(names, names[6:], strict=False)]
    return vhe.TextNetwork.from_edges(texts, edges)


IDS = {  # model folders that pages use, and the ids that they name
    "demo/model": [
        "numpy.sin",
        "numpy.cos",
        "pandas.merge",
        "networkx.pagerank",
        "networkx.bfs_tree",
        "networkx.dfs_edges",
    ],
    "mymodel": ["p12", "p40", "p3"],
    "runs/cora": ["12", "40"],
}


@pytest.fixture(scope="module")
def stand_in(hasty: Callable[..., vhe.VHE]) -> Callable[[Path, str], None]:
    """Writes a quickly trained model in place of one that takes long."""

    @cache
    def fitted(name: str) -> vhe.VHE:
        return hasty().fit(topics([*IDS[name], *(f"other{k}" for k in range(30))]))

    def write(folder: Path, name: str) -> None:
        fitted(name).save(folder / name)

    return write


@pytest.fixture
def page_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that pages assume; unless LONG, fits and `vhe.load` are quick."""
    network = topics([f"p{k}" for k in range(60)])
    vertices, edges = network.to_pandas()
    vertices.to_csv(tmp_path / "vertices.csv", index=False)
    edges.to_csv(tmp_path / "edges.csv", index=False)
    (tmp_path / "new.csv").write_text("id,text\nn1,topic1 word1 about2\n")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    if not LONG:
        from vhe.runtime.loop import TrainingLoop

        run = TrainingLoop.run

        def two_steps(self: TrainingLoop) -> Any:
            self.steps = min(self.steps, 2)
            return run(self)

        small = topics([*IDS["demo/model"], *(f"other{k}" for k in range(60))])
        monkeypatch.setattr(TrainingLoop, "run", two_steps)
        monkeypatch.setattr(vhe, "load", lambda name: small)
    return tmp_path


# --- commands


def parse(words: list[str]) -> None:
    make_app().parse_args(words, print_error=False, exit_on_error=False)


def available_locally(words: list[str]) -> bool:
    wanted = DOWNLOADED & set(words)
    folder = os.environ.get("VHE_DATA_DIR")
    return not wanted or bool(folder and all((Path(folder) / name).is_dir() for name in wanted))


def check_command(words: list[str], run: bool) -> None:
    """Run a `vhe` command; for others check that the files and names that they use exist."""
    program, rest = Path(words[0]).name, words[1:]
    if program == "vhe":
        if rest[0].startswith("--"):
            assert main(["--help"]) == 0
        elif run and rest[0] != "serve" and available_locally(rest):
            assert main(rest) == 0
        else:
            parse(rest)
    elif program == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert set(rest) <= set(targets)
    elif program == "pip":
        named = re.findall(r"\[([\w,]+)\]", " ".join(rest))
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        for extra in ",".join(named).split(",") if named else []:
            assert extra in extras["optional-dependencies"]
        for file in (word for word in rest if word.endswith(".txt")):
            assert (ROOT / file).exists()
    elif program == "python" and rest[0].endswith(".py"):
        assert (ROOT / rest[0]).exists()  # examples are run by tests/test_examples.py
    elif program == "python":
        assert importlib.util.find_spec(rest[1]), rest
    elif program == "curl":
        check_route(next(word for word in rest if word.startswith("http")))
    else:
        others = {"ls", "podman", "dask-ssh", "embedding-atlas", "torchrun", "pre-commit"}
        assert program in others, f"unexpected program {program}"


def check_route(address: str) -> None:
    sources = [path.read_text() for path in (ROOT / "src/vhe/web").glob("*routes.py")]
    found = re.findall(r'routes\.\w+\(\s*"([^"]*)"', "".join(sources))
    routes = [f"/api{route}" for route in found]
    path = re.sub(r"^https?://[^/]*|\?.*", "", address)
    patterns = [re.sub(r"\{[^}]*\}", r"[^/]+", route) for route in routes]
    assert any(re.fullmatch(pattern, path) for pattern in patterns), f"{path} is not a route"


def same_output(printed: str, expected: str) -> bool:
    """Whether two outputs agree up to the last digits of their numbers."""
    ours, shown = (re.sub(r"[ \t]+", " ", text.strip()) for text in (printed, expected))
    if NUMBER.sub("#", ours) != NUMBER.sub("#", shown):
        return False
    pairs = zip(NUMBER.findall(ours), NUMBER.findall(shown), strict=True)
    return all(abs(float(a) - float(b)) <= TOLERANCE * max(1, abs(float(b))) for a, b in pairs)


@pytest.fixture
def logging_restored() -> Iterator[None]:
    """A program of a page may configure logging; later tests have it as it was."""
    loggers = [logging.getLogger(), logging.getLogger("vhe")]
    before = [(logger.level, list(logger.handlers)) for logger in loggers]
    yield
    for logger, (level, handlers) in zip(loggers, before, strict=True):
        logger.setLevel(level)
        logger.handlers[:] = handlers


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("logging_restored")
def test_a_page_runs_as_printed(
    page: Path, page_folder: Path, stand_in: Callable[[Path, str], None]
) -> None:
    text, found = page.read_text(encoding="utf-8"), blocks(page)
    substituted = False
    for name in IDS:
        made = re.search(rf"--out {name}\b|save\(.{name}|vhe demo\b", text)
        if name in text and not (made and (name != "demo/model" or LONG)):
            stand_in(page_folder, name)
            substituted = True
    exact = LONG or not (substituted or "<!-- long -->" in text)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    printed, missing = "", False
    for block in found:
        where = f"{page.name}:{block.line}"
        long, not_run = block.mark == "long", block.mark.startswith("not run:")
        if missing and block.follows:
            continue
        package = block.mark.removeprefix("needs ")
        missing = package != block.mark and not importlib.util.find_spec(package)
        if missing:
            continue
        out = io.StringIO()
        if block.kind == "text" and block.file:
            (page_folder / block.file).write_text(block.body, encoding="utf-8")
        elif block.kind == "text":
            if exact and block.follows and not not_run:
                assert same_output(printed, block.body), f"{where}: the output is\n{printed}"
        elif block.kind == "python":
            with contextlib.redirect_stdout(out):
                exec(compile(block.body, where, "exec"), namespace)
        elif block.kind in ("sh", ""):
            with contextlib.redirect_stdout(out):
                for words in commands(block.body):
                    try:
                        check_command(words, run=not not_run and (LONG or not long))
                    except BaseException as error:
                        raise AssertionError(f"{where}: {shlex.join(words)}: {error}") from error
        else:
            assert block.kind in ("{toctree}", "{eval-rst}"), f"{where}: {block.kind}"
        printed = out.getvalue()


def test_different_outputs_are_detected() -> None:
    assert same_output("AUC 0.931 of 12", "AUC  0.93 of 12")
    assert not same_output("AUC 0.80 of 12", "AUC 0.93 of 12")
    assert not same_output("numpy.cos 1", "numpy.sin 1")


@pytest.mark.parametrize(
    "line",
    ["vhe fit --no-such-option", "make nothing", "pip install 'vhe[no]'", "curl http://h/api/x"],
)
def test_unknown_commands_are_detected(line: str) -> None:
    with pytest.raises((Exception, SystemExit)):
        check_command(shlex.split(line), run=False)


# --- README and generated pages


@pytest.mark.skipif(not LONG, reason="make docs-test")
def test_the_demo_prints_the_figures_of_the_readme(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "--out", str(tmp_path / "demo"), "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)["scores"]
    sentence = r"`make demo` prints an MRR of ([\d.]+) for `VHE` and of ([\d.]+) for TF-IDF"
    shown = re.search(sentence, (ROOT / "README.md").read_text(encoding="utf-8"))
    assert shown is not None
    printed = [scores["VHE"]["mrr"], scores["TF-IDF"]["mrr"]]
    assert [float(figure) for figure in shown.groups()] == pytest.approx(printed, abs=0.01)


@pytest.mark.skipif(not LONG, reason="make docs-test")
def test_the_three_ways_in_print_what_the_readme_shows(tmp_path: Path) -> None:
    program = runpy.run_path(str(ROOT / "docs" / "three_ways.py"))
    ways = program["ways"]()
    assert len(ways) == 3
    for title, (commands, shown) in ways.items():
        folder = tmp_path / title.replace(" ", "-") / "functions"
        folder.mkdir(parents=True)
        program["write_sources"](folder)
        printed = "\n".join(program["run"](command, folder) for command in commands).splitlines()
        for line in shown.splitlines():
            assert line == "..." or any(same_output(p, line) for p in printed), (title, line)


def test_the_tree_in_the_readme_matches_the_disk() -> None:
    block = next(b for b in blocks(ROOT / "README.md") if b.body.startswith("src/vhe/\n"))
    shown: list[Path] = []
    folders: list[tuple[int, Path]] = []
    for line in block.body.splitlines():
        depth, name = len(line) - len(line.lstrip()), line.split()[0]
        assert name == "src/vhe/" or len(line.split()) > 2, f"{name} has no description"
        while folders and folders[-1][0] >= depth:
            folders.pop()
        path = (folders[-1][1] if folders else ROOT) / name
        assert path.is_dir() if name.endswith("/") else path.is_file(), f"{path} does not exist"
        folders.append((depth, path))
        shown.append(path)
    tracked = subprocess.run(
        ["git", "ls-files", "src/vhe/*/__init__.py"], cwd=ROOT, capture_output=True, text=True
    ).stdout.split()
    packages = {(ROOT / file).parent for file in tracked}
    assert packages <= set(shown)
    assert {"tests", "docs", "examples", "benchmarks"} <= {p.name for p in shown}


def test_the_graph_networks_have_the_settings_that_the_search_chose() -> None:
    from vhe.evaluation.methods import make

    searches = list((ROOT / "results" / "tuning").glob("*.json"))
    assert len(searches) == 8
    for path in searches:
        search = json.loads(path.read_text(encoding="utf-8"))
        model = make(search["method"], 0)
        assert {name: getattr(model, name) for name in search["chosen"]} == search["chosen"]


PICTURE = re.compile(r"^!\[[^\]]*\]\(.*\)$")


def test_the_command_of_each_picture_is_below_it() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    found = 0
    for page in pages:
        lines = [line for line in page.read_text(encoding="utf-8").splitlines() if line]
        for number, line in enumerate(lines):
            if PICTURE.match(line):
                found += 1
                below = lines[number + 1]
                assert re.search(r"`(vhe |python )[^`]+`", below), f"{page.name}: {line}"
    assert found > 10


def test_the_program_that_draws_the_pictures_can_be_imported() -> None:
    pytest.importorskip("matplotlib")
    assert "draw_map" in runpy.run_path(str(ROOT / "docs" / "pictures.py"))


def generator() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "docs" / "generate.py"))


@pytest.fixture(scope="module")
def results() -> list[dict[str, Any]]:
    from vhe.paper.results import read_results

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # results of removed methods
        return list(read_results(ROOT / "results"))


def test_the_table_in_the_readme_matches_the_results(results: list[dict[str, Any]]) -> None:
    generate = generator()
    block = generate["BLOCK"].search((ROOT / "README.md").read_text(encoding="utf-8"))
    shown = block[0].splitlines()
    rows = [line for line in generate["table"](results).splitlines() if line.startswith("| ")]
    measured = {result["method"] for result in results if result["task"] == "link"}
    assert len(rows) == len(measured & generate["METHODS"].keys()) + 2
    assert any(row.startswith("| `VHE`") for row in rows)
    for row in rows:
        name = row.split("|")[1]
        line = next((t for t in shown if t.startswith(f"|{name}|")), "")
        in_readme, current = (
            [float(n) for n in re.findall(r"\d+\.\d", re.sub(r"± \d+\.\d", "", text))]
            for text in (line, row)
        )
        # another seed changes a little; .venv/bin/python docs/generate.py updates the table
        assert current == pytest.approx(in_readme, abs=0.5), f"README: {line}, results: {row}"


def test_the_figures_of_encoders_are_those_of_the_results() -> None:
    benchmark = runpy.run_path(str(ROOT / "benchmarks" / "encoders.py"))
    page = (ROOT / "docs/encoders.md").read_text(encoding="utf-8")
    current = benchmark["with_tables"](page, ROOT / "results" / "encoders")
    assert "words and MiniLM" in current
    number = re.compile(r"\d+\.\d")
    assert number.sub("", page) == number.sub("", current), "benchmarks/encoders.py --table"
    shown, measured = ([float(n) for n in number.findall(text)] for text in (page, current))
    assert shown == pytest.approx(measured, abs=0.3)  # the results may be measured again


def test_the_settings_page_is_current() -> None:
    page = (ROOT / "docs/settings.md").read_text(encoding="utf-8")
    assert page == generator()["settings"](), "run .venv/bin/python docs/generate.py"


@pytest.mark.parametrize(
    ("config", "columns"), [(vhe.VHEConfig, ""), (vhe.PairVHEConfig, r" (`[^`]+`)? *\|")]
)
def test_every_setting_is_described(config: type[Any], columns: str) -> None:
    _, graph, pair = generator()["settings"]().split("\n## ")
    page = graph if config is vhe.VHEConfig else pair
    for field in dataclasses.fields(config):
        row = rf"^\| `{field.name}` \| `[^`]+` \|{columns} \S"
        assert re.search(row, page, re.MULTILINE), field.name


def test_every_page_is_in_the_table_of_contents_and_every_picture_is_shown() -> None:
    index = (ROOT / "docs/index.md").read_text()
    listed = set(re.findall(r"^([\w/*-]+)$", index, re.MULTILINE))
    pages = {page.stem for page in (ROOT / "docs").glob("*.md")} - {"index"}
    assert {page for page in pages if page not in listed} == set()
    shown = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    for picture in (ROOT / "docs/images").iterdir():
        assert f"images/{picture.name})" in shown, f"{picture.name} is not shown on any page"
        assert picture.stat().st_size < 200_000


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("obsidian", "data"),
        ("zotero", "data"),
        ("calibrated", "suggestions"),
        ("new documents", "new-vertices"),
        ("cluster", "scaling"),
    ],
)
def test_what_readers_search_for_is_in_a_heading(words: str, page: str) -> None:
    """Sphinx ranks pages with the words in a heading first."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8").lower()
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert any(set(words.split()) <= set(re.findall(r"\w+", line)) for line in headings)
