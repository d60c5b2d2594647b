"""Kill `vhe fit` with SIGKILL at random moments, do what a user would do then, and compare the
model with that of a run that nobody disturbed.

    python kill.py FOLDER HOW_OFTEN SEED
"""

import hashlib
import json
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

import pyarrow.parquet
import torch._dynamo

import vhe.model
from vhe.cli import main
from vhe.data.formats import write_files
from vhe.data.network import TextNetwork
from vhe.errors import VHEError
from vhe.train.checkpoint import read_folder

# What the command imports on its way is here already: each run is a fork of this process.
LOADED = (pyarrow.parquet, torch._dynamo, vhe.model)
SETTINGS = [
    *("max_words=12", "min_count=1", "kernels=4", "kernel_width=3", "batch_size=16", "steps=16"),
    *("word_dim=8", "latent_dim=8", "structure_dim=8", "hidden_dim=8", "contexts=2"),
    *("check_every=4", "patience=100", "validation=0.1"),
]
SHAPES = (["structure=joint"], ["structure=learned", "shared_posterior=false"])
OFTEN = (["checkpoint_minutes=1e-9"], ["checkpoint_epochs=1"], ["checkpoint_epochs=3"])


def network(folder: Path) -> list[str]:
    """A small network of two topics in files, and how the command is told of it."""
    draw = random.Random(5)
    texts = [" ".join(f"t{i % 2}w{draw.randrange(9)}" for _ in range(8)) for i in range(40)]
    edges = [(i, (i + 2 * draw.randrange(1, 9)) % 40) for i in range(40) for _ in range(2)]
    files = folder / "vertices.csv", folder / "edges.csv"
    write_files(*files, TextNetwork([f"v{i}" for i in range(40)], texts, edges))
    return ["--vertices", str(files[0]), "--edges", str(files[1])]


def start(arguments: list[str], log: Path) -> int:
    """Run the command in a fork; returns its process number."""
    child = os.fork()
    if child == 0:
        said = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(said, 1)
        os.dup2(said, 2)
        status = 70
        try:
            status = main(arguments)
        finally:
            os._exit(status)
    return child


def status_of(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def digest(model: Path) -> str:
    """Of the weights and the embedding; what is in the other files tells the time as well."""
    weights = read_folder(model, "model")["weights.safetensors"]
    config = json.loads((model / "config.json").read_bytes())
    for name in ("checkpoint_minutes", "checkpoint_epochs"):
        del config["config"][name]
    return hashlib.sha256(weights + json.dumps(config).encode()).hexdigest()


def trial(folder: Path, fit: list[str], seconds: float, kills: int, draw: random.Random) -> str:
    """Kill a run some times, then let it come to its end: the digest of its model."""
    model, training, log = folder / "model", folder / "model.training", folder / "log"
    folder.mkdir()
    for attempt in range(kills + 1):
        for kept, kind in ((model, "model"), (training, "training")):
            if kept.exists() or kept.with_name(f".{kept.name}.previous").exists():
                read_folder(kept, kind)
        if model.exists() and not training.exists():
            break  # it had come to its end before it was killed
        child = start([*fit, "--out", str(model), *(["--resume"] * training.exists())], log)
        if attempt < kills:
            time.sleep(draw.uniform(0, seconds))
            os.kill(child, signal.SIGKILL)
            status_of(child)
        elif status_of(child) != 0:
            raise RuntimeError(log.read_text())
    shutil.rmtree(folder / "model.training", ignore_errors=True)
    assert not [name for name in os.listdir(folder) if name.endswith(".training")]
    return digest(model)


def torture(base: Path, often: int, seed: int) -> dict[str, object]:
    source, draw = network(base), random.Random(seed)
    undisturbed, seconds = [], 0.0
    for k, shape in enumerate(SHAPES):
        began = time.monotonic()
        model = base / f"undisturbed{k}"
        fit = ["fit", *source, "--seed", "1", "--threads", "1", "--set", *SETTINGS, *shape]
        assert status_of(start([*fit, *OFTEN[0], "--out", str(model)], base / "log")) == 0
        seconds = max(seconds, time.monotonic() - began)
        undisturbed.append(digest(model))
    identical, unreadable, kills, problems = 0, 0, 0, []
    for k in range(often):
        which, now = k % len(SHAPES), draw.choice((1, 1, 1, 2, 3))
        kills += now
        fit = ["fit", *source, "--seed", "1", "--threads", "1"]
        fit += ["--set", *SETTINGS, *SHAPES[which], *draw.choice(OFTEN)]
        try:
            same = trial(base / str(k), fit, seconds, now, draw) == undisturbed[which]
            identical += same
            problems += [] if same else [f"run {k}: other weights"]
        except VHEError as error:
            unreadable += 1
            problems.append(f"run {k}: {error}")
        except RuntimeError as error:
            problems.append(f"run {k}: {error}"[-2000:])
        if not problems:
            shutil.rmtree(base / str(k))
    return {
        "runs": often,
        "kills": kills,
        "identical": identical,
        "unreadable": unreadable,
        "problems": problems[:5],
    }


if __name__ == "__main__":
    print(json.dumps(torture(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
