"""A folder is there whole or as it was before, whatever stops its writer; and whatever happens to
it afterwards, it is either read as it was written or refused."""

import builtins
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
from vhe.storage.folder import (
    FORMAT,
    MANIFEST,
    decode_key,
    encode_key,
    json_bytes,
    read_folder,
    read_tensors,
    tensor_bytes,
    write_folder,
)

SOURCE = Path(vhe.__file__).parents[1]
OLD = {"a.json": b'{"old": true}\n', "b.bin": bytes(range(256))}
NEW = {"a.json": b'{"new": true}\n', "c.bin": b""}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the old files."""
    write_folder(tmp_path / "model", OLD, "model")
    return tmp_path / "model"


def refusal(folder: Path, kind: str = "model") -> str:
    """What reading the folder is refused with: one sentence that says where."""
    with pytest.raises(VHEError) as refused:
        read_folder(folder, kind)
    said = str(refused.value)
    assert "\n" not in said
    assert str(folder) in said
    return said


def change_manifest(folder: Path, change: Callable[[dict], None]) -> None:
    manifest = json.loads((folder / MANIFEST).read_bytes())
    change(manifest)
    (folder / MANIFEST).write_bytes(json_bytes(manifest))


# --- writing


@pytest.mark.parametrize("name", ["model", "deep/er/model", ".hidden", "with space é"])
def test_what_is_written_is_read(tmp_path: Path, name: str) -> None:
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
def test_a_call_that_fails(
    folder: Path, name: str, call: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first, second or third call of a kind says that the disk is full."""
    module = builtins if name == "open" else os
    real, calls = getattr(module, name), 0

    def fails(*arguments, **options):
        nonlocal calls
        calls += 1
        if calls == call:
            raise OSError(28, "No space left on device")
        return real(*arguments, **options)

    said = ""
    with monkeypatch.context() as patch:
        patch.setattr(module, name, fails)
        try:
            write_folder(folder, NEW, "model")
        except VHEError as error:
            said = str(error)
    assert said == "" or ("No space left on device" in said and str(folder) in said)
    # nobody has to read it for the old folder to be back in its place
    assert os.listdir(folder.parent) == [folder.name]
    assert read_folder(folder, "model") == (OLD if said else NEW)


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
    write_folder(folder, NEW, "model")  # what was left behind is in nobody's way
    assert read_folder(folder, "model") == NEW
    assert not (folder.parent / ".model.previous").exists()
    if not killed:
        break
else:
    raise AssertionError("never came to its end")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_at_any_moment(tmp_path: Path) -> None:
    """The process ends, with no chance to clean up, at each of its calls to the file system."""
    script = KILLED.format(old=OLD, new=NEW)
    run = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    found = run.stdout.split()
    # first the old, from one moment on the new, and both have been seen
    assert found == sorted(found, reverse=True)
    assert set(found) == {"old", "new"}


@pytest.mark.parametrize("content", ["file", "folder"])
def test_what_is_not_ours_is_not_replaced(tmp_path: Path, content: str) -> None:
    """A slip in a path must not cost somebody's work."""
    place = tmp_path / "work"
    if content == "file":
        place.write_text("a thesis")
    else:
        place.mkdir()
        (place / "thesis.tex").write_text("a thesis")
    with pytest.raises(VHEError, match="work"):
        write_folder(place, NEW, "model")
    kept = place if content == "file" else place / "thesis.tex"
    assert kept.read_text() == "a thesis"
    assert os.listdir(tmp_path) == ["work"]


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    write_folder(tmp_path / "model", NEW, "model")
    assert read_folder(tmp_path / "model", "model") == NEW


def test_a_link_to_a_folder_stays_a_link(tmp_path: Path) -> None:
    write_folder(tmp_path / "run-1", OLD, "model")
    (tmp_path / "latest").symlink_to("run-1")
    for _ in range(3):
        write_folder(tmp_path / "latest", NEW, "model")
    assert (tmp_path / "latest").is_symlink()
    assert read_folder(tmp_path / "run-1", "model") == NEW
    assert sorted(os.listdir(tmp_path)) == ["latest", "run-1"]


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(VHEError, match="cannot be written"):
        write_folder(tmp_path / "file" / "model", NEW, "model")


# --- reading what is no longer as it was written


@pytest.mark.parametrize("name", OLD)
def test_any_flipped_bit_is_found(folder: Path, name: str) -> None:
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
    """It is refused, or (where the bit was in a space or the like) still says the same."""
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
def test_a_folder_in_the_place_of_a_file(folder: Path, name: str) -> None:
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
def test_a_name_that_leaves_the_folder(folder: Path, name: str) -> None:
    (folder.parent / "secret").write_bytes(OLD["a.json"])

    def add(manifest: dict) -> None:
        manifest["files"][name] = manifest["files"]["a.json"]

    change_manifest(folder, add)
    refusal(folder)


