"""A training on disk: all that it takes to go on to the same bits."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from vhe.errors import VHEError
from vhe.storage.folder import json_bytes, read_folder, read_tensors, tensor_bytes

if TYPE_CHECKING:
    from vhe.pair.training import Trainer

TRAINING = "training"  # the kind of folder


def files_of(trainer: Trainer) -> dict[str, bytes]:
    """The files of a training, by name."""
    tensors = {f"best.{name}": value for name, value in trainer.best.items()}
    tensors |= {f"model.{name}": value for name, value in trainer.model.state_dict().items()}
    for k, optimiser in enumerate(trainer.optimisers):
        for parameter, values in optimiser.state_dict()["state"].items():
            for name, value in values.items():
                tensors[f"optimiser.{k}.{parameter}.{name}"] = torch.as_tensor(value)
    about = {
        "seed": trainer.seed,
        "network": _digest(trainer),
        "config": trainer.config.to_dict(),
        "state": asdict(trainer.state),
    }
    return {"training.json": json_bytes(about), "training.safetensors": tensor_bytes(tensors)}


def restore(trainer: Trainer, folder: Path) -> None:
    """Put weights, optimisers and state of the training in a folder into a trainer."""
    files = read_folder(folder, TRAINING)
    about = json.loads(files["training.json"])
    settings = _what_counts(trainer.config.to_dict()), trainer.seed
    if (_what_counts(about["config"]), about["seed"]) != settings:
        raise VHEError(
            f"{folder}: that training has other settings or another seed; "
            "resume with the same ones, or start anew without --resume"
        )
    another = VHEError(f"{folder}: that training is of another network")
    if about.get("network") != _digest(trainer):
        raise another
    tensors = read_tensors(files["training.safetensors"], str(folder))
    try:
        trainer.model.load_state_dict(_under(tensors, "model."))
        for k, optimiser in enumerate(trainer.optimisers):
            _load_optimiser(optimiser, _under(tensors, f"optimiser.{k}."))
    except (RuntimeError, KeyError):
        raise another from None
    trainer.best = _under(tensors, "best.")
    trainer.state = type(trainer.state)(**about["state"])


def seed_of(folder: Path) -> int:
    """The seed of the training in a folder."""
    return int(json.loads(read_folder(folder, TRAINING)["training.json"])["seed"])


def _digest(trainer: Trainer) -> str:
    """What tells one network from another: its texts and its links."""
    digest, corpus = hashlib.sha256(), trainer.corpus
    for part in (corpus.offsets, corpus.tokens, trainer.links, trainer.validation):
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


def _load_optimiser(optimiser: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    whole = optimiser.state_dict()
    whole["state"] = {}
    for name, value in tensors.items():
        parameter, key = name.split(".")
        scalar = isinstance(optimiser, torch.optim.SparseAdam) and key == "step"
        whole["state"].setdefault(int(parameter), {})[key] = int(value) if scalar else value
    optimiser.load_state_dict(whole)


def _what_counts(settings: dict[str, object]) -> dict[str, object]:
    """The settings that the result depends on: how often it is kept may change on the way."""
    return {k: v for k, v in settings.items() if not k.startswith("checkpoint_")}


def _under(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
