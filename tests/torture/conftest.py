"""The short form of each test runs with all others; `make torture` sets VHE_TORTURE, which takes
the long counts and writes what was measured to results/reliability/."""

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results" / "reliability"
LONG = bool(os.environ.get("VHE_TORTURE"))
# Programs that tests run in processes of their own, and what these import.
collect_ignore = ["attacks.py", "forked.py", "fuzz.py", "hard.py", "kill.py", "report.py"]


@pytest.fixture
def times() -> Callable[[int, int], int]:
    """How often to do something: the first number in the short form, the second in the long."""
    return lambda short, long: long if LONG else short


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """What a test measures; the long form keeps it under the name of the test."""
    measured: dict[str, Any] = {}
    began = time.monotonic()
    yield measured
    if LONG and measured:
        measured["seconds"] = round(time.monotonic() - began, 1)
        measured["machine"] = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
        name = request.node.name.removeprefix("test_")
        RESULTS.mkdir(parents=True, exist_ok=True)
        (RESULTS / f"{name}.json").write_text(json.dumps(measured, indent=2) + "\n")
        print(name, json.dumps(measured))


@pytest.fixture
def run_program() -> Callable[..., dict[str, Any]]:
    """Run a program of this folder in a process of its own; the last line it prints is its JSON."""

    def run(name: str, *arguments: object) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, str(Path(__file__).parent / name), *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.splitlines()[-1])

    return run
