"""Windows and macOS: what only Linux or POSIX has is not needed; simulated here."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from vhe.runtime import files
from vhe.storage.journal import Journal, read_journal

# Libraries first: they have alternatives of their own, chosen when they are imported.
WITHOUT_POSIX = """
import filelock, networkx, pandas, pyarrow.parquet, safetensors.numpy, scipy.sparse.linalg, torch
import sklearn.feature_extraction.text, sklearn.linear_model, threadpoolctl, rich.progress
import fastapi, uvicorn, openTSNE
import mmap, os, pathlib, signal, sys

for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
for name in (
    *("fork", "sched_getaffinity", "sysconf", "sysconf_names", "posix_fallocate", "getuid"),
    *("O_DIRECTORY", "killpg", "fchmod"),
):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGHUP", "SIGALRM", "SIGUSR1", "SIGPIPE"):
    delattr(signal, name)
for name in [name for name in dir(mmap) if name.startswith("MADV_")]:
    delattr(mmap, name)
exists = pathlib.Path.exists
pathlib.Path.exists = lambda path, **o: not str(path).startswith("/proc") and exists(path, **o)

from vhe.cli import main

table = pathlib.Path("table.csv")
rows = [f"v{k},topic{k % 3} word{k % 7},v{(k + 3) % 30} v{(k + 6) % 30}" for k in range(30)]
table.write_text("\\n".join(["id,text,references", *rows]), encoding="utf-8")
for command in (
    "doctor --json",
    "fit table.csv --out model --seed 0 --set max_steps=4 --set min_count=1 --threads 1",
    "fit table.csv --out pair --seed 0 --set steps=4 --set min_count=1 --model pair "
    "--threads 1",
    "suggest model --out links.csv",
    "explain model v0 v3 --json",
    "map model --out map.html",
    "doctor model",
):
    assert main(command.split()) == 0, command

import asyncio
from vhe.web import server
from vhe.web.app import make_app
from vhe.web.start import start_service

service = start_service(pathlib.Path("model"), writable=True)
make_app(service, token=None, hosts=None)
service.start()
server.reload_on_hangup(service)
service.close()
"""


def test_commands_work_without_what_only_posix_has(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_POSIX],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(files.__file__).parents[2])},
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "links.csv").read_text().count("v") > 30


def test_a_file_is_closed_before_it_is_renamed_where_locks_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows renames no open file, and flushes only files that are open for writing."""
    fcntl = pytest.importorskip("fcntl")
    monkeypatch.setattr(files, "fcntl", None)
    flushed = []

    def fsync(handle: int) -> None:
        flushed.append(fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE)

    def replace(path: Path, target: Path) -> None:
        open_files = {os.path.realpath(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd")}
        assert os.path.realpath(path) not in open_files
        os.replace(path, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", replace)
    with files.atomic_write(tmp_path / "a.txt") as temporary:
        temporary.write_text("content")
    assert (tmp_path / "a.txt").read_text() == "content"
    assert flushed == [os.O_RDWR]
    (tmp_path / ".a.txt.01234567.part").write_text("of a process that may still run")
    assert files.unfinished_files(tmp_path / "a.txt") == []


def test_the_journal_is_opened_in_binary_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes, genuine = [], os.open

    def opened(path: str, flags: int, mode: int = 0o777) -> int:
        modes.append(flags)
        return genuine(path, flags & ~(1 << 30), mode)

    monkeypatch.setattr("vhe.storage.journal.BINARY", 1 << 30)
    monkeypatch.setattr(os, "open", opened)
    journal = Journal(tmp_path / "journal")
    journal.append([{"add": "one\ntwo"}])
    journal.close()
    assert any(flags & 1 << 30 for flags in modes)
    assert read_journal(tmp_path / "journal")[0] == [{"add": "one\ntwo"}]
