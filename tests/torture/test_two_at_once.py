"""Of two processes that write one folder one is refused; none reads a mixture, and processes that
write different folders do not disturb each other."""

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
from vhe.data.readers.network_tables import write_tables
from vhe.errors import VHEError
from vhe.estimators import Estimator, load_model
from vhe.graph.training import CrossFitTrainer
from vhe.storage.folder import read_folder, write_folder
from vhe.storage.locks import folder_lock

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

FILES = 5


def content(number: int) -> dict[str, bytes]:
    return {f"{k}.bin": f"{number} ".encode() * 5000 for k in range(FILES)}


def in_processes(folder: Path, *tasks: Callable[[], Any]) -> list[Any]:
    """The results of functions that run at the same time, each in its own process."""
    children = []
    for number, task in enumerate(tasks):
        child = os.fork()
        if child == 0:
            result = folder / f"result{number}"
            try:
                result.write_text(json.dumps(task()))
                os._exit(0)
            except BaseException:
                result.write_text(traceback.format_exc())
            finally:
                os._exit(1)
        children.append(child)
    results = []
    for number, child in enumerate(children):
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        text = (folder / f"result{number}").read_text()
        assert status == 0, text
        results.append(json.loads(text))
    return results


def worker(folder: Path, number: int, seconds: float) -> dict[str, int]:
    """Write (odd numbers) or read a folder for some time; return counts."""
    counts = {"written": 0, "refused": 0, "read": 0}
    end, turn = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        turn += 1
        if number % 2:
            try:
                write_folder(folder, content(1000 * number + turn), "model")
                counts["written"] += 1
            except VHEError as error:
                if "another command is writing there" not in str(error):
                    raise
                counts["refused"] += 1
        else:
            files = read_folder(folder, "model")
            assert len(files) == FILES
            assert len(set(files.values())) == 1
            counts["read"] += 1
    return counts


def test_writers_and_readers(
    times: Callable[[int, int], int], figures: dict[str, Any], tmp_path: Path
) -> None:
    folder, seconds = tmp_path / "folders" / "model", times(2, 60)
    write_folder(folder, content(0), "model")
    found = in_processes(tmp_path, *(lambda n=n: worker(folder, n, seconds) for n in range(1, 5)))
    total = {key: sum(counts[key] for counts in found) for key in found[0]}
    figures |= total
    assert min(total["written"], total["read"]) > 0
    assert os.listdir(folder.parent) == ["model"]


def test_sibling_folders(part: int, count: int, figures: dict[str, Any], tmp_path: Path) -> None:
    """Folders of which one name is the beginning of the other are written at the same time."""
    pairs, writes, parent = count, 20, tmp_path / "folders"

    def write(name: str, offset: int) -> int:
        """Write a folder often; return how often it was not there afterwards."""
        lost = 0
        for turn in range(writes):
            expected = content(offset + turn)
            write_folder(parent / name, expected, "model")
            lost += read_folder(parent / name, "model") != expected
        return lost

    lost = 0
    for pair in range(pairs):
        names = f"m{pair}", f"m{pair}.b"
        tasks = (lambda n=name, k=k: write(n, 1000 * k) for k, name in enumerate(names))
        lost += sum(in_processes(tmp_path, *tasks))
    figures |= {"pairs": pairs, "writes": 2 * pairs * writes, "lost": lost}
    assert lost == 0
    assert len(os.listdir(parent)) == 2 * pairs


def test_a_lock_ends_with_its_process(tmp_path: Path) -> None:
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
def fit(
    network: TextNetwork, small_settings: dict[str, dict[str, Any]], tmp_path: Path
) -> list[str]:
    files = tmp_path / "vertices.csv", tmp_path / "edges.csv"
    write_tables(*files, network)
    arguments = ["fit", "--vertices", str(files[0]), "--edges", str(files[1])]
    settings = [f"{name}={value}" for name, value in small_settings["graph"].items()]
    return [*arguments, "--out", str(tmp_path / "model"), "--threads", "1", "--set", *settings]


def test_two_fits_of_one_folder(
    fit: list[str], tmp_path: Path, capfd: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second starts while the first is training."""
    genuine, second = CrossFitTrainer.step, []

    def step(trainer: CrossFitTrainer, number: int) -> dict[str, float]:
        if not second:
            second.append(None)
            second.append(main(fit))
        return genuine(trainer, number)

    monkeypatch.setattr(CrossFitTrainer, "step", step)
    assert main(fit) == 0
    assert second == [None, 2]
    message = capfd.readouterr().err
    assert f"{tmp_path / 'model'}: another command is writing there" in message
    assert len(load_model(tmp_path / "model").network_) == 60


def test_two_trainings_in_one_folder(
    network: TextNetwork, new_estimator: Callable[..., Estimator], model: str, tmp_path: Path
) -> None:
    folder = tmp_path / "training"
    with (
        folder_lock(folder, "lock"),
        pytest.raises(VHEError, match="another command is writing there"),
    ):
        new_estimator(model).fit(network, checkpoint=folder)
    new_estimator(model).fit(network, checkpoint=folder)
