"""Training of a model over pairs: stochastic optimisation of its objective.

A step takes linked pairs, unlinked pairs and pairs of near texts. Everything random is a function
of the seed and the step. With several processes (torchrun) each takes its share of the pairs of a
step, and torch's DistributedDataParallel averages the gradients.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from vhe.data.sampling import LinkSet, Pairs, PairSampler, random_stream
from vhe.data.text import Corpus
from vhe.errors import VHEError
from vhe.graph.neighbours import text_neighbours
from vhe.graph.validation import ranking_auc
from vhe.pair.embedding import embedding_of
from vhe.pair.model import PairModel, TextPairs, in_parts, known_links
from vhe.runtime import process_group
from vhe.runtime.adam import Adam
from vhe.runtime.device import retain_memory
from vhe.runtime.files import physical_memory
from vhe.runtime.loop import (
    Checkpoint,
    Report,
    TrainingLoop,
    TrainingState,
    load_optimisers,
    optimiser_tensors,
)
from vhe.text.lsa import scaled_codes

VALIDATION_CONTEXTS = 4

Links = NDArray[np.int64]


class PairTrainer:
    """Fits a model over pairs to the links of a network; a `vhe.runtime.loop.Trainable`.

    Parameters
    ----------
    model : on its device, with initial weights
    links, validation : (m, 2)
        the links to learn from, and held-out links; they must be disjoint

    Attributes
    ----------
    steps : number of optimiser steps that the settings ask for
    """

    def __init__(
        self, model: PairModel, corpus: Corpus, links: Links, validation: Links, *, seed: int
    ) -> None:
        retain_memory()
        self.model, self.corpus, self.config, self.seed = model, corpus, model.config, seed
        self.links, self.validation = links, validation
        self._check_memory()
        self.link_set = LinkSet(links, len(corpus))
        self.sampler = PairSampler(
            links,
            len(corpus),
            batch_size=self.config.batch_size,
            negatives=self.config.negatives,
            alpha=self.config.alpha,
            seed=seed,
        )
        self.near = np.zeros((0, 2), dtype=np.int64)  # pairs of near texts
        if self.config.near_pairs:
            words = model.words.weight.detach().cpu().numpy()
            self.near = text_neighbours(scaled_codes(corpus, words), corpus.lengths == 0).pairs
        epochs = math.ceil(self.config.epochs * self.sampler.steps_in_epoch)
        self.steps = max(self.config.steps, epochs)
        self.optimisers = _optimisers(model)
        self.rates = [[group["lr"] for group in each.param_groups] for each in self.optimisers]
        self._objective: nn.Module = model
        if process_group.size() > 1:
            with process_group.reporting_lost_peers():
                self._objective = DistributedDataParallel(model)

    def release_group(self) -> None:
        """Drop the reference to the process group.

        The interpreter aborts at exit if a reference to a destroyed group is left.
        """
        self._objective = self.model

    def _check_memory(self) -> None:
        """Refuse texts so long that the matrices of one alignment exceed the memory."""
        longest = int(self.corpus.lengths.max(initial=0))
        needed = 4 * longest**2 * (3 + 2 * self.config.kernel_width)
        if needed > physical_memory():
            raise VHEError(
                f"the alignment of two texts of {longest:,} words needs {needed / 1e9:,.0f} GB, "
                "more than this machine has: lower max_words"
            )

    def step(self, number: int) -> dict[str, float]:
        rate = self.rate(number)
        for optimiser, rates in zip(self.optimisers, self.rates, strict=True):
            for group, base in zip(optimiser.param_groups, rates, strict=True):
                group["lr"] = rate * base
        means = self.backward(self.batch(number), number)
        if math.isfinite(sum(means.values())):
            for optimiser in self.optimisers:
                optimiser.step()
        return means

    def rate(self, step: int) -> float:
        """The factor of all learning rates: linear warm-up, then cosine decay to 0."""
        warmup, config = min(self.config.warmup, self.steps), self.config
        if step < warmup:
            return (step + 1) / (warmup + 1)
        progress = (step - warmup) / max(1, self.steps - warmup)
        return (1 + math.cos(math.pi * progress)) / 2 if config.decay else 1.0

    def batch(self, step: int) -> Pairs:
        """The pairs of a step: those of the sampler, and pairs of near texts.

        The edge of near texts is unknown, unless it is a training link.
        """
        pairs = self.sampler.batch(step)
        if not len(self.near):
            return pairs
        rng = random_stream(self.seed, 5, step)
        near = self.near[rng.integers(len(self.near), size=self.config.near_pairs)]
        i, j = rng.permuted(near, axis=1).T
        more = known_links(i, j, self.link_set)
        return Pairs(*(np.concatenate([getattr(p, f) for p in (pairs, more)]) for f in vars(pairs)))

    def backward(self, pairs: Pairs, step: int) -> dict[str, float]:
        """Compute the gradient of the mean objective of some pairs; return the mean of each term.

        With several processes both are means over the pairs of all of them.
        """
        for optimiser in self.optimisers:
            optimiser.zero_grad()
        rows, share = shared_rows(self.corpus.lengths[pairs.i] * self.corpus.lengths[pairs.j])
        own_stream = (process_group.rank(),) if process_group.rank() else ()
        device = self.model.words.weight.device
        noise = torch.Generator(device).manual_seed(
            int(random_stream(self.seed, 7, step, *own_stream).integers(2**63))
        )
        with process_group.reporting_lost_peers():
            # the terms are reduced first: no gradient is computed if one of them is not finite
            objective, means = self._objective(self.parts(pairs[rows]), noise)
            names, values = list(means), share * np.array(list(means.values()))
            means = dict(zip(names, process_group.all_reduce(values).tolist(), strict=True))
            if math.isfinite(sum(means.values())):
                # DistributedDataParallel takes the mean over the processes
                (share * process_group.size() * objective).backward()
        return means

    def parts(self, pairs: Pairs) -> list[TextPairs]:
        """Pairs as tensors, in parts of texts of about equal length."""
        return in_parts(pairs, self.corpus, self.model.words.weight.device)[1]

    def validate(self) -> float | None:
        """P(a validation link scores above a pair of one of its ends and another such vertex)."""
        if len(self.validation) == 0 or len(self.corpus) < 3:
            return None
        vertices, rows = np.unique(self.validation, return_inverse=True)
        codes = embedding_of(
            self.model,
            self.corpus,
            self.link_set,
            vertices,
            contexts=VALIDATION_CONTEXTS,
            seed=self.seed,
        )
        score = ranking_auc(codes, rows.reshape(-1, 2))
        score = process_group.broadcast(math.nan if score is None else score)
        return None if math.isnan(score) else score

    def weights(self) -> dict[str, Tensor]:
        return self.model.state_dict()

    def load_weights(self, weights: dict[str, Tensor]) -> None:
        self.model.load_state_dict(weights)

    def optimiser_state(self) -> dict[str, Tensor]:
        return optimiser_tensors(self.optimisers)

    def load_optimiser_state(self, tensors: dict[str, Tensor]) -> None:
        load_optimisers(self.optimisers, tensors)


def train(
    trainer: PairTrainer,
    *,
    validate_every: int,
    patience: int | None = None,
    report: Report = lambda step, note: None,
    checkpoint: Checkpoint | None = None,
    resume: tuple[TrainingState, dict[str, Tensor]] | None = None,
) -> TrainingState:
    """Train for ``trainer.steps`` steps; the other arguments are those of `TrainingLoop`.

    ``resume`` is what a checkpoint has saved. Of several processes only rank 0 writes checkpoints.
    """
    loop = TrainingLoop(
        trainer,
        steps=trainer.steps,
        validate_every=validate_every,
        patience=patience,
        report=report,
        checkpoint=checkpoint if process_group.rank() == 0 else None,
    )
    if resume is not None:
        loop.resume(*resume)
    try:
        return loop.run()
    except process_group.PeerLostError:
        loop.save()
        raise
    finally:
        trainer.release_group()


def shared_rows(work: NDArray[np.int64]) -> tuple[NDArray[np.int64], float]:
    """The rows that this process takes, of rows with so much ``work`` each, and their share.

    The shares of all processes sum to one. With fewer rows than processes each takes all rows.
    """
    rank, size = process_group.rank(), process_group.size()
    if size == 1 or len(work) < size:
        return np.arange(len(work)), 1 / size
    rows = np.sort(np.argsort(work, kind="stable")[rank::size])
    return rows, len(rows) / len(work)


def _optimisers(model: PairModel) -> list[Adam | torch.optim.SparseAdam]:
    """Adam with one rate for the words, the layers and the structure table each.

    A table with sparse gradients has torch's sparse form of Adam.
    """
    config, words, table = model.config, model.words.weight, model.structure.weight
    layers = [p for p in model.parameters() if p is not words and p is not table]
    groups: list[tuple[list[Tensor], float]] = [
        ([words], config.learning_rate),
        (list(layers), config.learning_rate * model.layer_pace),
    ]
    if table.requires_grad and model.structure.sparse:
        return [Adam(*groups), torch.optim.SparseAdam([table], lr=config.structure_rate)]
    if table.requires_grad:
        groups.append(([table], config.structure_rate))
    return [Adam(*groups)]
