"""The runner: interrupted, killed, given damaged files, without data; it always goes on rightly."""

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from vhe.data.datasets import DATASETS, Dataset, load
from vhe.data.network import TextNetwork
from vhe.errors import VHEError
from vhe.evaluation.experiment import Bench, Cell
from vhe.paper import runner
from vhe.paper.results import cell_path, finished, read_results
from vhe.paper.runner import Outcome, Tally, duration, run

CELLS = [
    Cell("link", "cora", "tfidf", 0.55, protocol, seed)
    for seed in (0, 1)
    for protocol in ("lines", "clean")
] + [Cell("classify", "cora", "tfidf", share, None, 0) for share in (0.3, 0.5)]


class Counting:
    """Counts what is measured, and may break at one of the cells."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.measured: list[Cell] = []
        self.breaks: dict[int, BaseException] = {}
        measure = Bench.measure

        def counted(bench: Bench, cell: Cell) -> dict:
            self.measured.append(cell)
            if len(self.measured) in self.breaks:
                raise self.breaks[len(self.measured)]
            return measure(bench, cell)

        monkeypatch.setattr(Bench, "measure", counted)


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Counting:
    return Counting(monkeypatch)


@pytest.fixture
def go(network: TextNetwork, tmp_path: Path):
    """Runs cells on the small network into a folder; returns the tally and what was said."""

    def start(cells=CELLS, load=lambda name: network) -> tuple[Tally, list[str]]:
        said: list[str] = []
        return run(cells, tmp_path, say=said.append, load=load), said

    return start


def test_each_cell_is_a_file(go, tmp_path: Path, network: TextNetwork) -> None:
    tally, said = go()
    assert tally == Tally(done=6)
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()} == {
        "link/cora-tfidf-55-lines-0.json",
        "link/cora-tfidf-55-clean-0.json",
        "link/cora-tfidf-55-lines-1.json",
        "link/cora-tfidf-55-clean-1.json",
        "classify/cora-tfidf-30-0.json",
        "classify/cora-tfidf-50-0.json",
    }
    kept = json.loads(cell_path(tmp_path, CELLS[1]).read_text())
    fresh = Bench(network).measure(CELLS[1])
    assert {k: kept[k] for k in fresh if k != "seconds"} == {
        k: v for k, v in fresh.items() if k != "seconds"
    }
    assert "versions" in kept["origin"]
    assert said[0].startswith("[1/6] link cora tfidf 55 % lines seed 0: AUC ")
    assert "left)" in said[0]
    assert said[-1].endswith("the last)")


def test_what_is_finished_is_not_run_again(go, counting: Counting, tmp_path: Path) -> None:
    go(CELLS[:4])
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")}
    tally, said = go()
    assert (tally.done, tally.finished_before) == (2, 4)
    assert counting.measured == CELLS
    assert said[0] == "4 of 6 cells are finished already"
    assert before.items() <= {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*.json")}.items()
    assert go()[0] == Tally(finished_before=6)


def test_an_interrupted_run_goes_on_where_it_was(go, counting: Counting, tmp_path: Path) -> None:
    counting.breaks[3] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        go()
    assert [finished(tmp_path, cell) for cell in CELLS] == [True, True, *[False] * 4]
    assert len([p for p in tmp_path.rglob("*") if p.is_file()]) == 2  # nothing half done
    tally, _ = go()
    assert (tally.done, tally.finished_before) == (4, 2)
    assert counting.measured == [*CELLS[:3], *CELLS[2:]]


def test_an_interrupt_that_training_takes_leaves_no_result(
    go, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure = Bench.measure

    def training(bench: Bench, cell: Cell) -> dict:
        before = signal.signal(signal.SIGINT, lambda *_: None)
        os.kill(os.getpid(), signal.SIGINT)
        signal.signal(signal.SIGINT, before)
        return measure(bench, cell)

    monkeypatch.setattr(Bench, "measure", training)
    with pytest.raises(KeyboardInterrupt):
        go()
    assert not list(read_results(tmp_path))


def test_a_broken_cell_is_said_and_left_for_the_next_time(
    go, counting: Counting, tmp_path: Path
) -> None:
    counting.breaks |= {2: RuntimeError("out of luck"), 3: RuntimeError("out of luck")}
    tally, said = go()
    assert tally == Tally(done=4, failed={"RuntimeError: out of luck": 2})
    assert [line for line in said if "out of luck" in line] == [
        f"{CELLS[1]} failed: RuntimeError: out of luck"
    ]
    assert not finished(tmp_path, CELLS[1])
    assert go()[0] == Tally(done=2, finished_before=4)


def test_a_crash_while_writing_leaves_the_old_state(
    go, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(path: Path, target: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", crash)
    with pytest.raises(KeyboardInterrupt):
        go(CELLS[:1])
    monkeypatch.undo()
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]
    assert go(CELLS[:1])[0].done == 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text[: len(text) // 2],
        lambda text: "[]",
        lambda text: "null",
        lambda text: text.replace('"auc"', '"acu"'),
        lambda text: text.replace('"seed": 0', '"seed": 5'),
        lambda text: text.replace('"task": "link"', '"task": "unseen"'),
    ],
)
def test_a_half_written_or_foreign_file_is_measured_again(go, tmp_path: Path, damage) -> None:
    go(CELLS[:1])
    path = cell_path(tmp_path, CELLS[0])
    whole = path.read_text()
    path.write_text(damage(whole))
    assert damage(whole) != whole
    assert not finished(tmp_path, CELLS[0])
    assert go(CELLS[:1])[0].done == 1
    assert json.loads(path.read_text())["auc"] == json.loads(whole)["auc"]


def test_pieces_are_no_results(go, tmp_path: Path) -> None:
    go(CELLS[:2])
    (tmp_path / "link" / "half.json").write_text('{"task": "link", "au')
    (tmp_path / "link" / ".x.json.12ab.part").write_text("{}")
    assert len(list(read_results(tmp_path))) == 2


def test_other_settings_are_another_cell(go, tmp_path: Path) -> None:
    plain = Cell("link", "cora", "diffused-text", 0.55, "clean", 0)
    few = Cell("link", "cora", "diffused-text", 0.55, "clean", 0, {"dimensions": 2})
    go([plain])
    assert finished(tmp_path, plain)
    assert not finished(tmp_path, few)
    go([few])
    assert finished(tmp_path, few)
    assert not finished(tmp_path, plain)


def test_data_that_cannot_be_had_are_tried_once_and_leave_no_file(
    go, network: TextNetwork, tmp_path: Path
) -> None:
    tried = []

    def some(name: str) -> TextNetwork:
        tried.append(name)
        if name == "zhihu":
            raise VHEError("zhihu/data.txt could not be downloaded.")
        return network

    lost = [Cell("link", "zhihu", "tfidf", 0.55, "lines", seed) for seed in (0, 1)]
    tally, said = go([*lost, *CELLS[:2]], some)
    assert tally.done == 2
    assert list(tally.skipped.values()) == [2]
    assert tried == ["zhihu", "cora"]
    assert len([line for line in said if "could not be downloaded" in line]) == 1
    assert not list(tmp_path.rglob("zhihu*"))


def test_zhihu_runs_where_its_text_is_and_is_the_published_one(
    go, network: TextNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def blob(text: str) -> str:
        content = text.encode()
        return "git:" + hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()

    texts = "\n".join(network.texts) + "\n"
    graph = "\n".join(f"{i}\t{j}" for i, j in network.edges) + "\n"
    folder = tmp_path / "data" / "zhihu"
    folder.mkdir(parents=True)
    (folder / "graph.txt").write_text(graph)
    published = Dataset("", "zhihu", {"data.txt": blob(texts), "graph.txt": blob(graph)})
    monkeypatch.setitem(DATASETS, "zhihu", published)
    monkeypatch.setenv("VHE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("VHE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("VHE_DATA_URL", (tmp_path / "nowhere").as_uri())
    cells = [Cell("link", "zhihu", "tfidf", 0.55, "lines", 0)]
    assert "could not be downloaded" in next(iter(go(cells, load)[0].skipped))
    (folder / "data.txt").write_text(texts.replace("t0w1", "t0w2", 1))
    assert "checksum differs" in next(iter(go(cells, load)[0].skipped))
    (folder / "data.txt").write_text(texts)
    assert go(cells, load)[0] == Tally(done=1)


def test_methods_that_cannot_do_it_are_left_out(go, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [Cell("unseen", "cora", "line", 0.5, "clean", seed) for seed in (0, 1)]
    tally, said = go(cells)
    assert list(tally.skipped.values()) == [2]
    assert len(said) == 1
    assert "line cannot embed a vertex" in said[0]


def test_time_left_counts_on_what_the_method_took() -> None:
    cells = [Cell("link", "cora", m, 0.5, "clean", s) for m in ("tfidf", "vhe") for s in range(3)]
    clock = runner._Clock(cells)
    assert clock.tick(Outcome(cells[0], "done", "", 10)) == "about 50 s left"
    # 2 of 10 s, 2 of 1000 s
    assert clock.tick(Outcome(cells[3], "done", "", 1000)) == "about 34 min left"
    assert clock.tick(Outcome(cells[4], "skipped")) == "about 17 min left"
    two = runner._Clock(cells, workers=2)
    assert two.tick(Outcome(cells[0], "done", "", 10)) == "about 25 s left"
    assert (duration(5), duration(600), duration(36000)) == ("5 s", "10 min", "10.0 h")


@pytest.mark.parametrize(
    ("task", "method", "settings"),
    [
        ("lambda", "vhe", {"homophily": 0.0}),
        ("alpha", "vhe", {"alpha": 1.0}),
        ("structure", "vhe", {"structure": "none"}),
        ("structure", "vhe-pairs", {"structure": "none"}),
    ],
)
def test_the_ends_of_what_the_figures_vary_can_be_run(
    task: str, method: str, settings: dict, network: TextNetwork, tiny: dict
) -> None:
    sizes = tiny | {"steps": 2, "validate_every": 1} | settings
    result = Bench(network).measure(Cell(task, "topics", method, 0.9, "clean", 0, sizes))
    assert 0.3 < result["auc"] <= 1


# Several processes


@pytest.fixture
def mini(network: TextNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The small network as a folder, which every process can read by its name."""
    folder = tmp_path / "mini"
    folder.mkdir()
    (folder / "data.txt").write_text("\n".join(network.texts) + "\n")
    (folder / "graph.txt").write_text("\n".join(f"{i}\t{j}" for i, j in network.edges) + "\n")
    monkeypatch.chdir(tmp_path)
    return "mini"


