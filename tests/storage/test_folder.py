"""A folder is written completely or not at all, and read as it was written or refused."""

import builtins
import errno
import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vhe
from vhe.errors import VHEError
from vhe.storage.arrays import array_file, read_arrays
from vhe.storage.folder import (
    FORMAT,
    MANIFEST,
    Content,
    check_replaceable,
    discard,
    json_bytes,
    leftovers,
    open_folder,
    read_folder,
    write_folder,
)
from vhe.storage.keys import decode_key, encode_key
from vhe.storage.locks import folder_lock

SOURCE = Path(vhe.__file__).parents[1]
OLD = {"a.json": b'{"old": true}\n', "b.bin": bytes(range(256))}
NEW = {"a.json": b'{"new": true}\n', "c.bin": b""}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files OLD."""
    write_folder(tmp_path / "model", OLD, "model")
    return tmp_path / "model"


def refusal(folder: Path, kind: str = "model") -> str:
    """The error message of reading the folder: one line that names the folder."""
    with pytest.raises(VHEError) as refused:
        read_folder(folder, kind)
    message = str(refused.value)
    assert "\n" not in message
    assert str(folder) in message
    return message


def change_manifest(folder: Path, change: Callable[[dict], None]) -> None:
    manifest = json.loads((folder / MANIFEST).read_bytes())
    change(manifest)
    (folder / MANIFEST).write_bytes(json_bytes(manifest))


# --- writing


@pytest.mark.parametrize("name", ["model", "deep/er/model", ".hidden", "with space é"])
def test_read_returns_what_was_written(tmp_path: Path, name: str) -> None:
    write_folder(tmp_path / name, OLD, "model")
    assert read_folder(tmp_path / name, "model") == OLD
    write_folder(tmp_path / name, NEW, "training")
    assert read_folder(tmp_path / name, "training") == NEW
    assert sorted(os.listdir(tmp_path / name)) == sorted([*NEW, MANIFEST])
    assert os.listdir((tmp_path / name).parent) == [Path(name).name]


def test_the_same_files_give_the_same_manifest(tmp_path: Path) -> None:
    write_folder(tmp_path / "one", OLD, "model")
    write_folder(tmp_path / "two", dict(reversed(OLD.items())), "model")
    assert (tmp_path / "one" / MANIFEST).read_bytes() == (tmp_path / "two" / MANIFEST).read_bytes()


@pytest.mark.parametrize("call", [1, 2, 3])
@pytest.mark.parametrize("name", ["fsync", "rename", "open", "mkdir"])
def test_a_failing_system_call(
    folder: Path, name: str, call: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first, second or third call of one kind fails with "no space left on device"."""
    module = builtins if name == "open" else os
    real, calls = getattr(module, name), 0

    def fails(*arguments, **options):
        nonlocal calls
        calls += 1
        if calls == call:
            raise OSError(28, "No space left on device")
        return real(*arguments, **options)

    message = ""
    with monkeypatch.context() as patch:
        patch.setattr(module, name, fails)
        try:
            write_folder(folder, NEW, "model")
        except VHEError as error:
            message = str(error)
    assert message == "" or ("No space left on device" in message and str(folder) in message)
    # the writer itself restores the old folder, not the next reader
    assert os.listdir(folder.parent) == [folder.name]
    assert read_folder(folder, "model") == (OLD if message else NEW)


