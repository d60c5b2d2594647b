"""Latency of commands from a cold start, relative to the import of numpy."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from vhe.bench.measure import interleaved, synthetic
from vhe.errors import VHEError
from vhe.estimators import VHE

VERTICES = 4_500
NUMPY = "import numpy"


def startup(rounds: int, vertices: int = VERTICES) -> dict[str, float]:
    """Seconds of each command in a process of its own, and of ``python -c "import numpy"``.

    The model is fitted to a synthetic network without training; a trained one is as large.
    """
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        VHE(random_state=0, max_steps=0, verbose=False).fit(synthetic(vertices)).save(model)
        commands = {
            "suggest": ["suggest", str(model), "1"],
            "score": ["score", str(model), "1", "2"],
            "explain": ["explain", str(model), "1", "2"],
            "embed": ["embed", str(model), "--out", str(Path(folder) / "vectors.npy")],
        }
        programs = {NUMPY: _program(["-c", NUMPY])}
        programs |= {name: _program(["-m", "vhe", *words]) for name, words in commands.items()}
        seconds = interleaved(programs, rounds, calls=2)
    found = {f"seconds, {name}, {vertices:,} vertices": seconds[name] for name in commands}
    found |= {f"seconds, {NUMPY}": seconds[NUMPY]}
    return found | {f"{name} over {NUMPY}": seconds[name] / seconds[NUMPY] for name in commands}


def _program(arguments: list[str]) -> Callable[[], object]:
    def run() -> None:
        ran = subprocess.run([sys.executable, *arguments], capture_output=True, text=True)
        if ran.returncode:
            raise VHEError(f"{' '.join(arguments)} failed: {ran.stderr.strip()[-300:]}")

    return run
