"""`vhe doctor MODEL`: whether a model folder is sound, and what dead commands left beside it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from vhe.cli.output import print_result, print_status
from vhe.cli.paths import training_folder
from vhe.cli.source import check_is_model
from vhe.errors import VHEError
from vhe.runtime.messages import counted

MB = 1e6
LOCKS = ("lock", "writing")


def check_model(folder: Path, json: bool) -> int:
    """Verify a model folder, and list and explain what is beside it; return the exit status."""
    from vhe.storage.folder import restore_interrupted_write

    problem, summary = None, None
    folder = restore_interrupted_write(folder)
    found = left_over(folder)
    if not folder.exists() and not found:
        check_is_model(folder)
    try:
        summary = _summary(folder)
    except VHEError as error:
        problem = str(error)
    report = {"model": folder, "sound": problem is None, "summary": summary, "beside": found}
    rows = [("model", str(folder)), ("state", summary or "cannot be used")]
    rows += [(Path(entry["path"]).name, entry["explanation"]) for entry in found]
    if not found:
        rows.append(("left-over files", "none"))
    print_result(json, report | {"problem": problem}, rows)
    if problem is not None:
        print_status(f"vhe: {problem}")
    return 0 if problem is None else 1


def _summary(folder: Path) -> str:
    from vhe.storage.model_folder import read_model

    saved = read_model(folder)
    size = sum(path.stat().st_size for path in folder.iterdir()) / MB
    vertices = counted(len(saved.network), "vertex", "vertices")
    return f"sound: {saved.model} model, {vertices}, {size:,.1f} MB, every file verified"


def left_over(folder: Path) -> list[dict[str, Any]]:
    """What commands have left beside a model folder, each with an explanation."""
    from vhe.storage.folder import leftovers

    found: list[dict[str, Any]] = []

    def add(path: Path, explanation: str) -> None:
        found.append({"path": str(path), "explanation": explanation})

    training = training_folder(folder)
    for owner, what in ((folder, "model"), (training, "checkpoint")):
        for path in leftovers(owner):
            complete = path.name.endswith(".previous")
            kind = f"the {what} before the last one" if complete else f"an unfinished {what}"
            add(path, f"{kind}, left by a command that was killed; the next fit deletes it")
    if training.is_dir():
        resume = f"vhe fit ... --out {folder} --resume continues it; --overwrite starts anew"
        add(training, f"the checkpoint of a training that did not end: {resume}")
    for owner in (folder, training):
        for purpose in LOCKS:
            path = owner.with_name(f".{owner.name}.{purpose}")
            if os.path.exists(path):
                add(path, "the lock of a command that is running, or was killed; it needs no care")
    if folder.parent.is_dir():
        for path in sorted(folder.parent.iterdir()):
            if re.fullmatch(r"\..+\.[0-9a-f]{8}\.part", path.name) and path.is_file():
                add(path, "an unfinished file; the next command that writes that file deletes it")
    return found