KILLED = """
import os, sys, threading
from pathlib import Path
from vhe.storage.folder import read_folder, write_folder

OLD, NEW, base = {old!r}, {new!r}, Path(sys.argv[1])
EVENTS = ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir")
deadline, seen, armed = None, 0, False

def watch(event, arguments):
    global seen
    if armed and event in EVENTS:
        if seen == deadline:
            os._exit(9)
        seen += 1

sys.addaudithook(watch)
for deadline in range(200):
    folder = base / str(deadline) / "model"
    write_folder(folder, OLD, "model")
    child = os.fork()
    if child == 0:
        armed = True
        write_folder(folder, NEW, "model")
        os._exit(0)
    killed = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    found = read_folder(folder, "model")
    assert found == NEW or (killed and found == OLD), (deadline, found)
    print("old" if found == OLD else "new")
    write_folder(folder, NEW, "model")  # removes what the killed writer left
    assert read_folder(folder, "model") == NEW
    assert not (folder.parent / ".model.previous").exists()
    if not killed:
        break
else:
    raise AssertionError("the writer was killed every time")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_at_any_moment(tmp_path: Path) -> None:
    """The process exits without clean-up before each of its calls to the file system."""
    script = KILLED.format(old=OLD, new=NEW)
    run = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    found = run.stdout.split()
    # the old content up to some call and the new content after it; both occur
    assert found == sorted(found, reverse=True)
    assert set(found) == {"old", "new"}


@pytest.mark.parametrize("content", ["file", "folder"])
def test_files_of_others_are_not_replaced(tmp_path: Path, content: str) -> None:
    """A mistyped path must not destroy data."""
    place = tmp_path / "work"
    if content == "file":
        place.write_text("text")
    else:
        place.mkdir()
        (place / "thesis.tex").write_text("text")
    with pytest.raises(VHEError, match="work"):
        write_folder(place, NEW, "model")
    file = place if content == "file" else place / "thesis.tex"
    assert file.read_text() == "text"
    assert os.listdir(tmp_path) == ["work"]


def test_an_empty_folder_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    write_folder(tmp_path / "model", NEW, "model")
    assert read_folder(tmp_path / "model", "model") == NEW


def test_a_symbolic_link_to_a_folder_remains_a_link(tmp_path: Path) -> None:
    write_folder(tmp_path / "run-1", OLD, "model")
    (tmp_path / "latest").symlink_to("run-1")
    for _ in range(3):
        write_folder(tmp_path / "latest", NEW, "model")
    assert (tmp_path / "latest").is_symlink()
    assert read_folder(tmp_path / "run-1", "model") == NEW
    assert sorted(os.listdir(tmp_path)) == ["latest", "run-1"]


def test_a_path_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(VHEError, match="cannot be written"):
        write_folder(tmp_path / "file" / "model", NEW, "model")


def test_a_file_system_without_locks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")

    def no_locks(handle: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    write_folder(folder, NEW, "model")
    assert read_folder(folder, "model") == NEW
    assert os.listdir(folder.parent) == [folder.name]


def test_a_file_that_is_written_by_a_function(folder: Path) -> None:
    def write(path: Path) -> None:
        path.write_bytes(b"streamed")

    write_folder(folder, {"a.json": b"{}", "c.bin": write}, "model")
    assert read_folder(folder, "model") == {"a.json": b"{}", "c.bin": b"streamed"}


def test_a_function_that_fails_leaves_the_old_folder(folder: Path) -> None:
    def disk_full(path: Path) -> None:
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    def interrupted(path: Path) -> None:
        path.write_bytes(b"half")
        raise KeyboardInterrupt

    cases: list[tuple[Content, type[BaseException]]] = [
        (disk_full, VHEError),
        (array_file({"a": np.array([None])}), VHEError),
        (interrupted, KeyboardInterrupt),
    ]
    for write, error in cases:
        with pytest.raises(error):
            write_folder(folder, NEW | {"d.bin": write}, "model")
        assert read_folder(folder, "model") == OLD
        assert os.listdir(folder.parent) == [folder.name]


def test_arrays_on_a_full_disk(folder: Path) -> None:
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(VHEError, match="File too large"):
            write_folder(folder, {"a.bin": array_file({"a": np.ones(1000)})}, "model")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert read_folder(folder, "model") == OLD


# --- siblings and left-over temporary folders


@pytest.mark.parametrize("sibling", ["model.b", "model.0123abcd", "model.part", "xmodel", "mod"])
def test_temporary_folders_of_siblings_are_not_deleted(folder: Path, sibling: str) -> None:
    """Another process may be writing the sibling at this moment."""
    theirs = folder.with_name(f".{sibling}.89abcdef.part")
    own = folder.with_name(".model.89abcdef.part")
    for path in (theirs, own):
        path.mkdir()
        (path / "file").write_bytes(b"")
    write_folder(folder, NEW, "model")
    assert (theirs / "file").exists()
    assert not own.exists()  # left by a writer of this folder that was killed


@pytest.mark.parametrize("name", ["m.del", "m+del", "[model]"])
def test_special_characters_in_the_name(tmp_path: Path, name: str) -> None:
    write_folder(tmp_path / name, OLD, "model")
    for path in (f".{name}.89abcdef.part", ".mxdel.89abcdef.part"):
        (tmp_path / path).mkdir()
    write_folder(tmp_path / name, NEW, "model")
    assert sorted(os.listdir(tmp_path)) == sorted([name, ".mxdel.89abcdef.part"])


def test_left_over_folders_are_those_of_killed_writers_of_this_folder(folder: Path) -> None:
    own = [folder.with_name(name) for name in (".model.89abcdef.part", ".model.previous")]
    others = [".model.b.89abcdef.part", ".model.b.previous", ".model.part", ".model.89ABCDEF.part"]
    for path in (*own, *map(folder.with_name, others)):
        path.mkdir()
        (path / MANIFEST).write_bytes(b"")
    before = sorted(os.listdir(folder.parent))
    assert sorted(leftovers(folder)) == sorted(own)
    assert sorted(os.listdir(folder.parent)) == before
    with folder_lock(folder, "writing"):  # they may be those of the holder of the lock
        assert leftovers(folder) == []
    write_folder(folder, NEW, "model")
    assert leftovers(folder) == []
    assert sorted(os.listdir(folder.parent)) == sorted(["model", *others])


def test_the_previous_content_of_a_missing_folder_is_not_left_over(folder: Path) -> None:
    folder.rename(folder.with_name(".model.previous"))
    assert leftovers(folder) == []
    assert read_folder(folder, "model") == OLD


def test_writing_two_siblings_at_once(tmp_path: Path) -> None:
    """The first writes while the second is half-way through."""

    def write_sibling(path: Path) -> None:
        write_folder(tmp_path / "m", OLD, "model")
        path.write_bytes(b"streamed")

    write_folder(tmp_path / "m.b", {"a.bin": b"a", "z.bin": write_sibling}, "model")
    assert read_folder(tmp_path / "m.b", "model") == {"a.bin": b"a", "z.bin": b"streamed"}
    assert read_folder(tmp_path / "m", "model") == OLD


# --- what may be replaced

replacements = pytest.mark.parametrize(
    "replace", [check_replaceable, lambda folder: write_folder(folder, NEW, "model")]
)


def content_of(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


@replacements
@pytest.mark.parametrize("foreign", ["thesis.tex", ".hidden", "sub/notes.txt", "empty/"])
def test_files_that_the_manifest_does_not_list(
    folder: Path, foreign: str, replace: Callable[[Path], None]
) -> None:
    path = folder / foreign
    (path if foreign.endswith("/") else path.parent).mkdir(exist_ok=True)
    if not foreign.endswith("/"):
        path.write_text("text")
    before = content_of(folder)
    with pytest.raises(VHEError, match="does not list") as refused:
        replace(folder)
    message = str(refused.value)
    assert foreign.split("/")[0] in message
    assert str(folder) in message
    assert content_of(folder) == before
    assert os.listdir(folder.parent) == [folder.name]


@replacements
@pytest.mark.parametrize("raw", [b"", b"{}", b'{"files": {}}', b"[1, 2]", b"x" * 2_000_000])
def test_any_file_named_like_a_manifest_is_no_permission(
    tmp_path: Path, raw: bytes, replace: Callable[[Path], None]
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / MANIFEST).write_bytes(raw)
    with pytest.raises(VHEError, match="damaged"):
        replace(tmp_path / "work")
    assert content_of(tmp_path / "work") == {MANIFEST: raw}


@replacements
def test_a_folder_in_the_place_of_a_listed_file(
    folder: Path, replace: Callable[[Path], None]
) -> None:
    (folder / "a.json").unlink()
    (folder / "a.json").mkdir()
    (folder / "a.json" / "thesis.tex").write_text("text")
    with pytest.raises(VHEError, match=r"a\.json"):
        replace(folder)
    assert (folder / "a.json" / "thesis.tex").exists()


def test_a_damaged_or_older_folder_may_be_replaced(folder: Path) -> None:
    (folder / "a.json").unlink()
    (folder / "b.bin").write_bytes(b"")
    change_manifest(folder, lambda manifest: manifest.update(format=1))
    check_replaceable(folder)
    write_folder(folder, NEW, "model")
    assert read_folder(folder, "model") == NEW


def test_discard_deletes_only_what_was_written(folder: Path) -> None:
    (folder / "thesis.tex").write_text("text")
    discard(folder)
    assert (folder / "thesis.tex").exists()
    (folder / "thesis.tex").unlink()
    discard(folder)
    assert os.listdir(folder.parent) == []
    discard(folder)  # nothing to delete
    assert os.listdir(folder.parent) == []


# --- the check before the work


def test_the_check_changes_nothing(folder: Path) -> None:
    status = folder.stat()
    check_replaceable(folder)
    assert read_folder(folder, "model") == OLD
    assert folder.stat().st_ino == status.st_ino
    (folder.parent / "empty").mkdir()
    check_replaceable(folder.parent / "empty")
    check_replaceable(folder.parent / "new")
    assert sorted(os.listdir(folder.parent)) == ["empty", "model"]
    assert os.listdir(folder.parent / "empty") == []


@pytest.mark.parametrize("length", range(238, 256))
def test_the_check_and_the_write_agree_on_long_names(tmp_path: Path, length: int) -> None:
    """A temporary name is longer than the name of the folder."""
    folder = tmp_path / ("m" * length)
    try:
        check_replaceable(folder)
        possible = True
    except VHEError as error:
        assert "File name too long" in str(error)  # noqa: PT017
        possible = False
    assert possible == (length <= 240)
    if possible:
        write_folder(folder, NEW, "model")
        assert read_folder(folder, "model") == NEW
    else:
        assert os.listdir(tmp_path) == []
        with pytest.raises(VHEError, match="File name too long"):
            write_folder(folder, NEW, "model")
        assert "no such model folder" in refusal(folder)


@pytest.mark.parametrize("filled", [False, True])
def test_a_mount_point_is_refused_by_the_check(tmp_path: Path, filled: bool) -> None:
    folder = tmp_path / "volume"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("needs the right to mount")
    try:
        if filled:
            write_folder(tmp_path / "model", OLD, "model")
            shutil.copytree(tmp_path / "model", folder, dirs_exist_ok=True)
            shutil.rmtree(tmp_path / "model")
        before = content_of(folder)
        with pytest.raises(VHEError, match="mount point"):
            check_replaceable(folder)
        assert content_of(folder) == before
        assert os.listdir(tmp_path) == ["volume"]
        check_replaceable(folder / "model")  # a folder inside it
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("number", [1, 16, 18, 30])
def test_the_check_reports_why_the_folder_cannot_be_renamed(
    folder: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*arguments: object, **options: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", fails)
        for path in (folder, folder.with_name("new")):
            with pytest.raises(VHEError, match=os.strerror(number)) as refused:
                check_replaceable(path)
            assert str(path) in str(refused.value)
    assert read_folder(folder, "model") == OLD
    assert os.listdir(folder.parent) == [folder.name]


def test_the_check_refuses_a_folder_that_is_being_written(folder: Path) -> None:
    with folder_lock(folder, "writing"), pytest.raises(VHEError, match="another command"):
        check_replaceable(folder)


def test_a_folder_that_was_interrupted_is_restored_by_the_check(folder: Path) -> None:
    folder.rename(folder.with_name(".model.previous"))
    check_replaceable(folder)
    assert os.listdir(folder.parent) == ["model"]
    assert read_folder(folder, "model") == OLD


# --- access to single files


def test_files_are_verified_when_they_are_accessed(folder: Path) -> None:
    damaged = bytearray(OLD["b.bin"])
    damaged[7] ^= 1
    (folder / "b.bin").write_bytes(damaged)
    with open_folder(folder, "model") as opened:
        assert sorted(opened) == sorted(OLD)
        assert opened.read("a.json") == OLD["a.json"]
        assert opened.path("a.json").read_bytes() == OLD["a.json"]
        for _ in range(2):
            with pytest.raises(VHEError, match=r"b\.bin: the file has changed"):
                opened.read("b.bin")
            with pytest.raises(VHEError, match=r"b\.bin: the file has changed"):
                opened.path("b.bin")
        with pytest.raises(VHEError, match=r"no c\.bin"):
            opened.read("c.bin")


def test_an_open_folder_stays_as_it_was_when_it_is_replaced(folder: Path) -> None:
    with open_folder(folder, "model") as opened:
        write_folder(folder, NEW, "model")
        assert {name: opened.read(name) for name in opened} == OLD
        if Path("/proc/self/fd").exists():
            assert {name: opened.path(name).read_bytes() for name in opened} == OLD
    assert read_folder(folder, "model") == NEW


def test_a_folder_that_is_replaced_while_it_is_opened(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files with the same names and sizes, so that only their checksums differ."""
    from vhe.storage import folder as module

    genuine, calls = module._open_regular, 0
    new = {name: bytes(len(data)) for name, data in OLD.items()}

    def open_regular(path: Path) -> object:
        nonlocal calls
        calls += 1
        if calls == 3:  # between the first and the second file
            monkeypatch.setattr(module, "_open_regular", genuine)
            write_folder(folder, new, "model")
        return genuine(path)

    monkeypatch.setattr(module, "_open_regular", open_regular)
    assert read_folder(folder, "model") == new


