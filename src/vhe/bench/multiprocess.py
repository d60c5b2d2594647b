"""Two processes under torchrun relative to one process with two threads."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from vhe.errors import VHEError

STEPS = 20


def multiprocess(name: str, rounds: int) -> dict[str, float]:
    """Training steps per second of two processes with one thread each, and of one with two threads.

    Each is a complete fit of `PairVHE`, interleaved; the seconds are those between the first and
    the last validation, without reading and initialisation.
    """
    one = [sys.executable, "-m", "vhe"]
    two = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    found: dict[str, list[tuple[float, float]]] = {"one": [], "two": []}
    for _ in range(rounds):
        found["one"].append(_run([*one, "fit", name, "--threads", "2"]))
        found["two"].append(_run([*two, "-m", "vhe", "fit", name, "--threads", "1"]))
    rate = {kind: statistics.median(r for r, _ in runs) for kind, runs in found.items()}
    return {
        "steps per second, one process with two threads": rate["one"],
        "steps per second, two processes": rate["two"],
        "ratio": rate["two"] / rate["one"],
        "validation AUC, one process": found["one"][-1][1],
        "validation AUC, two processes": found["two"][-1][1],
    }


def _run(command: list[str]) -> tuple[float, float]:
    """Steps per second, and the validation AUC."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "model"
        options = ["--model", "pair", "--out", str(out), "--seed", "0", "--set", f"steps={STEPS}"]
        environment = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}
        ran = subprocess.run([*command, *options], capture_output=True, text=True, env=environment)
        if ran.returncode:
            raise VHEError(f"{' '.join(command)} failed: {ran.stderr.strip()[-300:]}")
        history = [json.loads(line) for line in (out / "history.jsonl").read_text().splitlines()]
    first, last = history[0], history[-1]
    return STEPS / (last["seconds"] - first["seconds"]), last["validation_auc"]
