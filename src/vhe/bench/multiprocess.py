"""Two processes under torchrun beside one process with two threads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from vhe.errors import VHEError

STEPS = 20


def together(name: str, rounds: int) -> dict[str, float]:
    """Training steps a second of two processes with a thread each, over one with two threads.

    Each is a whole run, in turns; the seconds are those between the first look and the last, so
    that reading and starting do not count.
    """
    one = [sys.executable, "-m", "vhe"]
    two = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    found: dict[str, list[tuple[float, float]]] = {"one": [], "two": []}
    for _ in range(rounds):
        found["one"].append(_run([*one, "fit", name, "--threads", "2"]))
        found["two"].append(_run([*two, "-m", "vhe", "fit", name]))
    rate = {who: sorted(r for r, _ in runs)[len(runs) // 2] for who, runs in found.items()}
    return {
        "one process, two threads: steps a second": rate["one"],
        "two processes: steps a second": rate["two"],
        "ratio": rate["two"] / rate["one"],
        "validation AUC of one": found["one"][-1][1],
        "validation AUC of two": found["two"][-1][1],
    }


def _run(words: list[str]) -> tuple[float, float]:
    """Steps a second, and the validation AUC."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "model"
        settings = ["text_knn_weight=2", f"steps={STEPS}", f"validate_every={STEPS}"]
        told = ["--out", str(out), "--seed", "0", "--set", *settings]
        environment = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}
        ran = subprocess.run([*words, *told], capture_output=True, text=True, env=environment)
        if ran.returncode:
            raise VHEError(f"{' '.join(words)} failed: {ran.stderr.strip()[-300:]}")
        looks = [json.loads(line) for line in (out / "history.jsonl").read_text().splitlines()]
    first, last = looks[0], looks[-1]
    return STEPS / (last["seconds"] - first["seconds"]), last["validation_auc"]
