"""Latency and memory of commands from a cold start, relative to the import of numpy."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from vhe.bench.measure import interleaved, synthetic
from vhe.errors import VHEError
from vhe.estimators import VHE, load_model
from vhe.fitted import open_model

VERTICES = 4_500
EMBEDDED = 100_000  # `vhe embed` of more vertices measures the disk: it writes all vectors
NUMPY = "import numpy"
MEMORY = "VmHWM:"  # of /proc/self/status, the peak resident size in kB


def startup(rounds: int, model: Path | None = None, vertices: int = VERTICES) -> dict[str, float]:
    """Seconds and peak memory of each command in a process of its own, and of importing numpy.

    Without a model folder, a model is fitted to a synthetic network without training; a trained one
    is as large. Memory is measured on Linux.
    """
    with tempfile.TemporaryDirectory() as folder:
        if model is None:
            model = Path(folder) / "model"
            VHE(random_state=0, max_steps=0, verbose=False).fit(synthetic(vertices)).save(model)
        vertices, ends = _network(model)
        commands = {
            "suggest": ["suggest", str(model), ends[0]],
            "score": ["score", str(model), *ends],
            "explain": ["explain", str(model), *ends],
        }
        if vertices <= EMBEDDED:
            vectors = str(Path(folder) / "vectors.npy")
            commands["embed"] = ["embed", str(model), "--out", vectors]
        programs = {NUMPY: _program(["-c", NUMPY])}
        programs |= {name: _program(["-m", "vhe", *words]) for name, words in commands.items()}
        seconds = interleaved(programs, rounds, calls=2)
        memory = {name: _memory(words) for name, words in commands.items()}
    found: dict[str, float] = {"vertices": vertices}
    found |= {f"seconds, {name}": seconds[name] for name in (NUMPY, *commands)}
    found |= {f"{name} over {NUMPY}": seconds[name] / seconds[NUMPY] for name in commands}
    return found | {f"GB, {name}": memory[name] for name in commands}


def _network(model: Path) -> tuple[int, tuple[str, str]]:
    """The number of vertices of a model, and two of its ids."""
    network = (open_model(model) or load_model(model)).network_
    return len(network), (str(network.ids[1]), str(network.ids[2]))


def _program(arguments: list[str]) -> Callable[[], str]:
    def run() -> str:
        ran = subprocess.run([sys.executable, *arguments], capture_output=True, text=True)
        if ran.returncode:
            raise VHEError(f"{' '.join(arguments)} failed: {ran.stderr.strip()[-300:]}")
        return ran.stdout

    return run


def _memory(words: list[str]) -> float:
    """The peak memory of a command in gigabytes; NaN where the system does not say."""
    lines = [
        "import sys",
        "from vhe.cli import main",
        "status = main(sys.argv[1:])",
        "print(*open('/proc/self/status')) if status == 0 else sys.exit(status)",
    ]
    if not Path("/proc/self/status").exists():
        return float("nan")
    printed = _program(["-c", "\n".join(lines), *words])().split()
    return int(printed[printed.index(MEMORY) + 1]) * 1024 / 1e9
