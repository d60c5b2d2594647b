"""The training loop: draw pairs, raise the bound, look at the validation links, keep the best.

Everything random is a function of the seed and the step, so a run that was stopped and resumed
ends with the same bits as one that was not.
"""

from __future__ import annotations

import contextlib
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vhe.data.sampling import (
    LinkSet,
    Pairs,
    PairSampler,
    length_buckets,
    longer_first,
    stream,
)
from vhe.data.text import Corpus
from vhe.errors import VHEError
from vhe.graph.posterior import JointStructure
from vhe.graph.prior import STRENGTH
from vhe.pair.embedding import AREA, embedding_of
from vhe.pair.model import TextPairs
from vhe.pair.protocol import PairModel
from vhe.runtime import process_group as distributed
from vhe.runtime.device import keep_memory
from vhe.runtime.files import physical_memory
from vhe.storage import training_state as kept
from vhe.storage.folder import folder_lock, write_folder

SOFTNESS = (2.0, 0.0, 1.0, 4.0)  # weights of soft links to choose from, the usual one first
STRONG, CLEARLY = 8.0, 0.005  # the link_strength of links where that raises the AUC by so much
VALIDATION_CONTEXTS = 4
TABLE = "structure.weight"
INTERRUPTED = "interrupted"

Links = NDArray[np.int64]


@dataclass
class TrainingState:
    """Where a training is; with the weights it is all that has to be kept to go on."""

    step: int = 0
    best_step: int = 0
    best_auc: float | None = None
    seconds: float = 0.0
    stopped: str = ""  # why it ended early, if it did
    text_knn_weight: float = 0.0  # weight of soft links in the joint posterior
    link_strength: float = STRENGTH  # and of known ones
    sums: dict[str, float] = field(default_factory=dict)  # of the terms since the last look
    history: list[dict[str, float]] = field(default_factory=list)


