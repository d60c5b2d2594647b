"""Reliability tests in a short form, and in a long form for `make torture`.

`make torture` sets VHE_TORTURE: the tests then use the larger counts and write their figures to
results/reliability/. A long test is divided into parts of some minutes. What has been measured is
skipped, so that a run can be interrupted and continued; delete a file to measure it again.
"""

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from vhe.estimators import Estimator

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results" / "reliability"
LONG = bool(os.environ.get("VHE_TORTURE"))
# programs that tests run in separate processes, and modules that these import
collect_ignore = ["attacks.py", "forked.py", "fuzz.py", "hard.py", "kill.py", "report.py"]
collect_ignore += ["kill_server.py", "memory.py", "structure.py"]

# parts of the long form, and what is done in each; the short form is one part
PARTS = {
    "test_killed_at_random_moments": (2, 20, 10),
    "test_disk_full": (4, 10, 5),
    "test_fuzzed_inputs": (400, 20_000, 10),
    "test_structural_fuzzing": (150, 2_000, 10),
    "test_sibling_folders": (4, 50, 4),
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test that is divided its part and the count of it."""
    if "part" in metafunc.fixturenames:
        short, long, parts = PARTS[metafunc.function.__name__]
        cases = [(k, long if LONG else short) for k in range(parts if LONG else 1)]
        metafunc.parametrize(("part", "count"), cases, ids=[str(k) for k, _ in cases])


TEXT = {"max_words": 16, "min_count": 1, "validation": 0.1}
SETTINGS: dict[str, dict[str, Any]] = {
    "graph": TEXT
    | {"latent_dim": 16, "step_links": 32, "max_steps": 8, "validate_every": 4, "patience": 100},
    "pair": TEXT
    | {"word_dim": 8, "latent_dim": 8, "structure_dim": 8, "hidden_dim": 8}
    | {"kernels": 4, "kernel_width": 3, "batch_size": 16, "near_pairs": 8}
    | {"steps": 8, "warmup": 2, "contexts": 2},
}


@pytest.fixture(scope="session")
def small_settings() -> dict[str, dict[str, Any]]:
    """Settings of each model with which a fit takes a fraction of a second."""
    return SETTINGS


@pytest.fixture(params=sorted(SETTINGS))
def model(request: pytest.FixtureRequest) -> str:
    """The name of a model, graph or pair."""
    return str(request.param)


@pytest.fixture(scope="session")
def new_estimator() -> Callable[..., "Estimator"]:
    """Creates an estimator, not fitted, from the name of the model and changed settings."""

    def create(model: str, **changes: Any) -> "Estimator":
        from vhe.estimators import VHE, PairVHE

        settings = {"random_state": 3, "threads": 1, "verbose": False, **SETTINGS[model]}
        return (VHE if model == "graph" else PairVHE)(**(settings | changes))

    return create


@pytest.fixture
def times() -> Callable[[int, int], int]:
    """Selects a count: the first in the short form, the second in the long form."""
    return lambda short, long: long if LONG else short


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """The measurements of a test; the long form writes them to a file named after the test."""
    measured: dict[str, Any] = {}
    began = time.monotonic()
    name = request.node.name.removeprefix("test_")
    if LONG and (RESULTS / f"{name}.json").exists():
        pytest.skip("measured already")
    yield measured
    if LONG and measured:
        measured["seconds"] = round(time.monotonic() - began, 1)
        measured["machine"] = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
        measured["commit"] = commit()
        RESULTS.mkdir(parents=True, exist_ok=True)
        (RESULTS / f"{name}.json").write_text(json.dumps(measured, indent=2) + "\n")
        print(name, json.dumps(measured))


def commit() -> str:
    """The last commit that changed the package or its tests."""
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%h", "--", "src", "tests"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def run_program() -> Callable[..., dict[str, Any]]:
    """Runs a program of this folder in a separate process; the last line it prints is JSON."""

    def run(name: str, *arguments: object) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, str(Path(__file__).parent / name), *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return result

    return run
