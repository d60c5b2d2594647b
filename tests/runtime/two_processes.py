"""What test_process_group.py starts with torchrun: two processes, one of which is killed.

    torchrun --nproc-per-node=2 --max-restarts=1 two_processes.py FOLDER

First they train together without disturbance. Then training with checkpoints begins, in which the
second process kills itself, so that torchrun restarts both; they resume from the checkpoint.
"""

import os
import pickle
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vhe.bench.measure import pair_trainer
from vhe.config import PairVHEConfig
from vhe.data.network import TextNetwork
from vhe.data.sampling import LinkSet
from vhe.pair.embedding import global_embedding
from vhe.pair.training import PairTrainer, train
from vhe.runtime import process_group
from vhe.runtime.loop import TrainingState

SIZES = {name: 6 for name in ("word_dim", "latent_dim", "structure_dim", "hidden_dim", "kernels")}
SETTINGS: dict[str, Any] = SIZES | {"batch_size": 24, "near_pairs": 12, "min_count": 1}
SETTINGS |= {"learning_rate": 1e-2, "structure_rate": 0.05, "warmup": 2, "steps": 8}
FATAL_STEP = 5  # at which the second process is killed


def make_network() -> TextNetwork:
    rng = np.random.default_rng(0)
    texts = [
        " ".join(f"w{k}" for k in rng.integers(40, size=rng.integers(2, 9))) for _ in range(60)
    ]
    return TextNetwork(range(60), texts, rng.integers(60, size=(90, 2)))


def trainer_of(network: TextNetwork, **changes: Any) -> PairTrainer:
    return pair_trainer(network, PairVHEConfig(**SETTINGS | changes))


def gradients(network: TextNetwork, form: str) -> dict[str, Tensor]:
    """Every gradient of the first step, and its terms.

    The samples of the reconstruction differ between processes; with a negligible precision they do
    not matter.
    """
    changes: dict[str, Any] = {"precision": 1e-9}
    if form == "paper":
        changes |= {"residual": False, "shared_posterior": False, "link_posterior": "mlp"}
    trainer = trainer_of(network, **changes)
    terms = trainer.step(0)
    found = {f"term {name}": torch.tensor(value) for name, value in terms.items()}
    for name, weight in trainer.model.named_parameters():
        if weight.grad is not None:
            found[name] = weight.grad
    return found


def train_undisturbed(network: TextNetwork, folder: Path) -> None:
    with process_group.initialised():
        found: dict[str, Any] = {form: gradients(network, form) for form in ("default", "paper")}
        trainer = trainer_of(network)
        state = train(trainer, validate_every=2)
        found["history"] = state.history
        found["weights"] = trainer.weights()
        found["differences"] = {
            name: float(np.abs(process_group.all_reduce(w.numpy().copy()) / 2 - w.numpy()).max())
            for name, w in trainer.weights().items()
        }
        found["embedding"] = global_embedding(
            trainer.model, trainer.corpus, LinkSet(trainer.links, len(network)), contexts=4, seed=0
        )
        found["seed"] = process_group.broadcast(process_group.rank() + 2**40)
        found["any_rank"] = [
            process_group.any_rank(process_group.rank() == 1),
            process_group.any_rank(False),
        ]
    with process_group.initialised():  # a second group of the same processes
        found["second group"] = process_group.all_reduce(np.ones(3)).tolist()
    with (folder / f"rank{process_group.local_rank()}.pickle").open("wb") as file:
        pickle.dump(found, file)


class FileCheckpoint:
    """A checkpoint in one file, written in every step."""

    seconds = 0.0

    def __init__(self, path: Path) -> None:
        self.path = path

    def save(self, state: TrainingState, tensors: dict[str, Tensor]) -> None:
        partial = self.path.with_suffix(".part")
        torch.save((state, {name: t.clone() for name, t in tensors.items()}), partial)
        partial.replace(self.path)

    def load(self) -> tuple[TrainingState, dict[str, Tensor]]:
        loaded: tuple[TrainingState, dict[str, Tensor]] = torch.load(self.path, weights_only=False)
        return loaded


def train_disturbed(network: TextNetwork, folder: Path) -> None:
    checkpoint = FileCheckpoint(folder / "checkpoint.pt")
    with process_group.initialised():
        trainer = trainer_of(network)
        step = trainer.step

        def fatal(number: int) -> dict[str, float]:
            if process_group.is_first():
                with (folder / "steps.txt").open("a") as file:
                    print(number, file=file)
            elif number == FATAL_STEP and not process_group.restarted():
                os.kill(os.getpid(), signal.SIGKILL)
            return step(number)

        trainer.step = fatal  # type: ignore[method-assign]
        resume = checkpoint.load() if process_group.restarted() else None
        try:
            train(trainer, validate_every=2, checkpoint=checkpoint, resume=resume)
        except process_group.PeerLostError as error:
            (folder / "error.txt").write_text(str(error))
            raise
        if process_group.is_first():
            torch.save(trainer.weights(), folder / "resumed.pt")


if __name__ == "__main__":
    folder, network = Path(sys.argv[1]), make_network()
    if not process_group.restarted():
        train_undisturbed(network, folder)
    train_disturbed(network, folder)
