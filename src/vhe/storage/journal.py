"""An append-only journal of changes: flushed to disk before they are acknowledged.

Each record is a line: the CRC-32 of its number and content, and the content as JSON. A last record
that a crash cut off, which was never acknowledged, is dropped; any other damage is an error.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from vhe.errors import VHEError
from vhe.runtime.files import read_bytes
from vhe.storage.folder import sync_folder

BINARY = getattr(os, "O_BINARY", 0)  # otherwise Windows changes line ends
HEADER = b"vhe journal 1\n"
UNWRITTEN = b"\0\0"  # in a block of the last record that did not reach the disk
Record = dict[str, Any]


class Journal:
    """A journal that this process alone writes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.failed: str | None = None  # why nothing can be written any more
        self._lock = FileLock(path.with_name(f".{path.name}.lock"))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
        except Timeout:
            raise VHEError(f"{path}: another server writes this journal; stop it first") from None
        except OSError as error:
            raise self._error(error) from None
        try:
            new = not path.exists() or _is_partial_header(path)
            self.records, end = ([], 0) if new else read_journal(path)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | BINARY, 0o600)
            os.ftruncate(self._file, end)  # a record that was cut off
            self._end = os.lseek(self._file, 0, os.SEEK_END)
            if new:
                self._write(HEADER)
                sync_folder(path.parent)
        except OSError as error:
            self._lock.release()
            raise self._error(error) from None
        except VHEError:
            self._lock.release()
            raise

    def append(self, records: Sequence[Record]) -> None:
        """Write records and flush them to disk, all or none.

        After a failed flush nobody knows what is on the disk: nothing is written until a restart.
        """
        if self.failed:
            raise VHEError(self.failed)
        first = len(self.records)
        lines = [_line(first + k, record) for k, record in enumerate(records)]
        try:
            self._write(b"".join(lines))
        except OSError as error:
            self.failed = str(self._error(error))
            raise VHEError(self.failed) from None
        self.records += records

    def _write(self, data: bytes) -> None:
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(self._file, view) :]
        except OSError:
            os.ftruncate(self._file, self._end)
            os.lseek(self._file, self._end, os.SEEK_SET)
            os.fsync(self._file)
            raise
        os.fsync(self._file)
        self._end += len(data)

    def close(self) -> None:
        os.close(self._file)
        self._lock.release()

    def _error(self, error: OSError) -> VHEError:
        return VHEError(f"{self.path}: cannot be written ({error.strerror or error})")


def _is_partial_header(path: Path) -> bool:
    """Whether a crash ended the creation of a journal; other short files are not replaced."""
    return path.stat().st_size < len(HEADER) and HEADER.startswith(read_bytes(path))


def read_journal(path: Path) -> tuple[list[Record], int]:
    """The records of a journal, and the position after the last complete one."""
    data = read_bytes(path)
    if not data.startswith(HEADER):
        raise VHEError(f"{path}: not a journal of vhe; choose another file")
    records: list[Record] = []
    end = len(HEADER)
    lines = data[end:].split(b"\n")
    for k, line in enumerate(lines[:-1]):
        record = _record(k, line)
        torn = k == len(lines) - 2 and UNWRITTEN in line
        if record is None and not torn:
            raise VHEError(
                f"{path}:{k + 2}: damaged record; restore a copy, or delete the lines from this "
                "one on and enter their changes again"
            )
        if record is None:
            break
        records.append(record)
        end += len(line) + 1
    return records, end


def _line(number: int, record: Record) -> bytes:
    content = json.dumps(record, separators=(",", ":")).encode()
    return b"%08x %b\n" % (_checksum(number, content), content)


def _record(number: int, line: bytes) -> Record | None:
    checksum, _, content = line.partition(b" ")
    try:
        if len(checksum) == 8 and int(checksum, 16) == _checksum(number, content):
            record = json.loads(content)
            return record if isinstance(record, dict) else None
    except (ValueError, RecursionError):
        pass
    return None


def _checksum(number: int, content: bytes) -> int:
    return zlib.crc32(content, zlib.crc32(b"%d" % number))


def journal_file(model: Path) -> Path:
    """Where the changes of the network of a model are saved by default."""
    return model.with_name(f"{model.name}.journal")
