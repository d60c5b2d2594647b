"""A full disk leaves the old file of every command that writes one, and is one sentence."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vhe.cli import main
from vhe.estimators import VHE

resource = pytest.importorskip("resource")

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
