"""A checkpoint restores a training run exactly, refuses another run, and never ends a run."""

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from vhe.data.text import Corpus
from vhe.errors import VHEError
from vhe.runtime.loop import TrainingLoop, TrainingState
from vhe.storage.folder import json_bytes, read_folder, write_folder
from vhe.storage.training_state import STATE, TrainingCheckpoint, network_digest, seed_of

IDENTITY: dict[str, Any] = {
    "model": "graph",
    "seed": 7,
    "settings": {"latent_dim": 4, "learning_rate": 0.1},
    "network": "0123",
}
STATE_AFTER_3 = TrainingState(
    step=3,
    best_step=2,
    best_score=0.1 + 0.2,
    seconds=1.5,
    sums={"loss": 1 / 3},
    history=[{"step": 2, "seconds": 0.5, "loss": 0.25}],
    chosen={"link_strength": 2.0},
)


def tensors() -> dict[str, torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    return {
        "model.words": torch.randn(50, 3, generator=random),
        "optimiser.step": torch.tensor(3),
        "best.words": torch.randn(3, 50, generator=random).T,  # not contiguous
    }


@pytest.fixture
def checkpoint(tmp_path: Path) -> TrainingCheckpoint:
    return TrainingCheckpoint(tmp_path / "training", IDENTITY, seconds=60.0)


def test_load_returns_what_was_saved(checkpoint: TrainingCheckpoint) -> None:
    checkpoint.save(STATE_AFTER_3, tensors())
    state, loaded = checkpoint.load()
    assert state == STATE_AFTER_3
    assert loaded.keys() == tensors().keys()
    for name, value in tensors().items():
        assert loaded[name].dtype == value.dtype
        assert torch.equal(loaded[name], value)
    assert seed_of(checkpoint.folder) == 7
    assert os.listdir(checkpoint.folder.parent) == ["training"]


def test_loaded_tensors_survive_the_next_checkpoint(checkpoint: TrainingCheckpoint) -> None:
    """They may be mapped from a file that the next checkpoint deletes, and may be changed."""
    checkpoint.save(STATE_AFTER_3, tensors())
    _, loaded = checkpoint.load()
    checkpoint.save(STATE_AFTER_3, {"model.words": torch.zeros(50, 3)})
    loaded["model.words"] += 1
    assert torch.equal(loaded["model.words"], tensors()["model.words"] + 1)
    assert torch.equal(checkpoint.load()[1]["model.words"], torch.zeros(50, 3))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "pair"}, "of a graph model, not of a pair model"),
        ({"seed": 8}, "seed was 7 and is 8"),
        ({"settings": {"latent_dim": 4, "learning_rate": 0.2}}, "learning_rate was 0.1 and is 0.2"),
        ({"settings": {"latent_dim": 4}}, "learning_rate was 0.1 and is None"),
        ({"network": "4567"}, "another network"),
    ],
)
def test_another_run_is_refused(
    checkpoint: TrainingCheckpoint, change: dict[str, Any], message: str
) -> None:
    checkpoint.save(STATE_AFTER_3, tensors())
    other = TrainingCheckpoint(checkpoint.folder, IDENTITY | change, seconds=60.0)
    with pytest.raises(VHEError, match=message) as refused:
        other.load()
    assert str(checkpoint.folder) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_no_checkpoint(checkpoint: TrainingCheckpoint) -> None:
    with pytest.raises(VHEError, match="no such training folder"):
        checkpoint.load()
    with pytest.raises(VHEError, match="no such training folder"):
        seed_of(checkpoint.folder)


