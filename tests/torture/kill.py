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

import vhe.estimators
from vhe.cli import main
from vhe.data.network import TextNetwork
from vhe.data.readers.files import write_files
from vhe.errors import VHEError
from vhe.storage.folder import read_folder

# What the command imports on its way is here already: each run is a fork of this process.
LOADED = (pyarrow.parquet, torch._dynamo, vhe.estimators)
SETTINGS = [
    *("max_words=12", "min_count=1", "kernels=4", "kernel_width=3", "batch_size=16", "steps=16"),
    *("word_dim=8", "latent_dim=8", "structure_dim=8", "hidden_dim=8", "contexts=2"),
    *("validate_every=4", "patience=100", "validation=0.1"),
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


def trial(folder: Path, fit: list[str], seconds: float, kills: int, draw: random.Random) -> int:
    """Kill a run up to ``kills`` times, then let it come to its end; how often it was killed."""
    model, log = folder / "model", folder / "log"
    kept = folder / "model.training", folder / ".model.training.previous"
    folder.mkdir()
    killed = 0
    for attempt in range(kills + 1):
        resume = any(place.exists() for place in kept)
        if model.exists() and not resume:
            break  # it had come to its end
        child = start([*fit, "--out", str(model), *(["--resume"] * resume)], log)
        if attempt < kills:
            time.sleep(draw.uniform(0, seconds))
            os.kill(child, signal.SIGKILL)
        status = status_of(child)
        killed += status == -signal.SIGKILL
        if status not in (0, -signal.SIGKILL):
            raise VHEError(log.read_text()[-2000:])
    return killed


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
    runs = tries = identical = unreadable = kills = 0
    problems: list[str] = []
    while runs < often and not problems:
        which, folder = runs % len(SHAPES), base / str(tries)
        fit = ["fit", *source, "--seed", "1", "--threads", "1"]
        fit += ["--set", *SETTINGS, *SHAPES[which], *draw.choice(OFTEN)]
        tries, killed = tries + 1, 0
        try:
            killed = trial(folder, fit, seconds, draw.choice((1, 1, 1, 2, 3)), draw)
            if not killed:  # it was over before its moment came
                shutil.rmtree(folder)
                continue
            same = digest(folder / "model") == undisturbed[which]
            identical += same
            problems += [] if same else [f"{folder}: other weights"]
        except VHEError as error:
            unreadable += 1
            problems.append(str(error))
        runs += 1
        kills += killed
        if not problems:
            shutil.rmtree(folder)
    return {
        "runs": runs,
        "kills": kills,
        "identical": identical,
        "unreadable": unreadable,
        "problems": problems,
    }


if __name__ == "__main__":
    print(json.dumps(torture(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
