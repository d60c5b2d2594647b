"""On a full, read-only or missing disk training continues without checkpoints, and a run that is
resumed from the last complete checkpoint has the same result."""

import contextlib
import json
import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import Tensor

from vhe.data.network import TextNetwork
from vhe.errors import VHEError
from vhe.estimators import Estimator
from vhe.runtime.loop import TrainingState
from vhe.storage.folder import MANIFEST, read_folder, write_folder
from vhe.storage.training_state import STATE, TrainingCheckpoint

resource = pytest.importorskip("resource")

New = Callable[..., Estimator]
EVERY_STEP = 0.0  # minutes between checkpoints


@contextlib.contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Let every write beyond ``size`` bytes of a file fail, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def saved_step(folder: Path) -> int:
    """The step of the checkpoint in a folder, which must be readable."""
    return int(json.loads(read_folder(folder, "training")[STATE])["state"]["step"])


def test_disk_full(
    network: TextNetwork,
    new_estimator: New,
    part: int,
    count: int,
    figures: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    logs: Any,
    tmp_path: Path,
) -> None:
    """From a random step on, files can grow only to a random size."""
    models = ("graph", "pair")
    expected = {model: new_estimator(model).fit(network).embedding_ for model in models}
    rounds, draw = count, random.Random(3 + part)
    survived = 0
    for k in range(rounds):
        model, full_at = models[k % 2], draw.randrange(1, 8)
        folder, size = tmp_path / f"training{k}", draw.randrange(2_000)
        genuine = TrainingCheckpoint.save

        def save(
            checkpoint: TrainingCheckpoint,
            state: TrainingState,
            tensors: dict[str, Tensor],
            full_at: int = full_at,
            size: int = size,
            genuine: Callable[..., None] = genuine,
        ) -> None:
            full = state.step >= full_at
            with file_size_limit(size) if full else contextlib.nullcontext():
                genuine(checkpoint, state, tensors)

        with monkeypatch.context() as patch, logs("no checkpoint") as logged:
            patch.setattr(TrainingCheckpoint, "save", save)
            fitted = new_estimator(model).fit(
                network, checkpoint=folder, checkpoint_minutes=EVERY_STEP
            )
        messages = [message for message in logged if "no checkpoint" in message]
        assert len(messages) == 1
        assert "File too large" in messages[0]
        assert str(folder) in messages[0]
        assert "\n" not in messages[0]
        continued = bool(np.array_equal(fitted.embedding_, expected[model]))
        resume = full_at > 1
        assert os.listdir(tmp_path) == ([folder.name] if resume else [])  # no temporary files
        if resume:
            assert saved_step(folder) == full_at - 1
        again = new_estimator(model).fit(network, checkpoint=folder, resume=resume)
        survived += continued and bool(np.array_equal(again.embedding_, expected[model]))
        shutil.rmtree(folder)
    figures |= {"rounds": rounds, "survived": survived}
    assert survived == rounds


def test_a_full_file_system(tmp_path: Path) -> None:
    """A real one, where mounting is permitted."""
    mounted = tmp_path / "small"
    mounted.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(mounted)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("needs the right to mount")
    try:
        write_folder(mounted / "model", {"a": b"a" * 60_000}, "model")
        with pytest.raises(VHEError, match="No space left on device"):
            write_folder(mounted / "model", {"a": b"b" * 300_000}, "model")
        assert read_folder(mounted / "model", "model") == {"a": b"a" * 60_000}
        assert os.listdir(mounted) == ["model"]
        write_folder(mounted / "model", {"a": b"c" * 60_000}, "model")
        subprocess.run(["mount", "-o", "remount,ro", str(mounted)], check=True)
        with pytest.raises(VHEError, match="Read-only file system"):
            write_folder(mounted / "model", {"a": b"d"}, "model")
        assert read_folder(mounted / "model", "model") == {"a": b"c" * 60_000}
    finally:
        subprocess.run(["umount", str(mounted)], check=True)


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 0)() == 0, reason="root may write anywhere")
def test_a_read_only_folder(tmp_path: Path) -> None:
    write_folder(tmp_path / "model", {"a": b"a"}, "model")
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(VHEError, match="Permission denied"):
            write_folder(tmp_path / "model", {"a": b"b"}, "model")
        assert read_folder(tmp_path / "model", "model") == {"a": b"a"}
    finally:
        tmp_path.chmod(0o700)


def remove(parent: Path) -> None:
    shutil.rmtree(parent)


def replace_by_a_file(parent: Path) -> None:
    shutil.rmtree(parent)
    parent.write_text("a file of somebody else")


def remove_the_manifest(parent: Path) -> None:
    (parent / "training" / MANIFEST).unlink()


@pytest.mark.parametrize("harm", [remove, replace_by_a_file, remove_the_manifest])
def test_the_folder_disappears_during_training(
    network: TextNetwork,
    new_estimator: New,
    model: str,
    monkeypatch: pytest.MonkeyPatch,
    logs: Any,
    tmp_path: Path,
    harm: Callable[[Path], None],
) -> None:
    """A missing folder is created again; files of others are left unchanged, with a warning."""
    genuine, parent = TrainingCheckpoint.save, tmp_path / "parent"
    expected = new_estimator(model).fit(network).embedding_

    def save(
        checkpoint: TrainingCheckpoint, state: TrainingState, tensors: dict[str, Tensor]
    ) -> None:
        if state.step == 3:
            harm(parent)
        genuine(checkpoint, state, tensors)

    monkeypatch.setattr(TrainingCheckpoint, "save", save)
    options: dict[str, Any] = {"checkpoint": parent / "training", "checkpoint_minutes": EVERY_STEP}
    estimator = new_estimator(model)
    if harm is remove:
        estimator.fit(network, **options)
        assert saved_step(parent / "training") == 8
    else:
        with logs("no checkpoint at step 3"):
            estimator.fit(network, **options)
    if harm is replace_by_a_file:
        assert parent.read_text() == "a file of somebody else"
    np.testing.assert_array_equal(estimator.embedding_, expected)
