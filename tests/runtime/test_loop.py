"""The training loop with a small model: patience, best weights, checkpoints, Ctrl-C, resuming."""

import signal
import threading
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor

from vhe.errors import VHEError
from vhe.runtime import loop as loop_module
from vhe.runtime import process_group
from vhe.runtime.loop import TrainingLoop, TrainingState, interrupt_requested


class Counter:
    """Its only weight is the number of steps, its momentum the sum of their numbers."""

    def __init__(self, scores: list[float | None] | None = None) -> None:
        self.weight, self.momentum = torch.zeros(1), torch.zeros(1)
        self.scores = scores  # of the validations, in their order
        self.validated = 0
        self.before_step: Callable[[int], None] = lambda number: None
        self.loss: Callable[[int], float] = lambda number: float(number)

    def step(self, number: int) -> dict[str, float]:
        self.before_step(number)
        self.weight += 1
        self.momentum += number
        return {"loss": self.loss(number), "twice": 2 * self.loss(number)}

    def validate(self) -> float | None:
        self.validated += 1
        return None if self.scores is None else self.scores[self.validated - 1]

    def weights(self) -> dict[str, Tensor]:
        return {"weight": self.weight}

    def load_weights(self, weights: dict[str, Tensor]) -> None:
        self.weight.copy_(weights["weight"])

    def optimiser_state(self) -> dict[str, Tensor]:
        return {"momentum": self.momentum}

    def load_optimiser_state(self, tensors: dict[str, Tensor]) -> None:
        self.momentum.copy_(tensors["momentum"])


class Memory:
    """A checkpoint that remembers everything that was saved."""

    def __init__(self, seconds: float = 1e9) -> None:
        self.seconds = seconds
        self.saved: list[tuple[TrainingState, dict[str, Tensor]]] = []

    def save(self, state: TrainingState, tensors: dict[str, Tensor]) -> None:
        self.saved.append((deepcopy(state), {k: v.clone() for k, v in tensors.items()}))


def run(trained: Counter, **options: Any) -> TrainingState:
    return TrainingLoop(trained, **{"steps": 8, "validate_every": 2, **options}).run()


# --- validation and history


def test_all_steps_are_taken_and_recorded():
    trained = Counter([0.5, 0.6, 0.7, 0.8, 0.9])
    state = run(trained, patience=3)
    assert (state.step, state.best_step, state.best_score, state.stopped) == (8, 8, 0.9, "")
    assert [record["step"] for record in state.history] == [0, 2, 4, 6, 8]
    assert [record["validation_auc"] for record in state.history] == [0.5, 0.6, 0.7, 0.8, 0.9]
    assert "loss" not in state.history[0]
    means = [record["loss"] for record in state.history[1:]]
    assert means == [0.5, 2.5, 4.5, 6.5]  # of the steps since the last validation
    assert [record["twice"] for record in state.history[1:]] == [1, 5, 9, 13]
    assert not state.interrupted


def test_the_last_step_is_validated():
    state = run(Counter([0.1] * 9), steps=7, validate_every=3)
    assert [record["step"] for record in state.history] == [0, 3, 6, 7]
    assert state.history[-1]["loss"] == 6


def test_no_steps():
    trained = Counter([0.5])
    state = run(trained, steps=0)
    assert (state.step, state.best_step, state.best_score) == (0, 0, 0.5)
    assert len(state.history) == 1


def test_steps_and_validations_are_reported():
    notes: list[tuple[int, str | None]] = []
    run(Counter([0.25, 0.5, 0.75]), steps=4, report=lambda step, note: notes.append((step, note)))
    auc = "validation AUC {} %".format
    assert notes == [(0, auc("25.0")), (1, None), (2, auc("50.0")), (3, None), (4, auc("75.0"))]


# --- patience and the best weights


def test_the_best_weights_are_restored():
    trained = Counter([0.5, 0.9, 0.7, 0.8, 0.6])
    state = run(trained, patience=10)
    assert (state.step, state.best_step, state.best_score, state.stopped) == (8, 2, 0.9, "")
    assert trained.weight.item() == 2


def test_an_equal_score_is_no_improvement():
    trained = Counter([0.5] * 5)
    assert run(trained, patience=10).best_step == 0
    assert trained.weight.item() == 0


@pytest.mark.parametrize(("patience", "last"), [(1, 4), (2, 6), (3, 8)])
def test_training_stops_after_some_validations_without_improvement(patience, last):
    trained = Counter([0.5, 0.6, 0.1, 0.1, 0.1, 0.9])
    state = run(trained, steps=100, patience=patience)
    assert state.step == last
    assert state.stopped == "no improvement since step 2"
    assert trained.weight.item() == 2
    assert not state.interrupted


def test_without_patience_the_last_weights_stay():
    trained = Counter([0.9, 0.1, 0.1, 0.1, 0.1])
    state = run(trained, patience=None)
    assert (state.best_step, state.best_score, state.stopped) == (8, 0.1, "")
    assert trained.weight.item() == 8


