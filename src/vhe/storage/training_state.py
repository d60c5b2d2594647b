"""Checkpoints of a training run, from which it can be resumed with the same result."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import math
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
from vhe.storage.arrays import array_file, read_arrays
from vhe.storage.folder import (
    Content,
    Folder,
    check_replaceable,
    json_bytes,
    open_folder,
    write_folder,
)
from vhe.storage.locks import folder_lock

if TYPE_CHECKING:
    from torch import Tensor

    from vhe.data.text import Corpus

logger = logging.getLogger(__name__)

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
            TENSORS: array_file({k: v.detach().cpu().numpy() for k, v in tensors.items()}),
        }
        try:
            write_folder(self.folder, content, TRAINING)
        except VHEError as error:
            if not self._warned:
                logger.warning(
                    f"no checkpoint at step {state.step}: {error}; training continues",
                )
            self._warned = True

    def load(self) -> tuple[TrainingState, dict[str, Tensor]]:
        """Return the saved state and tensors after a check that they belong to this run."""
        with open_folder(self.folder, TRAINING) as opened:
            identity, state = _read(opened)
            self._check_identity(identity)
            import torch

            found = read_arrays(opened.path(TENSORS), str(self.folder))
            return state, {name: torch.from_numpy(np.array(v)) for name, v in found.items()}

    def _check_identity(self, saved: dict[str, Any]) -> None:
        own = self.identity
        before, now = (run["settings"] | {"seed": run["seed"]} for run in (saved, own))
        different = [
            f"{name} was {shown(before.get(name))} and is {shown(now.get(name))}"
            for name in {**now, **before}
            if before.get(name) != now.get(name)
        ]
        if saved["model"] != own["model"]:
            reason = f"is of a {saved['model']} model, not of a {own['model']} model"
            remedy = f"--model {saved['model']}"
        elif different:
            reason = f"has other settings or another seed ({', '.join(different[:3])})"
            remedy = "the same ones"
        elif saved["network"] != own["network"]:
            reason, remedy = "is of another network", "the same network"
        else:
            return
        raise VHEError(
            f"{self.folder}: the training run there {reason}; resume with {remedy}, or start "
            "again without --resume"
        )


def seed_of(folder: Path) -> int:
    """Return the seed of the training run in a folder."""
    with open_folder(folder, TRAINING) as opened:
        return int(_read(opened)[0]["seed"])


def network_digest(
    corpus: Corpus,
    links: NDArray[np.int64],
    validation: NDArray[np.int64],
    *others: NDArray[Any] | None,
) -> str:
    """Return a checksum of the texts, the training and validation links and other arrays."""
    digest = hashlib.sha256()
    present = [part for part in others if part is not None]
    for part in (corpus.offsets, corpus.tokens, links, validation, *present):
        digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()


def _read(opened: Folder) -> tuple[dict[str, Any], TrainingState]:
    """Return the identity and the state in training.json after a check of their types."""
    try:
        identity: dict[str, Any] = json.loads(opened.read(STATE))
        state = TrainingState(**identity.pop("state"))
        numbers = [
            *([] if state.best_score is None else [state.best_score]),
            state.seconds,
            *state.sums.values(),
            *state.chosen.values(),
            *(value for record in state.history for value in record.values()),
        ]
        valid = (
            isinstance(identity["model"], str)
            and is_integer(identity["seed"])
            and 0 <= identity["seed"] < 2**32
            and isinstance(identity["settings"], dict)
            and isinstance(identity["network"], str)
            and is_integer(state.step)
            and is_integer(state.best_step)
            and 0 <= state.best_step <= state.step
            and isinstance(state.stopped, str)
            and isinstance(state.history, list)
            and all("step" in record for record in state.history)
            and all(type(number) in (int, float) and math.isfinite(number) for number in numbers)
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        valid = False
    if not valid:
        raise VHEError(
            f"{opened.folder / STATE}: not the state of a training run; start again without "
            "--resume"
        )
    return identity, state