def test_processes_give_what_one_gives(mini: str, tmp_path: Path) -> None:
    cells = [Cell("link", mini, "diffused-text", 0.55, "clean", seed) for seed in range(4)]
    cells.append(Cell("link", "nowhere", "tfidf", 0.55, "clean", 0))
    said: list[str] = []
    tally = run(cells, tmp_path / "two", say=said.append, workers=2)
    assert tally.done == 4
    assert list(tally.skipped.values()) == [1]
    assert any(line.startswith("[4/5] ") or line.startswith("[5/5] ") for line in said)
    run(cells[:1], tmp_path / "one", say=said.append)
    one, two = (
        json.loads(cell_path(tmp_path / name, cells[0]).read_text()) for name in ("one", "two")
    )
    assert one["auc"] == pytest.approx(two["auc"])
    assert two["origin"]["threads"] == 1
    assert "nowhere" in next(iter(tally.skipped))
    again = run(cells[:4], tmp_path / "two", say=said.append, workers=2)
    assert again == Tally(finished_before=4)


def test_a_killed_run_leaves_whole_files_and_nobody_working(mini: str, tmp_path: Path) -> None:
    program = (
        "from pathlib import Path\n"
        "from vhe.evaluation.experiment import Cell\n"
        "from vhe.paper.runner import run\n"
        "from vhe.runtime import provenance\n"
        "provenance.provenance = lambda seed: {}\n"  # no need for torch
        "if __name__ == '__main__':\n"
        "    cells = [Cell('link', 'mini', 'tfidf', 0.5, 'clean', k) for k in range(100_000)]\n"
        "    run(cells, Path('killed'), say=print, workers=2)\n"
    )
    (tmp_path / "endless.py").write_text(program)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "endless.py"],
        stdout=subprocess.DEVNULL,
        cwd=tmp_path,
        env=environment,
        start_new_session=True,
    )
    try:
        _until(lambda: len(list(tmp_path.glob("killed/link/*.json"))) > 5)
        process.kill()  # no handler sees this one
        process.wait()
        _until(lambda: not _alive(process.pid))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    written = list(tmp_path.glob("killed/link/*.json"))
    assert len(list(read_results(tmp_path / "killed"))) == len(written)
    cells = [Cell("link", mini, "tfidf", 0.5, "clean", seed) for seed in range(len(written) + 2)]
    tally = run(cells, tmp_path / "killed", say=lambda line: None)
    assert tally.done + tally.finished_before == len(cells)
    assert tally.finished_before >= 5


def _until(true) -> None:
    end = time.monotonic() + 120
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def _alive(group: int) -> bool:
    """Whether any process of a group is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
