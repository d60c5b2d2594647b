"""The documents: what they print runs, what they show is there, and what they claim was measured.

A page is run from its first block to its last in a folder of its own. Of a fenced block

- `sh` has commands and `python` a program; `text NAME` is a file that is written;
- `text` right after one of them is what it prints;
- `<!-- long -->` before it: `make docs-test` runs it; here a command is only parsed, and a program
  meets a small part of See Also;
- `<!-- not run: why -->` before it: a command is only parsed;
- `<!-- needs PACKAGE -->` before it: run where that extra is installed.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import runpy
import shlex
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import vhe
from vhe.cli import command, main

ROOT = Path(__file__).parent.parent
LONG = bool(os.environ.get("VHE_DOCS_LONG"))  # set by make docs-test
GENERATED = {"log.md", "reliability.md", "settings.md"}  # no commands in them
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    ROOT / "examples" / "README.md",
    *(page for page in sorted((ROOT / "docs").glob("*.md")) if page.name not in GENERATED),
]
FENCE = re.compile(
    r"(?:^ *<!-- (?P<mark>[^>]*) -->\n)?^(?P<indent> *)```(?P<info>[^\n]*)\n(?P<body>.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)
NUMBER = re.compile(r"-?\d+\.\d+|\d+")
SIGHT = 0.03  # how far two printed numbers may be apart and still say the same
DOWNLOADED = {"cora", "hepth", "zhihu", "debian"}


@dataclass(frozen=True)
class Block:
    kind: str
    file: str
    body: str
    mark: str
    line: int
    answers: bool  # nothing stands between it and the block before


def blocks(page: Path) -> list[Block]:
    text, found, end = page.read_text(encoding="utf-8"), [], 0
    for match in FENCE.finditer(text):
        kind, _, file = match["info"].partition(" ")
        body = re.sub(f"^{match['indent']}", "", match["body"], flags=re.MULTILINE)
        line = text[: match.start("info")].count("\n") + 1
        answers = not text[end : match.start()].strip()
        found.append(Block(kind, file.strip(), body, match["mark"] or "", line, answers))
        end = match.end()
    return found


def commands(body: str) -> Iterator[list[str]]:
    """The words of each command; a backslash goes on in the next line."""
    for line in body.replace("\\\n", " ").splitlines():
        if words := shlex.split(line, comments=True):
            while re.fullmatch(r"[A-Z_]+=.*", words[0]):
                words = words[1:]
            yield words


# --- the folder that a page is run in


def topics(names: list[str]) -> vhe.TextNetwork:
    """Vertices of these names in three topics, linked within them."""
    texts = {n: f"topic{k % 3} word{k % 3} about{k % 7} common" for k, n in enumerate(names)}
    edges = [(a, b) for a, b in zip(names, names[3:], strict=False)]
    edges += [(a, b) for a, b in zip(names, names[6:], strict=False)]
    return vhe.TextNetwork.from_edges(texts, edges)


NAMES = {  # models that pages talk about, with the ids that they name
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
    """Writes a model that learned for a moment, for one that takes long."""

    @cache
    def fitted(name: str) -> vhe.VHE:
        return hasty().fit(topics([*NAMES[name], *(f"other{k}" for k in range(30))]))

    def write(folder: Path, name: str) -> None:
        fitted(name).save(folder / name)

    return write


@pytest.fixture
def workshop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hasty: Callable[..., vhe.VHE]
) -> Path:
    """A folder with the files that readers have, and, if not LONG, a quick fit and See Also."""
    network = topics([f"p{k}" for k in range(60)])
    vertices, edges = network.to_pandas()
    vertices.to_csv(tmp_path / "vertices.csv", index=False)
    edges.to_csv(tmp_path / "edges.csv", index=False)
    (tmp_path / "new.csv").write_text("id,text\nn1,topic1 word1 about2\n")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    if not LONG:
        from vhe.pair.training import Trainer

        learn = Trainer.run

        def hurried(self: Trainer) -> Any:
            self.steps = min(self.steps, 2)
            return learn(self)

        small = topics([*NAMES["demo/model"], *(f"other{k}" for k in range(60))])
        monkeypatch.setattr(Trainer, "run", hurried)
        monkeypatch.setattr(vhe, "load", lambda name: small)
    return tmp_path


# --- what each kind of command is


def parse(words: list[str]) -> None:
    command().parse_args(words, print_error=False, exit_on_error=False)


def at_hand(words: list[str]) -> bool:
    wanted = DOWNLOADED & set(words)
    folder = os.environ.get("VHE_DATA_DIR")
    return not wanted or bool(folder and all((Path(folder) / name).is_dir() for name in wanted))


def check_command(words: list[str], run: bool) -> None:
    """Run a command of `vhe`; of others check that what they name is there."""
    program, rest = Path(words[0]).name, words[1:]
    if program == "vhe":
        if rest[0].startswith("--"):
            assert main(["--help"]) == 0
        elif run and rest[0] != "serve" and at_hand(rest):
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
        assert (ROOT / rest[0]).exists()  # tests/test_examples.py runs the examples
    elif program == "python":
        assert importlib.util.find_spec(rest[1]), rest
    elif program == "curl":
        check_route(next(word for word in rest if word.startswith("http")))
    else:
        assert program in {"ls", "embedding-atlas", "torchrun", "pre-commit"}, f"{program}: what?"


def check_route(address: str) -> None:
    source = (ROOT / "src/vhe/serve/app.py").read_text()
    routes = re.findall(r'"(/api/[^"]*)"', source)
    path = re.sub(r"^https?://[^/]*|\?.*", "", address)
    patterns = [re.sub(r"\{[^}]*\}", r"[^/]+", route) for route in routes]
    assert any(re.fullmatch(pattern, path) for pattern in patterns), f"{path} is no route"


def says(printed: str, told: str) -> bool:
    """Whether two outputs are the same, but for the last digits of their numbers."""
    ours, theirs = (re.sub(r"[ \t]+", " ", text.strip()) for text in (printed, told))
    if NUMBER.sub("#", ours) != NUMBER.sub("#", theirs):
        return False
    pairs = zip(NUMBER.findall(ours), NUMBER.findall(theirs), strict=True)
    return all(abs(float(a) - float(b)) <= SIGHT * max(1, abs(float(b))) for a, b in pairs)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
@pytest.mark.filterwarnings("ignore")
def test_a_page_runs_as_printed(
    page: Path, workshop: Path, stand_in: Callable[[Path, str], None]
) -> None:
    text, found = page.read_text(encoding="utf-8"), blocks(page)
    borrowed = False
    for name in NAMES:
        made = re.search(rf"--out {name}\b|save\(.{name}|vhe demo\b", text)
        if name in text and not (made and (name != "demo/model" or LONG)):
            stand_in(workshop, name)
            borrowed = True
    exact = LONG or not (borrowed or "<!-- long -->" in text)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    printed, missing = "", False
    for block in found:
        where = f"{page.name}:{block.line}"
        long, stays = block.mark == "long", block.mark.startswith("not run:")
        if missing and block.answers:
            continue
        package = block.mark.removeprefix("needs ")
        missing = package != block.mark and not importlib.util.find_spec(package)
        if missing:
            continue
        out = io.StringIO()
        if block.kind == "text" and block.file:
            (workshop / block.file).write_text(block.body, encoding="utf-8")
        elif block.kind == "text":
            if exact and block.answers:
                assert says(printed, block.body), f"{where}: it prints\n{printed}"
        elif block.kind == "python":
            with contextlib.redirect_stdout(out):
                exec(compile(block.body, where, "exec"), namespace)
        elif block.kind in ("sh", ""):
            with contextlib.redirect_stdout(out):
                for words in commands(block.body):
                    try:
                        check_command(words, run=not stays and (LONG or not long))
                    except BaseException as error:
                        raise AssertionError(f"{where}: {shlex.join(words)}: {error}") from error
        else:
            assert block.kind in ("{toctree}", "{eval-rst}"), f"{where}: a block of {block.kind!r}"
        printed = out.getvalue()


def test_outputs_that_differ_are_noticed() -> None:
    assert says("AUC 0.931 of 12", "AUC  0.93 of 12")
    assert not says("AUC 0.80 of 12", "AUC 0.93 of 12")
    assert not says("numpy.cos 1", "numpy.sin 1")


@pytest.mark.parametrize(
    "line",
    ["vhe fit --no-such-option", "make nothing", "pip install 'vhe[no]'", "curl http://h/api/x"],
)
def test_commands_that_do_not_exist_are_noticed(line: str) -> None:
    with pytest.raises((Exception, SystemExit)):
        check_command(shlex.split(line), run=False)


# --- what the README shows


def test_the_tree_in_the_readme_is_the_one_on_the_disk() -> None:
    block = next(b for b in blocks(ROOT / "README.md") if b.body.startswith("src/vhe/\n"))
    shown: list[Path] = []
    folders: list[tuple[int, Path]] = []
    for line in block.body.splitlines():
        depth, name = len(line) - len(line.lstrip()), line.split()[0]
        assert name == "src/vhe/" or len(line.split()) > 2, f"{name} has no purpose"
        while folders and folders[-1][0] >= depth:
            folders.pop()
        path = (folders[-1][1] if folders else ROOT) / name
        assert path.is_dir() if name.endswith("/") else path.is_file(), f"there is no {path}"
        folders.append((depth, path))
        shown.append(path)
    tracked = subprocess.run(
        ["git", "ls-files", "src/vhe/*/__init__.py"], cwd=ROOT, capture_output=True, text=True
    ).stdout.split()
    house = {(ROOT / file).parent for file in tracked}
    assert house <= set(shown)
    assert {"tests", "docs", "examples", "benchmarks"} <= {p.name for p in shown}


def generator() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "docs" / "generate.py"))


def test_the_table_in_the_readme_says_what_was_measured() -> None:
    from vhe.paper.results import read_results

    generate = generator()
    block = generate["BLOCK"].search((ROOT / "README.md").read_text(encoding="utf-8"))
    measured = generate["table"](read_results(ROOT / "results"))
    told, known = block[0].splitlines(), measured.splitlines()
    rows = [line for line in known if line.startswith("| ")]
    assert len(rows) == len(generate["METHODS"]) + 2
    for row in rows:
        name = row.split("|")[1]
        line = next((t for t in told if t.startswith(f"|{name}|")), "")
        theirs = [float(n) for n in re.findall(r"\d+\.\d(?= ±)", line)]
        ours = [float(n) for n in re.findall(r"\d+\.\d(?= ±)", row)]
        # a seed more changes a little; .venv/bin/python docs/generate.py writes it anew
        assert ours == pytest.approx(theirs, abs=0.5), f"README says of{name}{line}, it is {row}"


def test_every_setting_is_described() -> None:
    import dataclasses

    page = generator()["settings"]()
    for field in dataclasses.fields(vhe.VHEConfig):
        assert re.search(rf"^\| `{field.name}` \| `[^`]+` \| (`[^`]+`)? *\| \S", page, re.MULTILINE)


def test_every_page_is_in_the_table_of_contents_and_every_picture_is_used() -> None:
    index = (ROOT / "docs/index.md").read_text()
    listed = set(re.findall(r"^([\w/*-]+)$", index, re.MULTILINE))
    pages = {page.stem for page in (ROOT / "docs").glob("*.md")} - {"index"}
    assert {page for page in pages if page not in listed} == set()
    shown = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    for picture in (ROOT / "docs/images").iterdir():
        assert f"images/{picture.name})" in shown, f"{picture.name} is nowhere shown"
        assert picture.stat().st_size < 200_000
