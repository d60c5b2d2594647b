"""The training loop: optimiser steps, validation, the best weights, checkpoints, Ctrl-C.

What is trained is a `Trainable`. Everything random in a step is a function of the seed and the
step, so a run that is stopped and resumed ends with the same bits as one that is not.
"""

from __future__ import annotations

import contextlib
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.optim import SparseAdam

from vhe.errors import VHEError
from vhe.runtime import process_group
from vhe.runtime.adam import Adam

INTERRUPTED = "interrupted"

Report = Callable[[int, str | None], None]  # the step, and at times a short note


@dataclass
class TrainingState:
    """Position of a training run: with the tensors of a `Trainable`, all that resuming needs."""

    step: int = 0
    best_step: int = 0
    best_score: float | None = None  # on validation links
    seconds: float = 0.0
    stopped: str = ""  # the reason, if training ended early
    sums: dict[str, float] = field(default_factory=dict)  # of the terms since the last validation
    history: list[dict[str, float]] = field(default_factory=list)
    chosen: dict[str, float] = field(default_factory=dict)  # settings chosen on validation links

    @property
    def interrupted(self) -> bool:
        return self.stopped.startswith(INTERRUPTED)


class Trainable(Protocol):
    """A model with its optimiser and its data."""

    def step(self, number: int) -> dict[str, float]:
        """Take an optimiser step; return the mean of each term of the objective."""

    def validate(self) -> float | None:
        """The score on validation links, higher is better; None without such links."""

    def weights(self) -> dict[str, Tensor]:
        """Everything that is learned, by name."""

    def load_weights(self, weights: dict[str, Tensor]) -> None: ...

    def optimiser_state(self) -> dict[str, Tensor]: ...

    def load_optimiser_state(self, tensors: dict[str, Tensor]) -> None: ...


class Checkpoint(Protocol):
    """Where a training run is saved; `vhe.storage.training_state.TrainingCheckpoint` is one."""

    seconds: float  # between two checkpoints

    def save(self, state: TrainingState, tensors: dict[str, Tensor]) -> None: ...


class TrainingLoop:
    """Runs a `Trainable` for a number of steps.

    Parameters
    ----------
    steps : number of optimiser steps
    validate_every : steps between two validations
    patience : validations without improvement before training stops, after which the best weights
        are restored; None trains all steps and leaves the last weights that are finite
    report : called with the step, and after a validation with a note
    """

    def __init__(
        self,
        trained: Trainable,
        *,
        steps: int,
        validate_every: int,
        patience: int | None = None,
        report: Report = lambda step, note: None,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self.trained, self.steps = trained, steps
        self.validate_every, self.patience = validate_every, patience
        self.report, self.checkpoint = report, checkpoint
        self.state = TrainingState()
        self.best: dict[str, Tensor] = {}

    def run(self) -> TrainingState:
        """Train to the last step, until validation stops improving, or until interrupted."""
        state, began = self.state, time.monotonic() - self.state.seconds
        if state.interrupted:
            state.stopped = ""
        if state.step == 0:
            self.report(0, self._validate())
        saved = time.monotonic()
        with interrupt_requested() as interrupt:
            while state.step < self.steps and not state.stopped:
                terms = self.trained.step(state.step)
                if not math.isfinite(sum(terms.values())):
                    state.stopped = f"the loss was not finite at step {state.step + 1}"
                    break
                state.step += 1
                state.seconds = time.monotonic() - began
                for name, value in terms.items():
                    state.sums[name] = state.sums.get(name, 0.0) + value
                due = state.step % self.validate_every == 0 or state.step == self.steps
                self.report(state.step, self._validate() if due else None)
                if process_group.any_rank(bool(interrupt)) and not state.stopped:
                    state.stopped = f"{INTERRUPTED} at step {state.step}"
                elif self.checkpoint and time.monotonic() - saved > self.checkpoint.seconds:
                    self.save()
                    saved = time.monotonic()
        self.save()
        if self.best:
            self.trained.load_weights(self.best)
        return state

    def save(self) -> None:
        """Write a checkpoint."""
        if self.checkpoint is not None:
            parts = {
                "model": self.trained.weights(),
                "best": self.best,
                "optimiser": self.trained.optimiser_state(),
            }
            self.checkpoint.save(
                self.state,
                {f"{part}.{name}": t for part, named in parts.items() for name, t in named.items()},
            )

    def resume(self, state: TrainingState, tensors: dict[str, Tensor]) -> None:
        """Continue from what `save` wrote."""
        parts: dict[str, dict[str, Tensor]] = {"model": {}, "best": {}, "optimiser": {}}
        for key, value in tensors.items():
            part, name = key.split(".", maxsplit=1)
            parts[part][name] = value
        self.state, self.best = state, parts["best"]
        self.trained.load_weights(parts["model"])
        self.trained.load_optimiser_state(parts["optimiser"])

    def _validate(self) -> str:
        """Record the terms since the last validation and the score; keep the best weights."""
        state, weights = self.state, self.trained.weights()
        if not all(bool(w.isfinite().all()) for w in weights.values() if w.is_floating_point()):
            if not state.history:
                raise VHEError("the initial weights are not finite; use less extreme settings")
            state.stopped = f"the weights were not finite at step {state.step}"
            return state.stopped
        score = self.trained.validate()
        since = state.step - (state.history[-1]["step"] if state.history else 0)
        means = {name: total / max(since, 1) for name, total in state.sums.items()}
        record = {"step": state.step, "seconds": round(state.seconds, 3), **means}
        state.history.append(record | ({} if score is None else {"validation_auc": score}))
        state.sums = {}
        best = self.patience is None or score is None or state.best_score is None
        if best or score > state.best_score:  # type: ignore[operator]
            state.best_step, state.best_score = state.step, score
            self.best = {name: value.detach().clone() for name, value in weights.items()}
        elif self.patience and state.step - state.best_step >= self.patience * self.validate_every:
            state.stopped = f"no improvement since step {state.best_step}"
        return "" if score is None else f"validation AUC {100 * score:.1f} %"


def optimiser_tensors(optimisers: Sequence[Adam | SparseAdam]) -> dict[str, Tensor]:
    """The state of some optimisers, by the numbers of optimiser and parameter."""
    return {
        f"{number}.{parameter}.{name}": torch.as_tensor(value)
        for number, optimiser in enumerate(optimisers)
        for parameter, values in optimiser.state_dict()["state"].items()
        for name, value in values.items()
    }


def load_optimisers(optimisers: Sequence[Adam | SparseAdam], tensors: dict[str, Tensor]) -> None:
    """Set the state of some optimisers to what `optimiser_tensors` returned."""
    states: list[dict[str, Any]] = [
        optimiser.state_dict() | {"state": {}} for optimiser in optimisers
    ]
    for key, value in tensors.items():
        number, parameter, name = key.split(".")
        plain = name == "step" and isinstance(optimisers[int(number)], SparseAdam)
        values = states[int(number)]["state"].setdefault(int(parameter), {})
        values[name] = int(value) if plain else value
    for optimiser, state in zip(optimisers, states, strict=True):
        optimiser.load_state_dict(state)


@contextlib.contextmanager
def interrupt_requested() -> Iterator[list[int]]:
    """Defer Ctrl-C to the end of a step: the list that is yielded is then no longer empty.

    A second Ctrl-C raises `KeyboardInterrupt` at once.
    """
    requests: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield requests
        return

    def request(number: int, frame: object) -> None:
        requests.append(number)
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, request)
    try:
        yield requests
    finally:
        signal.signal(signal.SIGINT, before)
