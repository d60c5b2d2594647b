"""The runner: interrupted or killed, with damaged files, without data; every run can be resumed."""

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.waiting import until

from vhe.baselines.tfidf import TFIDF
from vhe.data.datasets import DATASETS, Dataset, load
from vhe.data.network import TextNetwork
from vhe.errors import VHEError
from vhe.evaluation.experiment import Evaluator, Experiment
from vhe.paper import runner
from vhe.paper.results import is_finished, read_results, result_path
from vhe.paper.runner import Outcome, Tally, run

EXPERIMENTS = [
    Experiment("link", "cora", "tfidf", 0.55, protocol, seed)
    for seed in (0, 1)
    for protocol in ("lines", "clean")
] + [Experiment("classify", "cora", "tfidf", share, None, 0) for share in (0.3, 0.5)]


class Counting:
    """Records the experiments that run, and raises at chosen ones."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.measured: list[Experiment] = []
        self.raises: dict[int, BaseException] = {}
        measure = Evaluator.measure

        def counted(evaluator: Evaluator, experiment: Experiment) -> dict:
            self.measured.append(experiment)
            if len(self.measured) in self.raises:
                raise self.raises[len(self.measured)]
            return measure(evaluator, experiment)

        monkeypatch.setattr(Evaluator, "measure", counted)


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Counting:
    return Counting(monkeypatch)


@pytest.fixture
def start_run(network: TextNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Run experiments on the small network; return the tally and the reported lines."""

    def start(experiments=EXPERIMENTS, load=lambda name: network) -> tuple[Tally, list[str]]:
        lines: list[str] = []
        with monkeypatch.context() as patch:
            patch.setattr("vhe.data.datasets.load", load)
            return run(experiments, tmp_path, report=lines.append), lines

    return start


def test_each_experiment_writes_a_file(start_run, tmp_path: Path, network: TextNetwork) -> None:
    tally, lines = start_run()
    assert tally == Tally(done=6)
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()} == {
        "link/cora-tfidf-55-lines-0.json",
        "link/cora-tfidf-55-clean-0.json",
        "link/cora-tfidf-55-lines-1.json",
        "link/cora-tfidf-55-clean-1.json",
        "classify/cora-tfidf-30-0.json",
        "classify/cora-tfidf-50-0.json",
    }
    stored = json.loads(result_path(tmp_path, EXPERIMENTS[1]).read_text())
    fresh = Evaluator(network).measure(EXPERIMENTS[1])
    assert {k: stored[k] for k in fresh if k != "seconds"} == {
        k: v for k, v in fresh.items() if k != "seconds"
    }
    assert "versions" in stored["origin"]
    assert lines[0].startswith("[1/6] link cora tfidf 55 % lines seed 0: AUC ")
    assert "left)" in lines[0]
    assert lines[-1].endswith("; 0 s left)")


