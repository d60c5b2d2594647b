"""Two commands that write one folder at once: one wins, the other says so; none reads a mixture."""

import json
import os
import signal
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vhe.cli import main
from vhe.data.network import TextNetwork
from vhe.data.readers.files import write_files
from vhe.errors import VHEError
from vhe.estimators import VHE
from vhe.pair.training import Trainer
from vhe.storage.folder import folder_lock, read_folder, write_folder

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

FILES = 5


def content(name: int) -> dict[str, bytes]:
    return {f"{k}.bin": f"{name} ".encode() * 5000 for k in range(FILES)}


def worker(folder: Path, name: int, seconds: float) -> dict[str, int]:
    """Write (an odd name) or read for a while; what happened how often."""
    counts = {"written": 0, "told": 0, "read": 0}
    end, turn = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        turn += 1
        if name % 2:
            try:
                write_folder(folder, content(1000 * name + turn), "model")
                counts["written"] += 1
            except VHEError as error:
                if "another command is writing there" not in str(error):
                    raise
                counts["told"] += 1
        else:
            files = read_folder(folder, "model")
            assert len(files) == FILES
            assert len(set(files.values())) == 1
            counts["read"] += 1
    return counts


def test_writers_and_readers(
    times: Callable[[int, int], int], figures: dict[str, Any], tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    write_folder(folder, content(0), "model")
    children = []
    for name in range(1, 5):
        child = os.fork()
        if child == 0:
            try:
                told = worker(folder, name, times(2, 60))
                (tmp_path / f"told{name}").write_text(json.dumps(told))
                os._exit(0)
            except BaseException:
                (tmp_path / f"told{name}").write_text(traceback.format_exc())
            finally:
                os._exit(1)
        children.append(child)
    for name, child in enumerate(children, start=1):
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status == 0, (tmp_path / f"told{name}").read_text()
    told = [json.loads((tmp_path / f"told{name}").read_text()) for name in range(1, 5)]
    total = {key: sum(counts[key] for counts in told) for key in told[0]}
    figures |= total
    assert min(total["written"], total["read"]) > 0
    assert sorted(path.name for path in tmp_path.iterdir() if "told" not in path.name) == ["model"]


def test_a_claim_ends_with_its_process(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with folder_lock(folder, "lock"):
            os.write(writing, b"x")
            time.sleep(100)
    os.read(reading, 1)
    try:
        with (
            pytest.raises(VHEError, match="another command is writing there"),
            folder_lock(folder, "lock"),
        ):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with folder_lock(folder, "lock"):
        pass
    assert os.listdir(tmp_path) == []


@pytest.fixture
def fit(network: TextNetwork, tiny: dict[str, Any], tmp_path: Path) -> list[str]:
    files = tmp_path / "vertices.csv", tmp_path / "edges.csv"
    write_files(*files, network)
    arguments = ["fit", "--vertices", str(files[0]), "--edges", str(files[1])]
    settings = [f"{name}={value}" for name, value in (tiny | {"steps": 2}).items()]
    return [*arguments, "--out", str(tmp_path / "model"), "--threads", "1", "--set", *settings]


def test_two_fits_of_one_folder(
    fit: list[str], tmp_path: Path, capfd: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second comes while the first is training."""
    honest, second = Trainer._step, []

    def step(trainer: Trainer, number: int) -> dict[str, float]:
        if not second:
            second.append(None)
            second.append(main(fit))
        return honest(trainer, number)

    monkeypatch.setattr(Trainer, "_step", step)
    assert main(fit) == 0
    assert second == [None, 2]
    said = capfd.readouterr().err
    assert f"{tmp_path / 'model'}: another command is writing there" in said
    assert len(VHE.load(tmp_path / "model").network_) == 60


def test_two_trainings_in_one_folder(
    network: TextNetwork, hasty: Callable[..., VHE], tmp_path: Path
) -> None:
    with (
        folder_lock(tmp_path / "kept", "lock"),
        pytest.raises(VHEError, match="another command is writing there"),
    ):
        hasty().fit(network, checkpoint=tmp_path / "kept")
    hasty().fit(network, checkpoint=tmp_path / "kept")