def test_no_file_stays_open(folder: Path) -> None:
    if not Path("/proc/self/fd").exists():
        pytest.skip("needs /proc")
    before = len(os.listdir("/proc/self/fd"))
    read_folder(folder, "model")
    (folder / "b.bin").write_bytes(b"shorter")
    for _ in range(3):
        refusal(folder)
    assert len(os.listdir("/proc/self/fd")) == before


# --- reading a folder that was changed


@pytest.mark.parametrize("name", OLD)
def test_any_flipped_bit_is_detected(folder: Path, name: str) -> None:
    data = OLD[name]
    for place in range(0, len(data), max(1, len(data) // 40)):
        for bit in (0, 7):
            damaged = bytearray(data)
            damaged[place] ^= 1 << bit
            (folder / name).write_bytes(damaged)
            assert "changed" in refusal(folder)
    (folder / name).write_bytes(data)
    assert read_folder(folder, "model") == OLD


def test_any_flipped_bit_of_the_manifest(folder: Path) -> None:
    """The folder is refused, or the content is the same."""
    raw = (folder / MANIFEST).read_bytes()
    refused = 0
    for place in range(len(raw)):
        damaged = bytearray(raw)
        damaged[place] ^= 1 << (place % 8)
        (folder / MANIFEST).write_bytes(damaged)
        try:
            assert read_folder(folder, "model") == OLD
        except VHEError:
            refused += 1
    assert refused > 0.8 * len(raw)


@pytest.mark.parametrize("name", [*OLD, MANIFEST])
@pytest.mark.parametrize("size", [0, 1, 10])
def test_a_truncated_file(folder: Path, name: str, size: int) -> None:
    (folder / name).write_bytes((folder / name).read_bytes()[:size])
    refusal(folder)


@pytest.mark.parametrize("name", [*OLD, MANIFEST])
def test_a_longer_file(folder: Path, name: str) -> None:
    with open(folder / name, "ab") as file:
        file.write(b"x")
    refusal(folder)


@pytest.mark.parametrize("name", [*OLD, MANIFEST])
def test_a_missing_file(folder: Path, name: str) -> None:
    (folder / name).unlink()
    assert name in refusal(folder)


@pytest.mark.parametrize("name", OLD)
def test_a_folder_instead_of_a_file(folder: Path, name: str) -> None:
    (folder / name).unlink()
    (folder / name).mkdir()
    assert name in refusal(folder)


@pytest.mark.parametrize("name", [*OLD, MANIFEST])
def test_a_symbolic_link_is_not_followed(folder: Path, name: str) -> None:
    (folder / name).rename(folder.parent / "elsewhere")
    (folder / name).symlink_to(folder.parent / "elsewhere")
    assert name in refusal(folder)


@pytest.mark.parametrize(
    "name",
    ["../secret", "..", ".", "", "/etc/hostname", "sub/file", "..\\secret", "a\0b", "b" * 300],
)
def test_a_path_outside_the_folder(folder: Path, name: str) -> None:
    (folder.parent / "secret").write_bytes(OLD["a.json"])

    def add(manifest: dict) -> None:
        manifest["files"][name] = manifest["files"]["a.json"]

    change_manifest(folder, add)
    refusal(folder)


def test_a_newer_format(folder: Path) -> None:
    change_manifest(folder, lambda manifest: manifest.update(format=FORMAT + 1))
    assert "newer" in refusal(folder)


@pytest.mark.parametrize("value", [0, -1, True, 2.0])
def test_an_invalid_format(folder: Path, value: object) -> None:
    change_manifest(folder, lambda manifest: manifest.update(format=value))
    assert "damaged" in refusal(folder)


def test_the_format_of_the_first_edition(folder: Path) -> None:
    change_manifest(folder, lambda manifest: manifest.update(format=1))
    expected = f"{folder}: written by the first edition of vhe (format 1); fit the model again"
    assert refusal(folder) == expected


def test_another_kind(folder: Path) -> None:
    message = refusal(folder, "training")
    assert "model folder" in message
    assert "training folder" in message


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\0\xff\xfe",
        b"[]",
        b"null",
        b"7",
        b'"a"',
        b"{}",
        b"{" * 100_000,
        b"[" * 100_000,
        b'{"format": 2}',
        b'{"format": "1", "kind": "model", "files": {}}',
        b'{"format": null, "kind": "model", "files": {}}',
        b'{"format": NaN, "kind": "model", "files": {}}',
        b'{"format": 2, "kind": "model", "files": null}',
        b'{"format": 2, "kind": "model", "files": 3}',
        b'{"format": 2, "kind": "model", "files": ["a.json"]}',
        b'{"format": 2, "kind": "model", "files": [[1, {"bytes": 1, "sha256": ""}]]}',
        b'{"format": 2, "kind": "model", "files": {"a.json": null}}',
        b'{"format": 2, "kind": "model", "files": {"a.json": []}}',
        b'{"format": 2, "kind": "model", "files": {"a.json": {"bytes": 14}}}',
        b'{"format": 2, "kind": "model", "files": {"a.json": {"bytes": "14", "sha256": ""}}}',
        b'{"format": 2, "kind": "model", "files": {"a.json": {"bytes": 14, "sha256": 0}}}',
        b'{"format": 2, "kind": "model", "files": {"a.json": {"bytes": 14, "sha256": ""}}}',
        b'{"format": 2, "kind": "model", "files": {"\\ud800": {"bytes": 14, "sha256": ""}}}',
        b'{"format": 1' + b"0" * 5000 + b', "kind": "model", "files": {}}',
    ],
)
def test_an_invalid_manifest(folder: Path, raw: bytes) -> None:
    (folder / MANIFEST).write_bytes(raw)
    refusal(folder)