def test_a_newer_format(folder: Path) -> None:
    change_manifest(folder, lambda manifest: manifest.update(format=FORMAT + 1))
    assert "newer" in refusal(folder)


def test_another_kind(folder: Path) -> None:
    said = refusal(folder, "training")
    assert "model folder" in said
    assert "training folder" in said


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
        b'{"format": 1}',
        b'{"format": "1", "kind": "model", "files": {}}',
        b'{"format": null, "kind": "model", "files": {}}',
        b'{"format": NaN, "kind": "model", "files": {}}',
        b'{"format": 1, "kind": "model", "files": null}',
        b'{"format": 1, "kind": "model", "files": 3}',
        b'{"format": 1, "kind": "model", "files": ["a.json"]}',
        b'{"format": 1, "kind": "model", "files": [[1, {"bytes": 1, "sha256": ""}]]}',
        b'{"format": 1, "kind": "model", "files": {"a.json": null}}',
        b'{"format": 1, "kind": "model", "files": {"a.json": []}}',
        b'{"format": 1, "kind": "model", "files": {"a.json": {"bytes": 14}}}',
        b'{"format": 1, "kind": "model", "files": {"a.json": {"bytes": "14", "sha256": ""}}}',
        b'{"format": 1, "kind": "model", "files": {"a.json": {"bytes": 14, "sha256": 0}}}',
        b'{"format": 1, "kind": "model", "files": {"a.json": {"bytes": 14, "sha256": ""}}}',
        b'{"format": 1, "kind": "model", "files": {"\\ud800": {"bytes": 14, "sha256": ""}}}',
        b'{"format": 1' + b"0" * 5000 + b', "kind": "model", "files": {}}',
    ],
)
def test_a_manifest_that_is_none(folder: Path, raw: bytes) -> None:
    (folder / MANIFEST).write_bytes(raw)
    refusal(folder)


@settings(max_examples=40)
@given(raw=st.binary(max_size=80) | st.text(max_size=80).map(lambda s: s.encode("utf-8", "ignore")))
def test_no_garbage_is_a_manifest(raw: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.getbasetemp() / "garbage"
    folder.mkdir(exist_ok=True)
    (folder / MANIFEST).write_bytes(raw)
    refusal(folder)


def test_there_is_nothing(tmp_path: Path) -> None:
    assert "no such model folder" in refusal(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    assert MANIFEST in refusal(tmp_path / "empty")
    (tmp_path / "file").write_bytes(b"")
    refusal(tmp_path / "file")


def test_a_copy_is_as_good(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "copy")
    assert read_folder(tmp_path / "copy", "model") == OLD


# --- tensors


def test_tensors_come_back_whatever_their_order() -> None:
    import torch

    some = {"b": torch.arange(6.0).reshape(2, 3), "a": torch.tensor(7), "c": torch.zeros(0, 4)}
    data = tensor_bytes(some)
    assert data == tensor_bytes(dict(reversed(some.items())))
    found = read_tensors(data, "here")
    assert found.keys() == some.keys()
    for name, value in some.items():
        assert found[name].dtype == value.dtype
        assert torch.equal(found[name], value)


@pytest.mark.parametrize("keep", [0, 4, 8, 20, -1])
def test_what_is_no_tensor_is_refused(keep: int) -> None:
    import torch

    data = tensor_bytes({"a": torch.ones(10)})
    with pytest.raises(VHEError, match="here"):
        read_tensors(data[:keep], "here")
    with pytest.raises(VHEError, match="here"):
        read_tensors(b"\xff" * len(data), "here")


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
    """Equal and of one type, all the way down; a NaN is like a NaN, 0.0 is not like -0.0."""
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
def test_keys_come_back(key: object) -> None:
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
def test_numbers_of_numpy_become_plain(value: np.generic, plain: object) -> None:
    assert alike(decode_key(encode_key(value)), plain)
    assert alike(decode_key(encode_key((value,))), (plain,))


@pytest.mark.parametrize("key", [frozenset([1]), date(2019, 12, 8), 1j, object, ("a", date.max)])
def test_a_key_that_cannot_be_saved(key: object) -> None:
    with pytest.raises(VHEError) as refused:
        encode_key(key)
    said = str(refused.value)
    assert "cannot be saved" in said
    assert "\n" not in said
    assert repr(key[1] if isinstance(key, tuple) else key) in said
