"""Checkpoints of a training run, from which it can be resumed with the same result."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import warnings
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vhe.errors import VHEError
from vhe.runtime.checks import is_integer
from vhe.runtime.loop import TrainingState
from vhe.runtime.messages import shown
from vhe.storage.folder import (
    Content,
    Folder,
    check_replaceable,
    json_bytes,
    open_folder,
    read_tensors,
    tensor_file,
    write_folder,
)
from vhe.storage.locks import folder_lock

if TYPE_CHECKING:
    from torch import Tensor

    from vhe.data.text import Corpus

TRAINING = "training"  # the kind of folder
STATE, TENSORS = "training.json", "training.safetensors"


class TrainingCheckpoint:
    """The folder of a training run; a `vhe.runtime.loop.Checkpoint`.

    Parameters
    ----------
    folder : replaced by each checkpoint
    identity : what must be the same to resume: "model" ("graph" or "pair"), "seed", "settings"
        and "network" (see `network_digest`)
    seconds : between two checkpoints
    """

    def __init__(self, folder: Path, identity: dict[str, Any], seconds: float) -> None:
        self.folder, self.seconds = folder, seconds
        self.identity: dict[str, Any] = json.loads(json_bytes(identity))
        self._warned = False

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Refuse a second training run in this folder inside a with block."""
        with folder_lock(self.folder, "lock"):
            check_replaceable(self.folder)
            yield

    def save(self, state: TrainingState, tensors: dict[str, Tensor]) -> None:
        """Replace the checkpoint; if that fails, warn once and leave the previous one."""
        content: dict[str, Content] = {
            STATE: json_bytes(self.identity | {"state": asdict(state)}),
            TENSORS: tensor_file(tensors),
        }
        try:
            write_folder(self.folder, content, TRAINING)
        except VHEError as error:
            if not self._warned:
                warnings.warn(
                    f"no checkpoint at step {state.step}: {error}; training continues",
                    stacklevel=2,
                )
            self._warned = True

    def load(self) -> tuple[TrainingState, dict[str, Tensor]]:
        """Return the saved state and tensors after a check that they belong to this run."""
        with open_folder(self.folder, TRAINING) as opened:
            saved = _saved(opened)
            self._check_identity(saved)
            return _state(saved, self.folder), read_tensors(opened.path(TENSORS), str(self.folder))

    def _check_identity(self, saved: dict[str, Any]) -> None:
        folder, own = self.folder, self.identity
        if saved["model"] != own["model"]:
            raise VHEError(
                f"{folder}: the training run there is of a {saved['model']} model, not of a "
                f"{own['model']} model; resume with --model {saved['model']}, or start again "
                "without --resume"
            )
        before = saved["settings"] | {"seed": saved["seed"]}
        now = own["settings"] | {"seed": own["seed"]}
        different = [
            f"{name} was {shown(before.get(name))} and is {shown(now.get(name))}"
            for name in {**now, **before}
            if before.get(name) != now.get(name)
        ]
        if different:
            raise VHEError(
                f"{folder}: the training run there has other settings or another seed "
                f"({', '.join(different[:3])}); resume with the same ones, or start again without "
                "--resume"
            )
        if saved["network"] != own["network"]:
            raise VHEError(
                f"{folder}: the training run there is of another network; resume with the same "
                "network, or start again without --resume"
            )


def seed_of(folder: Path) -> int:
    """Return the seed of the training run in a folder."""
    with open_folder(folder, TRAINING) as opened:
        return int(_saved(opened)["seed"])


def network_digest(corpus: Corpus, links: NDArray[np.int64], validation: NDArray[np.int64]) -> str:
    """Return a checksum of the texts, the training links and the validation links."""
    digest = hashlib.sha256()
    for part in (corpus.offsets, corpus.tokens, links, validation):
        digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()


def _saved(opened: Folder) -> dict[str, Any]:
    """Return the content of training.json after a check of its types."""
    try:
        saved: dict[str, Any] = json.loads(opened.read(STATE))
        valid = (
            isinstance(saved["model"], str)
            and is_integer(saved["seed"])
            and 0 <= saved["seed"] < 2**32
            and isinstance(saved["settings"], dict)
            and isinstance(saved["network"], str)
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        valid = False
    if not valid:
        raise _damaged(opened.folder)
    return saved


def _state(saved: dict[str, Any], folder: Path) -> TrainingState:
    """Return the training state in training.json after a check of its types."""
    try:
        state = TrainingState(**saved["state"])
        numbers = [
            *([] if state.best_score is None else [state.best_score]),
            state.seconds,
            *state.sums.values(),
            *state.chosen.values(),
            *(value for record in state.history for value in record.values()),
        ]
        valid = (
            is_integer(state.step)
            and is_integer(state.best_step)
            and 0 <= state.best_step <= state.step
            and isinstance(state.stopped, str)
            and isinstance(state.history, list)
            and all("step" in record for record in state.history)
            and all(type(number) in (int, float) and math.isfinite(number) for number in numbers)
        )
    except (KeyError, TypeError, AttributeError, OverflowError):
        valid = False
    if not valid:
        raise _damaged(folder)
    return state


def _damaged(folder: Path) -> VHEError:
    return VHEError(
        f"{folder / STATE}: not the state of a training run; start again without --resume"
    )