def test_finished_experiments_are_not_repeated(
    start_run, counting: Counting, tmp_path: Path
) -> None:
    start_run(EXPERIMENTS[:4])
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")}
    tally, lines = start_run()
    assert (tally.done, tally.finished_before) == (2, 4)
    assert counting.measured == EXPERIMENTS
    assert lines[0] == "4 of 6 experiments are finished"
    assert before.items() <= {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*.json")}.items()
    assert start_run()[0] == Tally(finished_before=6)


def test_an_interrupted_run_is_resumed(start_run, counting: Counting, tmp_path: Path) -> None:
    counting.raises[3] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        start_run()
    assert [is_finished(tmp_path, e) for e in EXPERIMENTS] == [True, True, *[False] * 4]
    assert len([p for p in tmp_path.rglob("*") if p.is_file()]) == 2  # no partial files
    tally, _ = start_run()
    assert (tally.done, tally.finished_before) == (4, 2)
    assert counting.measured == [*EXPERIMENTS[:3], *EXPERIMENTS[2:]]


def test_an_interrupted_fit_leaves_no_result(
    start_run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit = TFIDF.fit

    def interrupted(self: TFIDF, network: TextNetwork) -> TFIDF:
        self.result_ = {"stopped": "interrupted at step 3"}
        return fit(self, network)

    monkeypatch.setattr(TFIDF, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        start_run()
    assert not list(tmp_path.rglob("*.json"))


def test_a_failed_experiment_is_reported_and_repeated_the_next_time(
    start_run, counting: Counting, tmp_path: Path
) -> None:
    counting.raises |= {2: RuntimeError("out of luck"), 3: RuntimeError("out of luck")}
    tally, lines = start_run()
    assert tally == Tally(done=4, failed={"RuntimeError: out of luck": 2})
    assert [line for line in lines if "out of luck" in line] == [
        f"{EXPERIMENTS[1]}: failed: RuntimeError: out of luck"
    ]
    assert not is_finished(tmp_path, EXPERIMENTS[1])
    assert start_run()[0] == Tally(done=2, finished_before=4)


def test_a_crash_while_writing_leaves_no_file(
    start_run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(path: Path, target: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", crash)
    with pytest.raises(KeyboardInterrupt):
        start_run(EXPERIMENTS[:1])
    monkeypatch.undo()
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]
    assert start_run(EXPERIMENTS[:1])[0].done == 1


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
def test_an_incomplete_or_foreign_file_is_measured_again(start_run, tmp_path: Path, damage) -> None:
    start_run(EXPERIMENTS[:1])
    path = result_path(tmp_path, EXPERIMENTS[0])
    content = path.read_text()
    path.write_text(damage(content))
    assert damage(content) != content
    assert not is_finished(tmp_path, EXPERIMENTS[0])
    assert start_run(EXPERIMENTS[:1])[0].done == 1
    assert json.loads(path.read_text())["auc"] == json.loads(content)["auc"]


def test_incomplete_files_are_no_results(start_run, tmp_path: Path) -> None:
    start_run(EXPERIMENTS[:2])
    (tmp_path / "link" / "half.json").write_text('{"task": "link", "au')
    (tmp_path / "link" / ".x.json.12ab.part").write_text("{}")
    assert len(list(read_results(tmp_path))) == 2


def test_other_settings_are_another_experiment(start_run, tmp_path: Path) -> None:
    plain = Experiment("link", "cora", "diffused-text", 0.55, "clean", 0)
    few = Experiment("link", "cora", "diffused-text", 0.55, "clean", 0, {"dimensions": 2})
    start_run([plain])
    assert is_finished(tmp_path, plain)
    assert not is_finished(tmp_path, few)
    start_run([few])
    assert is_finished(tmp_path, few)
    assert not is_finished(tmp_path, plain)


def test_unavailable_data_are_requested_once_and_leave_no_file(
    start_run, network: TextNetwork, tmp_path: Path
) -> None:
    requested = []

    def load_some(name: str) -> TextNetwork:
        requested.append(name)
        if name == "zhihu":
            raise VHEError("zhihu/data.txt could not be downloaded.")
        return network

    unavailable = [Experiment("link", "zhihu", "tfidf", 0.55, "lines", seed) for seed in (0, 1)]
    tally, lines = start_run([*unavailable, *EXPERIMENTS[:2]], load_some)
    assert tally.done == 2
    assert list(tally.skipped.values()) == [2]
    assert requested == ["zhihu", "cora"]
    assert len([line for line in lines if "could not be downloaded" in line]) == 1
    assert not list(tmp_path.rglob("zhihu*"))


def test_zhihu_runs_if_its_text_is_available_and_has_the_published_checksum(
    start_run, network: TextNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
    experiments = [Experiment("link", "zhihu", "tfidf", 0.55, "lines", 0)]
    assert "could not be downloaded" in next(iter(start_run(experiments, load)[0].skipped))
    (folder / "data.txt").write_text(texts.replace("t0w1", "t0w2", 1))
    assert "checksum differs" in next(iter(start_run(experiments, load)[0].skipped))
    (folder / "data.txt").write_text(texts)
    assert start_run(experiments, load)[0] == Tally(done=1)


def test_inapplicable_methods_are_skipped(start_run) -> None:
    experiments = [Experiment("unseen", "cora", "line", 0.5, "clean", seed) for seed in (0, 1)]
    tally, lines = start_run(experiments)
    assert list(tally.skipped.values()) == [2]
    assert len(lines) == 1
    assert "line cannot embed unseen vertices" in lines[0]


def test_remaining_time_is_estimated_by_method() -> None:
    todo = [
        Experiment("link", "cora", method, 0.5, "clean", seed)
        for method in ("tfidf", "vhe")
        for seed in range(3)
    ]
    remaining = runner._RemainingTime(todo)
    assert remaining.update(Outcome(todo[0], "done", "", 10)) == "about 50 s left"
    # 2 of 10 s, 2 of 1000 s
    assert remaining.update(Outcome(todo[3], "done", "", 1000)) == "about 34 min left"
    assert remaining.update(Outcome(todo[4], "skipped")) == "about 17 min left"
    two_workers = runner._RemainingTime(todo, workers=2)
    assert two_workers.update(Outcome(todo[0], "done", "", 10)) == "about 25 s left"


@pytest.mark.parametrize(
    ("task", "settings"),
    [
        ("lambda", {"homophily": 0.0}),
        ("lambda", {"homophily": 0.999}),
        ("alpha", {"alpha": 1.0}),
        ("structure", {"structure": "none"}),
    ],
)
def test_extreme_values_of_varied_settings_can_be_run(
    task, settings: dict, network: TextNetwork
) -> None:
    sizes = {"word_dim": 16, "structure_dim": 16, "latent_dim": 16, "hidden_dim": 16, "kernels": 8}
    sizes |= {"kernel_width": 3, "min_count": 1, "steps": 2, "contexts": 4} | settings
    experiment = Experiment(task, "topics", "pair-vhe", 0.9, "clean", 0, sizes)
    result = Evaluator(network).measure(experiment)
    assert 0.3 < result["auc"] <= 1


def test_a_default_setting_is_not_measured_twice(network: TextNetwork, tmp_path: Path) -> None:
    default = Experiment("lambda", "cora", "pair-vhe", 0.95, "clean", 0, {"homophily": 0.99})
    link = runner.same_fit(default)
    assert link == Experiment("link", "cora", "pair-vhe", 0.95, "clean", 0)
    scores = {"auc": 0.9, "ap": 0.8, "mrr": 0.7, "hits10": 0.6, "ece": 0.1, "seconds": 3.0}
    stored = link.as_dict() | scores | {"origin": {"git": "abc"}}
    path = result_path(tmp_path, link)
    path.parent.mkdir()
    path.write_text(json.dumps(stored))
    lines: list[str] = []
    assert run([default], tmp_path, report=lines.append).done == 1
    assert "measured as link cora pair-vhe 95 % clean seed 0" in lines[0]
    found = json.loads(result_path(tmp_path, default).read_text())
    assert found == default.as_dict() | scores | {"origin": {"git": "abc"}}
    assert is_finished(tmp_path, default)


@pytest.mark.parametrize(
    ("task", "method", "settings"),
    [
        ("lambda", "pair-vhe", {"homophily": 0.9}),
        ("link", "pair-vhe", {}),
        ("degree", "vhe", {}),
        ("ablation", "vhe", {"max_steps": 0}),
        ("ablation", "pwa", {}),
    ],
)
def test_only_the_default_of_a_varied_setting_is_a_link_experiment(task, method, settings) -> None:
    assert runner.same_fit(Experiment(task, "cora", method, 0.55, "clean", 0, settings)) is None


# Several processes


@pytest.fixture
def mini(network: TextNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The small network as a folder that every process can read by name."""
    folder = tmp_path / "mini"
    folder.mkdir()
    (folder / "data.txt").write_text("\n".join(network.texts) + "\n")
    (folder / "graph.txt").write_text("\n".join(f"{i}\t{j}" for i, j in network.edges) + "\n")
    monkeypatch.chdir(tmp_path)
    return "mini"


def test_several_processes_give_the_results_of_one(mini: str, tmp_path: Path) -> None:
    todo = [Experiment("link", mini, "diffused-text", 0.55, "clean", seed) for seed in range(4)]
    todo.append(Experiment("link", "nowhere", "tfidf", 0.55, "clean", 0))
    lines: list[str] = []
    tally = run(todo, tmp_path / "two", report=lines.append, workers=2)
    assert tally.done == 4
    assert list(tally.skipped.values()) == [1]
    assert any(line.startswith("[4/5] ") or line.startswith("[5/5] ") for line in lines)
    run(todo[:1], tmp_path / "one", report=lines.append)
    one, two = (
        json.loads(result_path(tmp_path / name, todo[0]).read_text()) for name in ("one", "two")
    )
    assert one["auc"] == pytest.approx(two["auc"])
    assert two["origin"]["threads"] == 1
    assert "nowhere" in next(iter(tally.skipped))
    again = run(todo[:4], tmp_path / "two", report=lines.append, workers=2)
    assert again == Tally(finished_before=4)


def test_the_warnings_of_workers_are_logged_by_the_parent(
    mini: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    short = {"max_words": 3, "max_steps": 0, "latent_dim": 8, "min_count": 1}
    todo = [Experiment("link", mini, "vhe", 0.8, "clean", 0, short)]
    tally = run(todo, tmp_path / "results", report=lambda line: None, workers=2)
    assert tally.done == 1
    assert any("truncated to 3 words" in record.message for record in caplog.records)
    assert "truncated" not in capfd.readouterr().err


def test_a_killed_run_leaves_complete_files_and_no_workers(mini: str, tmp_path: Path) -> None:
    program = (
        "from pathlib import Path\n"
        "from vhe.evaluation.experiment import Experiment\n"
        "from vhe.paper.runner import run\n"
        "from vhe.runtime import provenance\n"
        "provenance.provenance = lambda seed: {}\n"  # avoids the import of torch
        "if __name__ == '__main__':\n"
        "    todo = [Experiment('link', 'mini', 'tfidf', 0.5, 'clean', k) for k in range(10**5)]\n"
        "    run(todo, Path('killed'), report=print, workers=2)\n"
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
        until(lambda: len(list(tmp_path.glob("killed/link/*.json"))) > 5)
        process.kill()  # SIGKILL cannot be handled
        process.wait()
        until(lambda: not _alive(process.pid))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    written = list(tmp_path.glob("killed/link/*.json"))
    assert len(list(read_results(tmp_path / "killed"))) == len(written)
    todo = [
        Experiment("link", mini, "tfidf", 0.5, "clean", seed) for seed in range(len(written) + 2)
    ]
    tally = run(todo, tmp_path / "killed", report=lambda line: None)
    assert tally.done + tally.finished_before == len(todo)
    assert tally.finished_before >= 5


def _alive(group: int) -> bool:
    """Whether a process group has any process."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
