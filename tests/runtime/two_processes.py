"""What the test of `train.distributed` starts with torchrun: two processes, of which one is killed.

    torchrun --nproc-per-node=2 --max-restarts=1 two_processes.py NETWORK FOLDER

They train together undisturbed; then `vhe fit` is run, in which the second process kills itself,
so that torchrun starts both again.
"""

import os
import signal
import sys
from pathlib import Path

import numpy as np
import torch

import vhe
from vhe.bench.measure import trainer_of
from vhe.cli import main
from vhe.config import VHEConfig
from vhe.graph.posterior import JointStructure
from vhe.pair.training import Trainer
from vhe.runtime import process_group as distributed
from vhe.runtime import ranks

SIZES = {name: 6 for name in ("word_dim", "latent_dim", "structure_dim", "hidden_dim", "kernels")}
# one sample of the reconstruction is noise of each process; without its weight sums are the same
SETTINGS = SIZES | {"batch_size": 24, "step_links": 16, "text_knn_weight": 1.0, "precision": 1e-9}
FIT = SIZES | {"batch_size": 24, "step_links": 16, "steps": 8, "validate_every": 2}
FIT |= {"embedding": "average", "contexts": 4, "checkpoint_epochs": 0.01}
DEADLY = 5  # the step at which the second process dies


def gradients(network: vhe.TextNetwork, structure: str) -> dict[str, torch.Tensor]:
    """Of the first step, every weight's; and its terms.

    A partner that is looked for in the batch is looked for among fewer by two processes; and few
    rounds of conjugate gradients are not linear: the sum of two halves is not the whole.
    """
    JointStructure.mean.__defaults__ = (None, 40)
    posterior = "latent" if structure == "joint" else "mlp"
    config = VHEConfig(**SETTINGS, structure=structure, link_posterior=posterior)
    trainer = trainer_of(network, config)
    terms = trainer._step(0)
    found = {f"term {name}": torch.tensor(value) for name, value in terms.items()}
    for name, weight in trainer.model.named_parameters():
        if weight.grad is not None:
            found[name] = weight.grad.to_dense()
    return found


def undisturbed(network: vhe.TextNetwork, folder: Path) -> None:
    rounds = JointStructure.mean.__defaults__
    with distributed.together():
        found = {kind: gradients(network, kind) for kind in ("joint", "learned")}
        memory, distributed.SHARED = distributed.SHARED, folder / "nowhere"
        found["spoken"] = gradients(network, "joint")
        distributed.SHARED = memory
        JointStructure.mean.__defaults__ = rounds
        model = vhe.VHE(random_state=0, verbose=False, **FIT).fit(network)
        agree = distributed.summed(model.embedding_.copy()) / 2 - model.embedding_
        if ranks.first():
            torch.save(found, folder / "gradients.pt")
            np.save(folder / "embedding.npy", model.embedding_)
            np.save(folder / "apart.npy", agree)


def disturbed(files: Path, folder: Path) -> int:
    step = Trainer._step

    def deadly(self: Trainer, number: int) -> dict[str, float]:
        if ranks.first():
            with (folder / "steps.txt").open("a") as file:
                print(number, file=file)
        elif number == DEADLY and not ranks.restarted():
            os.kill(os.getpid(), signal.SIGKILL)
        return step(self, number)

    Trainer._step = deadly
    settings = [f"{name}={value}" for name, value in FIT.items()]
    where = ["--vertices", str(files / "vertices.csv"), "--edges", str(files / "edges.csv")]
    return main(["fit", *where, "--out", str(folder / "model"), "--seed", "0", "--set", *settings])


if __name__ == "__main__":
    files, folder = Path(sys.argv[1]), Path(sys.argv[2])
    if not ranks.restarted():
        undisturbed(vhe.TextNetwork.from_files(files / "vertices.csv", files / "edges.csv"), folder)
    sys.exit(disturbed(files, folder))