def changed(**values: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda saved: saved | values


def changed_state(**values: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda saved: saved | {"state": saved["state"] | values}


@pytest.mark.parametrize(
    "change",
    [
        lambda saved: [],
        lambda saved: None,
        lambda saved: {name: value for name, value in saved.items() if name != "state"},
        lambda saved: {name: value for name, value in saved.items() if name != "network"},
        changed(seed="7"),
        changed(seed=-1),
        changed(seed=2**40),
        changed(seed=True),
        changed(settings=[]),
        changed(state=[]),
        changed(state={"unknown": 1}),
        changed_state(step="3"),
        changed_state(step=-1),
        changed_state(best_step=4),
        changed_state(best_score="high"),
        changed_state(best_score=float("nan")),
        changed_state(seconds=None),
        changed_state(seconds=float("inf")),
        changed_state(stopped=1),
        changed_state(sums=[1.0]),
        changed_state(sums={"loss": "low"}),
        changed_state(history={}),
        changed_state(history=[1]),
        changed_state(history=[{}]),
        changed_state(history=[{"step": float("nan")}]),
        changed_state(chosen={"link_strength": None}),
    ],
)
def test_a_state_with_valid_checksums_and_invalid_values(
    checkpoint: TrainingCheckpoint, change: Callable[[dict[str, Any]], Any]
) -> None:
    checkpoint.save(STATE_AFTER_3, tensors())
    files: dict[str, Any] = read_folder(checkpoint.folder, "training")
    files[STATE] = json_bytes(change(json.loads(files[STATE])))
    write_folder(checkpoint.folder, files, "training")
    with pytest.raises(VHEError, match="not the state of a training run"):
        checkpoint.load()


@pytest.mark.parametrize("name", ["training.json", "training.safetensors"])
def test_files_that_are_invalid_or_missing(checkpoint: TrainingCheckpoint, name: str) -> None:
    checkpoint.save(STATE_AFTER_3, tensors())
    files: dict[str, Any] = read_folder(checkpoint.folder, "training")
    write_folder(checkpoint.folder, files | {name: b"\xff" * 9}, "training")
    with pytest.raises(VHEError, match=str(checkpoint.folder)):
        checkpoint.load()
    del files[name]
    write_folder(checkpoint.folder, files, "training")
    with pytest.raises(VHEError, match=name):
        checkpoint.load()


def test_the_digest_distinguishes_texts_links_and_validation_links() -> None:
    texts = ["a b", "b c", "c d"]
    links, none = np.array([[0, 1], [1, 2]]), np.empty((0, 2), dtype=np.int64)
    digest = network_digest(Corpus.build(texts, min_count=1), links, none)
    assert digest == network_digest(Corpus.build(texts, min_count=1), links.copy(), none)
    assert digest == network_digest(
        Corpus.build(texts, min_count=1), np.asfortranarray(links), none
    )
    assert digest != network_digest(Corpus.build(["a b", "b c d", "d"], min_count=1), links, none)
    assert digest != network_digest(Corpus.build(texts, min_count=1), links[:, ::-1], none)
    assert digest != network_digest(Corpus.build(texts, min_count=1), links[:1], none)


# --- locks


def test_a_second_run_in_the_same_folder_is_refused(checkpoint: TrainingCheckpoint) -> None:
    second = TrainingCheckpoint(checkpoint.folder, IDENTITY, seconds=60.0)
    with (
        checkpoint.lock(),
        pytest.raises(VHEError, match="another command is writing there"),
        second.lock(),
    ):
        pass
    with second.lock():
        second.save(STATE_AFTER_3, tensors())  # the lock does not exclude its own run
    assert second.load()[0] == STATE_AFTER_3


def test_files_of_others_are_refused_before_training(checkpoint: TrainingCheckpoint) -> None:
    checkpoint.folder.mkdir()
    (checkpoint.folder / "thesis.tex").write_text("text")
    with pytest.raises(VHEError, match=r"thesis\.tex"), checkpoint.lock():
        raise AssertionError("training started")
    assert (checkpoint.folder / "thesis.tex").read_text() == "text"


# --- a checkpoint that cannot be written


class Counter:
    """A `Trainable` that counts its steps."""

    def __init__(self) -> None:
        self.value = torch.zeros(5000)

    def step(self, number: int) -> dict[str, float]:
        self.value += 1
        return {"loss": 1.0}

    def validate(self) -> float | None:
        return None

    def weights(self) -> dict[str, torch.Tensor]:
        return {"value": self.value}

    def load_weights(self, weights: dict[str, torch.Tensor]) -> None:
        self.value = weights["value"].clone()

    def optimiser_state(self) -> dict[str, torch.Tensor]:
        return {}

    def load_optimiser_state(self, tensors: dict[str, torch.Tensor]) -> None:
        pass


@contextlib.contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Let every write beyond ``size`` bytes of a file fail, as on a full disk."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("size", [0, 100, 1000])
def test_a_full_disk_does_not_end_training(
    checkpoint: TrainingCheckpoint, size: int, logs: Any
) -> None:
    checkpoint.seconds = -1.0  # after each step
    loop = TrainingLoop(Counter(), steps=2, validate_every=1, checkpoint=checkpoint)
    loop.run()
    before = read_folder(checkpoint.folder, "training")
    again = TrainingLoop(Counter(), steps=6, validate_every=1, checkpoint=checkpoint)
    again.resume(*checkpoint.load())
    with file_size_limit(size), logs("no checkpoint at step 3") as messages:
        state = again.run()
    assert (state.step, state.stopped) == (6, "")
    assert float(again.trained.weights()["value"][0]) == 6
    (message,) = messages  # although five checkpoints failed
    assert "File too large" in message
    assert str(checkpoint.folder) in message
    assert "\n" not in message
    assert read_folder(checkpoint.folder, "training") == before  # the last one that was complete
    assert os.listdir(checkpoint.folder.parent) == ["training"]
    checkpoint.save(state, again.trained.weights())
    assert asdict(checkpoint.load()[0]) == asdict(state)
