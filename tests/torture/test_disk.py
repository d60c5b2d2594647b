"""When the disk is full, read-only or gone, training ends with one sentence, or goes on; what was
kept last can be read, and with room on the disk it goes on to the same weights."""

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

from vhe.data.network import TextNetwork
from vhe.errors import VHEError
from vhe.estimators import VHE
from vhe.pair.training import Trainer
from vhe.storage.folder import MANIFEST, read_folder, write_folder

resource = pytest.importorskip("resource")

SETTINGS: dict[str, Any] = {"steps": 8, "validate_every": 4, "checkpoint_minutes": 1e-9}


@contextlib.contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Inside, no file can grow beyond ``size`` bytes: the write fails as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def readable(folder: Path) -> int:
    """The step of the training that is kept in a folder; it has to be readable."""
    return int(json.loads(read_folder(folder, "training")["training.json"])["state"]["step"])


def test_disk_full(
    network: TextNetwork,
    new: Callable[..., VHE],
    times: Callable[[int, int], int],
    figures: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """From a random step on, files can only grow to a random size."""
    wanted = new(**SETTINGS).fit(network).embedding_
    rounds, draw = times(4, 50), random.Random(3)
    survived = 0
    for k in range(rounds):
        folder, full_at = tmp_path / f"training{k}", draw.randrange(1, 8)
        honest, kept = Trainer.keep, [0]

        def keep(trainer: Trainer, full_at=full_at, honest=honest, kept=kept) -> None:
            full = trainer.state.step >= full_at
            with file_size_limit(draw.randrange(20_000)) if full else contextlib.nullcontext():
                honest(trainer)
            kept.append(trainer.state.step)

        with monkeypatch.context() as patch:
            patch.setattr(Trainer, "keep", keep)
            with pytest.raises(VHEError, match="File too large") as refused:
                new(**SETTINGS).fit(network, checkpoint=folder)
        said = str(refused.value)
        assert str(folder) in said
        assert "\n" not in said
        resume = kept[-1] > 0
        assert os.listdir(tmp_path) == ([folder.name] if resume else [])  # no rubbish is left
        if resume:
            assert readable(folder) == kept[-1]
        again = new(**SETTINGS).fit(network, checkpoint=folder, resume=resume)
        survived += bool(np.array_equal(again.embedding_, wanted))
        shutil.rmtree(folder)
    figures |= {"rounds": rounds, "survived": survived}
    assert survived == rounds


def test_a_file_system_that_is_full(tmp_path: Path) -> None:
    """A real one, where it may be mounted."""
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("needs the right to mount")
    try:
        write_folder(place / "model", {"a": b"a" * 60_000}, "model")
        with pytest.raises(VHEError, match="No space left on device"):
            write_folder(place / "model", {"a": b"b" * 300_000}, "model")
        assert read_folder(place / "model", "model") == {"a": b"a" * 60_000}
        assert os.listdir(place) == ["model"]
        write_folder(place / "model", {"a": b"c" * 60_000}, "model")
        subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
        with pytest.raises(VHEError, match="Read-only file system"):
            write_folder(place / "model", {"a": b"d"}, "model")
        assert read_folder(place / "model", "model") == {"a": b"c" * 60_000}
    finally:
        subprocess.run(["umount", str(place)], check=True)


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


def remove(place: Path) -> None:
    shutil.rmtree(place)


def replace_by_a_file(place: Path) -> None:
    shutil.rmtree(place)
    place.write_text("somebody's")


def take_the_manifest(place: Path) -> None:
    (place / "kept" / MANIFEST).unlink()


@pytest.mark.parametrize("harm", [remove, replace_by_a_file, take_the_manifest])
def test_the_folder_is_taken_away(
    network: TextNetwork,
    new: Callable[..., VHE],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    harm: Callable[[Path], None],
) -> None:
    """A folder that is gone is made anew; what is somebody else's is left alone, and said."""
    honest, place = Trainer.keep, tmp_path / "place"

    def keep(trainer: Trainer) -> None:
        if trainer.state.step == 3:
            harm(place)
        honest(trainer)

    monkeypatch.setattr(Trainer, "keep", keep)
    model = new(**SETTINGS)
    if harm is remove:
        model.fit(network, checkpoint=place / "kept")
        assert readable(place / "kept") == 8
    else:
        with pytest.raises(VHEError, match="kept"):
            model.fit(network, checkpoint=place / "kept")
    if harm is replace_by_a_file:
        assert place.read_text() == "somebody's"
