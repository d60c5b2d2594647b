"""Out of memory is one sentence and exit status 2, whichever library notices it."""

import errno
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pytest

from vhe.cli import main
from vhe.cli import suggest as suggest_command
from vhe.data.network import TextNetwork
from vhe.data.readers.network_tables import write_tables
from vhe.errors import VHEError
from vhe.runtime.memory import LEAST_ADDRESS_SPACE, is_out_of_memory

resource = pytest.importorskip("resource")

ERRORS = [
    MemoryError("Unable to allocate 8.00 TiB for an array"),
    RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: not enough memory"),
    RuntimeError("std::bad_alloc"),
    RuntimeError("can't start new thread"),
    pyarrow.ArrowMemoryError("malloc of size 64 failed"),
    ImportError("libtorch_cpu.so: failed to map segment from shared object"),
    OSError(errno.ENOMEM, "Cannot allocate memory"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: str(error)[:20])
def test_failed_allocations_become_one_sentence(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    def fail(*arguments: object) -> None:
        raise error

    monkeypatch.setattr(suggest_command, "read_model", fail)
    assert main(["suggest", "model"]) == 2
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("vhe: out of memory")


def test_other_errors_are_no_lack_of_memory() -> None:
    for error in (RuntimeError("shapes differ"), OSError(28, "No space left"), VHEError("no file")):
        assert not is_out_of_memory(error)
    wrapped = VHEError("the folder cannot be written")
    wrapped.__cause__ = MemoryError()
    assert is_out_of_memory(wrapped)


def outcome(command: list[str], limit: int) -> str:
    """Run a command with a limit of address space; return what came of it."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    try:
        done = subprocess.run(
            [sys.executable, "-m", "vhe", *command],
            preexec_fn=limited,
            capture_output=True,
            text=True,
            timeout=300,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
    except subprocess.TimeoutExpired:
        return "a hang"
    if done.returncode == 0:
        return "success"
    if done.returncode == -signal.SIGKILL:
        return "killed"
    errors = [line for line in done.stderr.splitlines() if line.startswith("vhe: ")]
    if done.returncode == 2 and len(errors) == 1 and "Traceback" not in done.stderr:
        return "one sentence"
    return f"exit status {done.returncode}: {done.stderr[-500:]}"


def test_limits_of_new_processes(network: TextNetwork, tmp_path: Path) -> None:
    """Far too little, and what the libraries need at least."""
    files = tmp_path / "vertices.csv", tmp_path / "edges.csv"
    write_tables(*files, network)
    fit = ["fit", "--vertices", str(files[0]), "--edges", str(files[1]), "--seed", "1"]
    fit += ["--set", "max_steps=2", "--out", str(tmp_path / "model")]
    assert outcome(fit, 400_000_000) == "one sentence"
    assert outcome(fit, LEAST_ADDRESS_SPACE) in ("success", "one sentence", "killed")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_memory_sweep(
    run_program: Callable[..., dict[str, Any]],
    times: Callable[[int, int], int],
    figures: dict[str, Any],
    tmp_path: Path,
) -> None:
    """Limits grow from too little to enough, for forks that have imported the libraries."""
    figures |= run_program("memory.py", tmp_path, times(2, 20), times(60, 1000))
    assert figures["problems"] == []
    assert figures["succeeded"] > 0
    assert times(1, figures["sentences"]) > 0


def test_the_limit_is_named(monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    limit = LEAST_ADDRESS_SPACE // 2
    monkeypatch.setattr(resource, "getrlimit", lambda which: (limit, limit))
    assert main(["suggest", "model"]) == 2
    assert re.search(r"ulimit -v\) is 1,300 MB", capfd.readouterr().err)
    assert main(["--version"]) == 0
