"""A full disk leaves the old file of every command that writes one, and is one sentence."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vhe.cli import main
from vhe.estimators import VHE, load_model

resource = pytest.importorskip("resource")

ROOT = Path(__file__).parents[2]
LIMIT = 512  # bytes that a file can grow to
COMMANDS = [
    "map MODEL --out old.html",
    "map MODEL --out old.png",
    "map MODEL --out old.parquet",
    "report MODEL --skip-accuracy --out old.html",
    "explain MODEL v0 v5 --html old.html",
    *(f"suggest MODEL --all --out old.{e}" for e in ("csv", "tsv", "jsonl", "parquet")),
    *(f"suggest MODEL -k 60 --out old.{e}" for e in ("csv", "json", "md")),
    *(f"embed MODEL --out old.{e}" for e in ("csv", "txt", "npy", "parquet")),
]


@pytest.fixture(scope="module")
def model(fitted: VHE, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("full") / "model"
    fitted.save(folder)
    assert main(["map", str(folder), "--out", str(folder.parent / "map.parquet")]) == 0
    return folder


@pytest.fixture
def full_disk() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_leaves_the_old_file(
    command: str,
    model: Path,
    tmp_path: Path,
    full_disk: None,
    monkeypatch: pytest.MonkeyPatch,
    capfd: Any,
) -> None:
    if ".png" in command:
        pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    words = command.replace("MODEL", str(model)).split()
    old = Path(words[-1])
    old.write_text("the old content")
    assert main(words) == 2
    assert old.read_text() == "the old content"
    assert os.listdir(tmp_path) == [old.name]
    errors = capfd.readouterr().err.splitlines()
    assert len([line for line in errors if line.startswith("vhe: ")]) == 1
    assert old.name in errors[-1]
    assert "File too large" in errors[-1]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("closed", [False, True])
def test_messages_that_cannot_be_written_end_no_work(closed: bool, tmp_path: Path) -> None:
    """A log on a full disk, and a pipe whose reader has gone."""
    (tmp_path / "v.csv").write_text(
        "id,text\n" + "".join(f"{k},red fox {k % 3}\n" for k in range(9))
    )
    (tmp_path / "e.csv").write_text(
        "source,target\n" + "".join(f"{k},{(k + 3) % 9}\n" for k in range(9))
    )
    command = [sys.executable, "-m", "vhe", "fit", "--vertices", "v.csv", "--edges", "e.csv"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    if closed:
        reader, writer = os.pipe()
        os.close(reader)
    else:
        writer = os.open("/dev/full", os.O_WRONLY)
    done = subprocess.run(
        [*command, "--out", "model"], cwd=tmp_path, env=environment, stderr=writer, timeout=120
    )
    os.close(writer)
    assert done.returncode == 0
    load_model(tmp_path / "model")
