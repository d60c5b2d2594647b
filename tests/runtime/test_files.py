"""Reading, atomic writing and the cache folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from vhe.errors import VHEError
from vhe.runtime.files import (
    atomic_write,
    cache_folder,
    read_bytes,
    read_text,
    unfinished_files,
)


def test_text_is_normalised_and_repairs_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\n\nthree")
    text = read_text(path)
    assert text.lines == ["one", "two", "", "three"]
    assert text.line_count == 4
    assert text.notes == (
        "a.txt: byte order mark (BOM) at the start dropped",
        "a.txt: 1 Windows line end (CRLF) converted",
    )


def test_pipes_and_devices_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(VHEError, match="is a pipe or a device; give a regular file"):
            read_bytes(path)
    with pytest.raises(VHEError, match="is a folder; give a file"):
        read_bytes(tmp_path)
    with pytest.raises(VHEError, match="does not exist"):
        read_bytes(tmp_path / "missing")


def test_a_failed_write_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.txt"
    with atomic_write(path) as temporary:
        temporary.write_text("first")
        assert not path.exists()
    assert path.read_text() == "first"

    def fail() -> None:
        with atomic_write(path) as temporary:
            temporary.write_text("second")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_text() == "first"
    assert [p.name for p in path.parent.iterdir()] == ["a.txt"]


def test_the_cache_folder_is_set_by_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("VHE_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("VHE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "vhe"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "vhe"


def test_an_unknown_home_folder_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("VHE_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.getuid", lambda: 4_000_000_000)  # a user without an entry in passwd
    with pytest.raises(VHEError, match="set VHE_CACHE"):
        cache_folder()


def test_files_of_killed_writers_are_deleted_exactly_theirs(tmp_path: Path) -> None:
    """The next writer of a file deletes what a killed one left, and nothing else."""
    killed = "import os, sys; from pathlib import Path; from vhe.runtime.files import atomic_write"
    killed += "\nwith atomic_write(Path(sys.argv[1])) as t: t.write_text('half'); os._exit(9)"
    subprocess.run([sys.executable, "-c", killed, str(tmp_path / "map.html")], check=False)
    (left,) = unfinished_files(tmp_path / "map.html")
    others = [".map.html.part", ".map.html.b.12345678.part", ".map.html.1234567x.part", "map.html2"]
    for name in others:
        (tmp_path / name).write_text("of somebody else")
    with atomic_write(tmp_path / "map.html") as first:
        assert not left.exists()
        first.write_text("first")
        assert unfinished_files(tmp_path / "map.html") == []  # it is being written
        with atomic_write(tmp_path / "map.html") as second:
            second.write_text("second")
        assert first.exists()
    assert (tmp_path / "map.html").read_text() == "first"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*others, "map.html"])