class Trainer:
    """Fits a pair model, as `PairVAE`, to the links of a network.

    Parameters
    ----------
    links, validation : (m, 2)
        the links to learn from, and those that only judge; they share none
    folder
        where the training is kept so that it can be resumed; None keeps it nowhere
    writes
        whether this process is the one that writes there, where several train together
    report
        is told the step, and at times a few words on how it goes
    """

    def __init__(
        self,
        model: PairModel,
        corpus: Corpus,
        links: Links,
        validation: Links,
        *,
        seed: int,
        folder: Path | None = None,
        writes: bool = True,
        report: Callable[[int, str | None], None] = lambda step, note: None,
    ) -> None:
        keep_memory()
        config = model.config
        self.model, self.corpus, self.config, self.seed = model, corpus, config, seed
        self.links, self.validation, self.folder, self.report = links, validation, folder, report
        self.kept_in = folder if writes and distributed.rank() == 0 else None
        self._whose = (distributed.rank(),) if distributed.rank() else ()  # noise of one's own
        self._refuse_what_does_not_fit()
        self.link_set = LinkSet(links, len(corpus))
        self.sampler = PairSampler(
            links,
            len(corpus),
            batch_size=config.batch_size,
            negatives=config.negatives,
            alpha=config.alpha,
            seed=seed,
            step_links=config.step_links if config.structure == "joint" else 0,
        )
        self.steps = max(config.steps, math.ceil(config.epochs * self.sampler.steps_in_epoch))
        self.optimisers, self.gradients = _optimisers(model), distributed.Gradients(model)
        self.state = TrainingState()
        self.best: dict[str, Tensor] = {}
        self.structure: JointStructure | None = None
        if config.structure == "joint":
            self.structure = JointStructure(model, corpus)
            text_knn_weight, link_strength = self._choose_weights()
            self.state.text_knn_weight = distributed.agreed(text_knn_weight)
            self.state.link_strength = distributed.agreed(link_strength)
            self.couple(links)
            self.structure.store()

    def run(self) -> TrainingState:
        """Train to the last step, until validation gets no better, or until interrupted.

        Afterwards the model has the weights that did best on the validation links.
        """
        with (
            contextlib.nullcontext() if self.kept_in is None else folder_lock(self.kept_in, "lock")
        ):
            return self._run()

    def _run(self) -> TrainingState:
        state, began = self.state, time.monotonic() - self.state.seconds
        last, last_step = time.monotonic(), state.step  # when it was kept
        if state.stopped.startswith(INTERRUPTED):
            state.stopped = ""
        distributed.begin_alike(self.model)
        if state.step == 0:
            self.report(0, self._look())
        with _interruptible() as interrupted:
            while state.step < self.steps and not state.stopped:
                try:
                    terms = self._step(state.step)
                except distributed.Lost:
                    self.keep()
                    raise
                if not math.isfinite(sum(terms.values())):
                    state.stopped = f"the loss was not finite at step {state.step + 1}"
                    break
                state.step += 1
                state.seconds = time.monotonic() - began
                for name, value in terms.items():
                    state.sums[name] = state.sums.get(name, 0.0) + value
                due = state.step % self.config.validate_every == 0 or state.step == self.steps
                self.report(state.step, self._look() if due else None)
                if distributed.anyone(bool(interrupted)) and not state.stopped:
                    state.stopped = f"{INTERRUPTED} at step {state.step}"
                elif self._due(time.monotonic() - last, state.step - last_step):
                    self.keep()
                    last, last_step = time.monotonic(), state.step
        self.keep()
        self.model.load_state_dict(self.model.state_dict() | self.best)
        if self.structure is not None and self._follows:
            self.structure.store()
        return state

    @property
    def _follows(self) -> bool:
        """Whether the table follows from the words, and is too large to be made in each step."""
        return self.structure is not None and self.structure.local is not None

    def _refuse_what_does_not_fit(self) -> None:
        """The alignment of two texts takes a table of their words, and one of their phrases."""
        longest = int(self.corpus.lengths.max(initial=0))
        needs = 4 * longest**2 * (3 + 2 * self.config.kernel_width)
        if needs > physical_memory():
            raise VHEError(
                f"two texts of {longest:,} words take {needs / 1e9:,.0f} GB, more than the memory "
                "here: lower max_words"
            )

    def _step(self, step: int) -> dict[str, float]:
        """One step of the optimisers; returns the mean of each term of the bound."""
        for optimiser in self.optimisers:
            optimiser.zero_grad(set_to_none=True)
        means = self.gradients.add(self.backward(self.sampler.batch(step), step))
        if math.isfinite(sum(means.values())):
            for optimiser in self.optimisers:
                optimiser.step()
        return means

    def backward(self, pairs: Pairs, step: int) -> dict[str, float]:
        """The gradient of the objective over some pairs; returns the mean of each term.

        Of several processes each gives what its share of the pairs adds to both.
        """
        readers = np.append(pairs.i, pairs.j)
        lengths = self.corpus.lengths
        rows, weight = distributed.share(lengths[pairs.i] * lengths[pairs.j])
        pairs, _ = longer_first(pairs[rows], lengths)
        device = self.model.words.weight.device
        noise = torch.Generator(device).manual_seed(
            int(stream(self.seed, 7, step, *self._whose).integers(2**63))
        )
        parts = [
            TextPairs.of(pairs[rows], self.corpus, device)
            for rows in length_buckets(pairs, lengths, AREA)
        ]
        left_out = None
        if self.structure is not None:  # a link that is learned from must not be read from
            left_out = self.structure.leaving_out(self.sampler.link_numbers(step), readers)
            part = distributed.rank(), distributed.size()
            left_out = replace(left_out, part=part, weight=1 / weight)  # all parts count the same
        terms = self.model.loss(parts, noise, left_out)
        means = {name: weight * mean for name, mean in terms.means().items()}
        if math.isfinite(sum(means.values())):
            (weight * self.model.objective(terms).mean()).backward()
        return means

    def _look(self) -> str:
        """Record the terms since the last look and the validation AUC; keep the best weights."""
        state = self.state
        if not all(bool(p.isfinite().all()) for p in self.model.parameters() if p.requires_grad):
            if not self.best:
                raise VHEError("there is nothing finite to start from; try less extreme settings")
            state.stopped = f"the weights were not finite at step {state.step}"
            return state.stopped
        if self.structure is not None:
            self.structure.renew(np.unique(self.validation))
        auc = distributed.agreed_score(self.validation_auc())
        since = state.step - (state.history[-1]["step"] if state.history else 0)
        means = {name: total / max(since, 1) for name, total in state.sums.items()}
        record = {"step": state.step, "seconds": round(state.seconds, 3), **means}
        state.history.append(record | ({} if auc is None else {"validation_auc": auc}))
        state.sums = {}
        if auc is None or state.best_auc is None or auc > state.best_auc:
            state.best_step, state.best_auc = state.step, auc
            self.best = {
                name: value.detach().clone()
                for name, value in self.model.state_dict().items()
                if not (self._follows and name == TABLE)
            }
        if state.step - state.best_step >= self.config.patience * self.config.validate_every:
            state.stopped = f"no better since step {state.best_step}"
        return "" if auc is None else f"validation AUC {100 * auc:.1f}"

    def couple(self, links: Links) -> None:
        """Let the joint posterior, where there is one, read these links (m, 2)."""
        if self.structure is not None:
            self.structure.use(links, self.state.text_knn_weight, self.state.link_strength)

    def _choose_weights(self) -> tuple[float, float]:
        """Softness and link_strength under which the joint posterior ranks validation links best."""
        vertices, structure = np.unique(self.validation), self.structure
        places = np.searchsorted(vertices, self.validation)
        assert structure is not None

        @cache  # a solve of the whole graph
        def told(text_knn_weight: float, link_strength: float) -> float:
            structure.use(self.links, text_knn_weight, link_strength)
            with torch.no_grad():
                codes = structure.mean()[torch.from_numpy(vertices)].cpu().numpy()
            return (ranking_auc(codes, places) if len(vertices) else None) or 0.0

        text_knn_weight, link_strength = self.config.text_knn_weight, self.config.link_strength
        if text_knn_weight is None:
            found = {soft: told(soft, link_strength or STRENGTH) for soft in SOFTNESS}
            text_knn_weight = max(found, key=lambda soft: found[soft])
        if link_strength is None:
            better = told(text_knn_weight, STRONG) - told(text_knn_weight, STRENGTH)
            link_strength = STRONG if better > CLEARLY else STRENGTH
        return text_knn_weight, link_strength

    def validation_auc(self) -> float | None:
        """How often a validation link scores above a pair of its end and another such vertex."""
        vertices = np.unique(self.validation)
        if len(self.validation) == 0 or len(self.corpus) < 3:
            return None
        codes = embedding_of(
            self.model,
            self.corpus,
            self.link_set,
            vertices,
            contexts=VALIDATION_CONTEXTS,
            seed=self.seed,
        )
        return ranking_auc(codes, np.searchsorted(vertices, self.validation))

    def _due(self, seconds: float, steps: int) -> bool:
        """Whether it is time to keep the training, so long after it was kept last."""
        config = self.config
        epochs = steps / self.sampler.steps_in_epoch
        return seconds > 60 * config.checkpoint_minutes or 0 < config.checkpoint_epochs <= epochs

    def keep(self) -> None:
        """Write all that is needed to go on from here."""
        if self.kept_in is not None:
            write_folder(self.kept_in, kept.files_of(self), kept.TRAINING)

    def resume(self) -> None:
        """Go back to where `keep` was called last."""
        if self.folder is None:
            raise VHEError("there is no folder to resume from")
        kept.restore(self, self.folder)
        self.couple(self.links)