def test_without_validation_links_the_last_weights_stay():
    trained = Counter(None)
    state = run(trained, patience=1)
    assert (state.step, state.best_step, state.best_score) == (8, 8, None)
    assert trained.weight.item() == 8
    assert "validation_auc" not in state.history[-1]


# --- numbers that are not finite


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_stops_training_at_the_best_weights(value):
    trained = Counter([0.5, 0.6, 0.7])
    trained.loss = lambda number: value if number == 5 else 1.0
    state = run(trained, patience=10)
    assert state.stopped == "the loss was not finite at step 6"
    assert (state.step, state.best_step) == (5, 4)
    assert trained.weight.item() == 4


def test_weights_that_are_not_finite_stop_training_at_the_best_weights():
    trained = Counter([0.5, 0.6])
    trained.before_step = lambda number: trained.weight.fill_(torch.nan) if number == 3 else None
    state = run(trained, patience=None)
    assert state.stopped == "the weights were not finite at step 4"
    assert trained.weight.item() == 2


def test_initial_weights_that_are_not_finite_are_refused():
    trained = Counter([0.5])
    trained.weight.fill_(torch.inf)
    with pytest.raises(VHEError, match="initial weights are not finite"):
        run(trained)


# --- checkpoints and resuming


def test_a_checkpoint_is_written_at_the_end():
    memory = Memory()
    run(Counter([0.5, 0.9, 0.7, 0.7, 0.7]), patience=10, checkpoint=memory)
    ((state, tensors),) = memory.saved
    assert state.step == 8
    assert {name: tensor.item() for name, tensor in tensors.items()} == {
        "model.weight": 8,
        "best.weight": 2,
        "optimiser.momentum": 28,
    }


def test_checkpoints_are_written_when_the_interval_has_passed(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(loop_module.time, "monotonic", lambda: now[0])
    trained, memory = Counter([0.5] * 5), Memory(seconds=2.5)

    def wait(number: int) -> None:
        now[0] += 1

    trained.before_step = wait
    state = run(trained, checkpoint=memory)
    assert [saved.step for saved, _ in memory.saved] == [3, 6, 8]
    assert state.seconds == 8


def test_a_resumed_run_is_the_same_as_one_that_was_not_stopped():
    scores = [0.5, 0.9, 0.7, 0.8, 0.6]
    whole = Counter(list(scores))
    expected = run(whole, patience=10)
    for stop in range(1, 8):
        memory, first = Memory(), Counter(list(scores))
        first.before_step = lambda number, stop=stop: (
            signal.raise_signal(signal.SIGINT) if number == stop - 1 else None
        )
        state = run(first, patience=10, checkpoint=memory)
        assert state.stopped == f"interrupted at step {stop}"
        assert state.interrupted
        second = Counter(list(scores))
        second.validated = first.validated
        resumed = TrainingLoop(second, steps=8, validate_every=2, patience=10)
        resumed.resume(*memory.saved[-1])
        found = resumed.run()
        assert (found.step, found.best_step, found.best_score) == (8, 2, 0.9)
        assert found.stopped == ""
        assert torch.equal(second.weight, whole.weight)
        assert torch.equal(second.momentum, whole.momentum)
        records = [[{**r, "seconds": 0} for r in s.history] for s in (found, expected)]
        assert records[0] == records[1]


def test_a_run_that_ended_is_not_continued():
    memory, scores = Memory(), [0.5, 0.1, 0.1, 0.1, 0.1]
    run(Counter(scores), patience=1, checkpoint=memory)
    again = Counter(scores)
    resumed = TrainingLoop(again, steps=8, validate_every=2, patience=1)
    resumed.resume(*memory.saved[-1])
    state = resumed.run()
    assert (state.step, state.stopped) == (2, "no improvement since step 0")
    assert again.validated == 0
    assert again.weight.item() == 0


# --- Ctrl-C


def test_ctrl_c_stops_after_the_step():
    trained = Counter([0.5, 0.6, 0.7, 0.8, 0.9])
    trained.before_step = lambda number: signal.raise_signal(signal.SIGINT) if number == 4 else None
    before = signal.getsignal(signal.SIGINT)
    state = run(trained, patience=10)
    assert (state.step, state.stopped) == (5, "interrupted at step 5")
    assert trained.weight.item() == 4  # the best validated weights
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_of_any_process_stops_all(monkeypatch):
    asked: list[bool] = []

    def any_rank(flag: bool) -> bool:
        asked.append(flag)
        return len(asked) == 3

    monkeypatch.setattr(process_group, "any_rank", any_rank)
    state = run(Counter([0.5] * 5))
    assert state.stopped == "interrupted at step 3"
    assert asked == [False] * 3


def test_a_second_ctrl_c_interrupts_at_once():
    with interrupt_requested() as requests:
        assert not requests
        signal.raise_signal(signal.SIGINT)
        assert requests
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_training_in_another_thread_leaves_signals_alone():
    states: list[TrainingState] = []
    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=lambda: states.append(run(Counter([0.5] * 5))))
    thread.start()
    thread.join()
    assert states[0].step == 8
    assert signal.getsignal(signal.SIGINT) is before