@settings(max_examples=40)
@given(raw=st.binary(max_size=80) | st.text(max_size=80).map(lambda s: s.encode("utf-8", "ignore")))
def test_random_bytes_are_not_a_manifest(
    raw: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp() / "garbage"
    folder.mkdir(exist_ok=True)
    (folder / MANIFEST).write_bytes(raw)
    refusal(folder)


def test_no_folder(tmp_path: Path) -> None:
    assert "no such model folder" in refusal(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    assert MANIFEST in refusal(tmp_path / "empty")
    (tmp_path / "file").write_bytes(b"")
    refusal(tmp_path / "file")


def test_a_copied_folder_is_read(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "copy")
    assert read_folder(tmp_path / "copy", "model") == OLD


# --- arrays


def test_arrays_are_saved_independently_of_their_order(tmp_path: Path) -> None:
    some = {
        "b": np.arange(6, dtype=np.float32).reshape(2, 3),
        "a": np.array(7),
        "c": np.zeros((0, 4)),
        "d": np.arange(3, dtype=np.int32),
    }
    array_file(some)(tmp_path / "tensors")
    array_file(dict(reversed(some.items())))(tmp_path / "again")
    assert (tmp_path / "tensors").read_bytes() == (tmp_path / "again").read_bytes()
    found = read_arrays(tmp_path / "tensors", "here")
    assert found.keys() == some.keys()
    for name, value in some.items():
        assert found[name].dtype == value.dtype
        np.testing.assert_array_equal(found[name], value)


@pytest.mark.parametrize("keep", [0, 4, 8, 20, -1])
def test_invalid_safetensors_are_refused(keep: int, tmp_path: Path) -> None:
    path = tmp_path / "tensors"
    array_file({"a": np.ones(10)})(path)
    data = path.read_bytes()
    for invalid in (data[:keep], b"\xff" * len(data)):
        path.write_bytes(invalid)
        with pytest.raises(VHEError, match="here"):
            read_arrays(path, "here")


# --- ids and labels

plain_keys = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.binary(max_size=20)
)
keys = st.recursive(plain_keys, lambda inner: st.lists(inner, max_size=3).map(tuple))


def alike(one: object, other: object) -> bool:
    """Equal with equal types, recursively; NaN equals NaN, and 0.0 differs from -0.0."""
    if type(one) is not type(other):
        return False
    if isinstance(one, tuple):
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(alike(a, b) for a, b in pairs)
    if isinstance(one, float):
        same_nan = math.isnan(one) and math.isnan(other)
        return same_nan or (one == other and math.copysign(1, one) == math.copysign(1, other))
    return one == other


@given(keys)
def test_keys_round_trip(key: object) -> None:
    assert alike(decode_key(encode_key(key)), key)
    assert alike(decode_key(json.loads(json.dumps(encode_key(key)))), key)


@given(keys, keys)
def test_different_keys_stay_different(one: object, other: object) -> None:
    if not alike(one, other):
        assert json.dumps(encode_key(one)) != json.dumps(encode_key(other))


@pytest.mark.parametrize(
    ("value", "plain"),
    [(np.int64(3), 3), (np.float64(0.1), 0.1), (np.bool_(True), True), (np.str_("a"), "a")],
)
def test_numpy_scalars_become_python_scalars(value: np.generic, plain: object) -> None:
    assert alike(decode_key(encode_key(value)), plain)
    assert alike(decode_key(encode_key((value,))), (plain,))


@pytest.mark.parametrize("key", [frozenset([1]), date(2019, 12, 8), 1j, object, ("a", date.max)])
def test_a_key_that_cannot_be_saved(key: object) -> None:
    with pytest.raises(VHEError) as refused:
        encode_key(key)
    message = str(refused.value)
    assert "cannot be saved" in message
    assert "\n" not in message
    assert repr(key[1] if isinstance(key, tuple) else key) in message
