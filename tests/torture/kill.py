"""Kill `vhe fit` with SIGKILL at random moments, run it again with --resume, and compare the model
with that of an undisturbed run.

    python kill.py FOLDER RUNS SEED SETTINGS

SETTINGS are those of each model, as JSON.
"""

import hashlib
import json
import os
import random
import shutil
import signal
import sys
import time
import traceback
from pathlib import Path

import pyarrow.parquet

import vhe.estimators
from vhe.cli import main
from vhe.data.network import TextNetwork
from vhe.data.readers.network_tables import write_tables
from vhe.errors import VHEError
from vhe.storage.folder import read_folder

# Each run is a fork of this process, which has already imported what the command needs.
IMPORTED = (pyarrow.parquet, vhe.estimators)
STEPS = {"graph": {"max_steps": 16}, "pair": {"steps": 16}}
CHECKPOINT_MINUTES = ("0", "0.0005", "0.002")


def write_network(folder: Path) -> list[str]:
    """Write a small network of two topics; return the options that name its files."""
    draw = random.Random(5)
    texts = [" ".join(f"t{i % 2}w{draw.randrange(9)}" for _ in range(8)) for i in range(40)]
    edges = [(i, (i + 2 * draw.randrange(1, 9)) % 40) for i in range(40) for _ in range(2)]
    files = folder / "vertices.csv", folder / "edges.csv"
    write_tables(*files, TextNetwork([f"v{i}" for i in range(40)], texts, edges))
    return ["--vertices", str(files[0]), "--edges", str(files[1])]


def start(arguments: list[str], log: Path) -> int:
    """Run the command in a fork; return its process id."""
    child = os.fork()
    if child == 0:
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(output, 1)
        os.dup2(output, 2)
        status = 70
        try:
            status = main(arguments)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(status)
    return child


def exit_status(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def digest(model: Path) -> str:
    """Checksum of weights, embedding and settings; other files contain times."""
    files = read_folder(model, "model")
    return hashlib.sha256(files["weights.safetensors"] + files["config.json"]).hexdigest()


def trial(folder: Path, fit: list[str], seconds: float, kills: int, draw: random.Random) -> int:
    """Kill a run up to ``kills`` times, then let it finish; return how often it was killed."""
    model, log = folder / "model", folder / "log"
    checkpoints = folder / "model.training", folder / ".model.training.previous"
    folder.mkdir()
    killed = 0
    for attempt in range(kills + 1):
        resume = any(path.exists() for path in checkpoints)
        if model.exists() and not resume:
            break  # it has finished
        child = start([*fit, "--out", str(model), *(["--resume"] * resume)], log)
        if attempt < kills:
            time.sleep(draw.uniform(0, seconds))
            os.kill(child, signal.SIGKILL)
        status = exit_status(child)
        killed += status == -signal.SIGKILL
        if status not in (0, -signal.SIGKILL):
            raise VHEError(log.read_text()[-2000:])
    return killed


def torture(
    base: Path, count: int, seed: int, models: dict[str, dict[str, object]]
) -> dict[str, object]:
    source, draw = write_network(base), random.Random(seed)
    commands: dict[str, list[str]] = {}
    undisturbed: dict[str, str] = {}
    seconds = 0.0
    for model, settings in models.items():
        changes = [f"{name}={value}" for name, value in (settings | STEPS[model]).items()]
        commands[model] = ["fit", *source, "--model", model, "--seed", "1", "--threads", "1"]
        commands[model] += ["--set", *changes, "--checkpoint-minutes"]
        began = time.monotonic()
        out = base / f"undisturbed-{model}"
        log = base / "log"
        assert exit_status(start([*commands[model], "0", "--out", str(out)], log)) == 0, (
            log.read_text()
        )
        seconds = max(seconds, time.monotonic() - began)
        undisturbed[model] = digest(out)
    runs = tries = identical = unreadable = kills = 0
    problems: list[str] = []
    while runs < count and not problems:
        model, folder = sorted(models)[runs % len(models)], base / str(tries)
        fit = [*commands[model], draw.choice(CHECKPOINT_MINUTES)]
        tries, killed = tries + 1, 0
        try:
            killed = trial(folder, fit, seconds, draw.choice((1, 1, 1, 2, 3)), draw)
            if not killed:  # it finished before the signal
                shutil.rmtree(folder)
                continue
            same = digest(folder / "model") == undisturbed[model]
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
    folder, runs, seed, settings = sys.argv[1:]
    print(json.dumps(torture(Path(folder), int(runs), int(seed), json.loads(settings))))
