"""Reading text files with the position of invalid bytes, atomic writing, and the cache folder."""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from vhe.errors import VHEError
from vhe.runtime.messages import counted

try:
    import fcntl
except ImportError:  # Windows: files of killed processes are not recognised
    fcntl = None  # type: ignore[assignment]

NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)


@dataclass(frozen=True)
class Text:
    """Content of a text file with Unix line ends; `notes` say what was repaired in reading it."""

    path: Path
    content: str
    notes: tuple[str, ...]

    @property
    def lines(self) -> list[str]:
        """The lines without their ends; a line end at the end of the file starts no new line."""
        return self.content.removesuffix("\n").split("\n") if self.content else []

    @property
    def line_count(self) -> int:
        return self.content.count("\n") + (self.content[-1:] not in ("\n", ""))


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a regular file."""
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # a pipe or a device may be endless
            raise VHEError(f"{path} is a pipe or a device; give a regular file.")
        return path.read_bytes()
    except FileNotFoundError:
        raise VHEError(f"{path} does not exist; check the path.") from None
    except IsADirectoryError:
        raise VHEError(f"{path} is a folder; give a file.") from None
    except OSError as error:
        raise VHEError(f"{path} cannot be read: {error.strerror or error}.") from error


def read_text(path: Path, *, replace_invalid: bool = False) -> Text:
    """Read a UTF-8 file; a byte order mark is dropped and CRLF converted, with a note.

    `replace_invalid` is for files whose checksum is known, which the user cannot correct: invalid
    bytes are replaced, with a note, instead of refused.
    """
    raw = read_bytes(path)
    notes = []
    if raw.startswith(b"\xef\xbb\xbf"):
        raw = raw[3:]
        notes.append(f"{path.name}: byte order mark (BOM) at the start dropped")
    try:
        content = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        if not replace_invalid:
            line, column = _position(raw, error.start)
            raise VHEError(
                f"{path}:{line}: byte {column} of the line, 0x{raw[error.start]:02x}, is not "
                "UTF-8; save the file as UTF-8."
            ) from None
        content = raw.decode("utf-8", errors="replace")
        notes.append(f"{path.name}: bytes that are not UTF-8 replaced")
    if "\0" in content and not replace_invalid:
        line, column = _position(raw, raw.index(b"\0"))
        raise VHEError(
            f"{path}:{line}: byte {column} of the line is NUL, so this is not a UTF-8 text file; "
            "if it is UTF-16, save it as UTF-8."
        )
    windows = content.count("\r\n")
    if windows:
        content = content.replace("\r\n", "\n")
        notes.append(f"{path.name}: {counted(windows, 'Windows line end')} (CRLF) converted")
    return Text(path, content, tuple(notes))


def physical_memory() -> int:
    """Return the bytes of memory of this machine, or 2**50 where the system does not report it."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 1 << 50


def cache_folder() -> Path:
    """Return the folder for downloaded files: VHE_CACHE, or `vhe` in the user's cache folder."""
    if os.environ.get("VHE_CACHE"):
        return Path(os.environ["VHE_CACHE"])
    if os.environ.get("XDG_CACHE_HOME"):
        return Path(os.environ["XDG_CACHE_HOME"]) / "vhe"
    try:
        return Path.home() / ".cache" / "vhe"
    except RuntimeError:
        raise VHEError(
            "the home folder of this user is unknown; set VHE_CACHE to a folder for cached files."
        ) from None


def _position(raw: bytes, offset: int) -> tuple[int, int]:
    """Return the line of a byte and its position in the line, both from 1."""
    return raw.count(b"\n", 0, offset) + 1, offset - raw.rfind(b"\n", 0, offset)


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a temporary path in the same folder, which is renamed to `path` on success.

    On any error the temporary file is removed and `path` is unchanged. Temporary files that killed
    processes left of the same `path` are deleted first.
    """
    lock: int | None = None
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise VHEError(f"{path} is a folder; name a file to write.")
        for leftover in unfinished_files(path):
            leftover.unlink(missing_ok=True)
        lock = _create_locked(temporary)
        yield temporary
        with temporary.open("rb+") as file:  # Windows flushes only what can be written
            os.fsync(file.fileno())  # otherwise a crash could leave an empty file at `path`
        temporary.replace(path)
    except OSError as error:
        raise VHEError(f"{path} cannot be written: {error.strerror or error}.") from error
    finally:
        with suppress(OSError):  # after success it no longer exists
            temporary.unlink()
        if lock is not None:
            os.close(lock)


def unfinished_files(path: Path) -> list[Path]:
    """List the temporary files that killed processes left of `path`; others are locked."""
    pattern = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{8}}\.part")
    found = []
    for candidate in sorted(path.parent.iterdir()):
        if pattern.fullmatch(candidate.name) and stat.S_ISREG(candidate.lstat().st_mode):
            with suppress(OSError):  # in use, or gone
                handle = os.open(candidate, os.O_RDWR | NO_FOLLOW)
                try:
                    if fcntl is not None:
                        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        found.append(candidate)
                finally:
                    os.close(handle)
    return found


def _create_locked(path: Path) -> int | None:
    """Create a file that is locked until its descriptor is closed or the process ends."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    lockable = fcntl is not None
    if lockable:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        return handle
    os.close(handle)  # Windows does not rename a file that is open
    return None
