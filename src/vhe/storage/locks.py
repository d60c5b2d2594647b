"""Exclusive locks on folders, between processes."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from vhe.errors import VHEError


@contextlib.contextmanager
def folder_lock(folder: Path, purpose: str) -> Iterator[None]:
    """Hold an exclusive lock on a folder inside a with block; refuse if it is already held.

    Locks with different ``purpose`` are independent. The lock is an operating-system lock on a
    file next to the folder: it ends with the process, however the process ends.
    """
    folder = Path(os.path.realpath(folder))
    path = folder.with_name(f".{folder.name}.{purpose}")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        handle = _locked_file(path)
    except OSError as error:
        raise VHEError(
            f"{folder}: the folder cannot be written ({error.strerror or error})"
        ) from error
    if handle is None:
        raise VHEError(
            f"{folder}: another command is writing there; wait until it ends or choose another "
            "folder"
        )
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()
        os.close(handle)


def _locked_file(path: Path) -> int | None:
    """Open and lock the file at ``path``; None if another process holds the lock."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _lock(handle)
            if path.exists() and os.path.samestat(os.fstat(handle), path.stat()):
                return handle
        except (BlockingIOError, PermissionError):
            os.close(handle)
            return None
        except FileNotFoundError:
            pass
        except OSError:  # the file system does not support locks
            return handle
        os.close(handle)  # the previous holder deleted the file before this process locked it


def _lock(handle: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
