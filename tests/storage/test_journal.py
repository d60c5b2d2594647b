"""A journal is input: files of others, damage, and records that are no changes of a network."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from vhe.errors import VHEError
from vhe.storage.journal import HEADER, Journal, read_journal
from vhe.web.changes import recorded_changes


@pytest.mark.parametrize("content", [b"x", b"my notes\n", HEADER[:-1] + b"x", b"\0" * 10])
def test_a_short_file_of_somebody_else_is_not_replaced(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.journal"
    path.write_bytes(content)
    with pytest.raises(VHEError, match="not a journal"):
        Journal(path)
    assert path.read_bytes() == content


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_pipe_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.journal"
    os.mkfifo(path)
    for read in (Journal, read_journal):
        with pytest.raises(VHEError, match="pipe"):
            read(path)


def test_a_record_that_is_nested_deeply_is_damaged(tmp_path: Path) -> None:
    import zlib

    path = tmp_path / "journal"
    content = b'{"a":' + b"[" * 100_000
    checksum = zlib.crc32(content, zlib.crc32(b"0"))
    path.write_bytes(HEADER + b"%08x %b\n" % (checksum, content) + b"\n")
    with pytest.raises(VHEError, match="journal:2: damaged"):
        read_journal(path)


SOUND: dict[str, Any] = {"texts": [["a", "words", None]], "links": [["a", "b"]], "removed": ["c"]}


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"changes": 1},
        {"changes": [1]},
        {"changes": [{}]},
        {"changes": [SOUND | {"texts": [["a", 1, None]]}]},
        {"changes": [SOUND | {"texts": [["a", "words"]]}]},
        {"changes": [SOUND | {"texts": [[["a"], "words", None]]}]},
        {"changes": [SOUND | {"texts": [["a", "words", {"b": 1}]]}]},
        {"changes": [SOUND | {"links": [["a"]]}]},
        {"changes": [SOUND | {"links": [[["a"], "b"]]}]},
        {"changes": [SOUND | {"removed": [{"tuple": 1}]}]},
        {"changes": [SOUND | {"removed": [{"bytes": "x"}]}]},
    ],
    ids=str,
)
def test_a_record_with_the_right_checksum_that_is_no_change(record: Any, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    journal.append([{"changes": [SOUND]}, record])
    journal.close()
    records, _ = read_journal(tmp_path / "journal")
    with pytest.raises(VHEError, match=r"journal:3: not a change") as refused:
        recorded_changes(records, tmp_path / "journal")
    assert "\n" not in str(refused.value)
    assert len(recorded_changes(records[:1], tmp_path / "journal")) == 1


def test_a_full_disk_leaves_the_journal_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal"
    journal = Journal(path)
    journal.append([{"a": 1}])
    whole, write = path.read_bytes(), os.write

    def until_full(file: int, data: Any) -> int:
        if len(data) < 5:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, data[:5])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", until_full)
        with pytest.raises(VHEError, match=r"journal: cannot be written \(No space left"):
            journal.append([{"b": 2}])
    journal.close()
    assert path.read_bytes() == whole
    again = Journal(path)
    again.append([{"c": 3}])
    again.close()
    assert read_journal(path)[0] == [{"a": 1}, {"c": 3}]