def ranking_auc(codes: NDArray[np.float32], links: Links) -> float | None:
    """P(cosine of a link > cosine of one of its ends with a vertex that is no partner of it).

    ``codes`` (n, d) are of the vertices at the ends of the links (m, 2), all against all.
    """
    unit = codes / np.maximum(np.linalg.norm(codes, axis=1, keepdims=True), 1e-12)
    scores = unit @ unit.T
    allowed = ~np.eye(len(codes), dtype=bool)
    allowed[links[:, 0], links[:, 1]] = allowed[links[:, 1], links[:, 0]] = False
    ends, partners = links.ravel(), links[:, ::-1].ravel()
    reached = scores[ends, partners][:, None]
    wins = (scores[ends] < reached) + 0.5 * (scores[ends] == reached)
    counted = allowed[ends]
    return float(wins[counted].mean()) if counted.any() else None


def _optimisers(model: PairModel) -> list[torch.optim.Optimizer]:
    """Adam for the network; its sparse form for the rows of a learned structure table.

    A model may have a ``layer_pace``, by which its layers learn slower than words and structure.
    """
    rate = model.config.learning_rate
    words, table = model.words.weight, model.structure.weight
    layer_rate = rate * getattr(model, "layer_pace", 1.0)
    layers = [p for p in model.parameters() if p.requires_grad and p is not words]
    dense: list[dict[str, Any]] = [
        {"params": [words]},
        {"params": [p for p in layers if p is not table], "lr": layer_rate},
    ]
    optimisers: list[torch.optim.Optimizer] = [torch.optim.Adam(dense, lr=rate, fused=True)]
    if table.requires_grad:
        optimisers.append(torch.optim.SparseAdam([table], lr=rate))
    return optimisers


@contextlib.contextmanager
def _interruptible() -> Iterator[list[int]]:
    """Let Ctrl-C wait for the end of a step: the list that is yielded is no longer empty then.

    A second Ctrl-C does what it always does.
    """
    asked: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def ask(number: int, frame: object) -> None:
        asked.append(number)
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)
