"""Exclusive locks on folders, between processes."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from vhe.errors import VHEError


@contextlib.contextmanager
def folder_lock(folder: Path, purpose: str, timeout: float = 0.0) -> Iterator[None]:
    """Hold an exclusive lock on a folder inside a with block; refuse if it is already held.

    Locks with different ``purpose`` are independent. The lock is an operating-system lock on a
    file next to the folder: it ends with the process, however the process ends. ``timeout`` are
    the seconds for which to wait for another holder.
    """
    folder = Path(os.path.realpath(folder))
    path = folder.with_name(f".{folder.name}.{purpose}")
    lock = FileLock(path)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout, poll_interval=0.01)
    except Timeout:
        raise VHEError(
            f"{folder}: another command is writing there; wait until it ends or choose another "
            "folder"
        ) from None
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP):  # a file system without locks
            raise VHEError(
                f"{folder}: the folder cannot be written ({error.strerror or error})"
            ) from error
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()  # a process that has just opened it notices this, and opens a new one
        lock.release()
