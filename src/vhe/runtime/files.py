"""Files at their lowest: text that is really text, with the place of what is not; safe writing."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from vhe.data.checks import counted
from vhe.errors import VHEError


@dataclass(frozen=True)
class Text:
    """What a text file holds, with the line ends of Unix, and what was mended to get there."""

    path: Path
    content: str
    notes: tuple[str, ...]

    @property
    def lines(self) -> list[str]:
        """The lines without their ends; a last line end opens no further line."""
        return self.content.removesuffix("\n").split("\n") if self.content else []

    @property
    def line_count(self) -> int:
        return self.content.count("\n") + (self.content[-1:] not in ("\n", ""))


def read_bytes(path: Path) -> bytes:
    """Return a file's bytes, or say why it cannot be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise VHEError(f"{path} does not exist; check the path.") from None
    except IsADirectoryError:
        raise VHEError(f"{path} is a folder; give a file.") from None
    except OSError as error:
        raise VHEError(f"{path} cannot be read: {error.strerror or error}.") from error


def read_text(path: Path, *, forgiving: bool = False) -> Text:
    """Read a UTF-8 file; a byte order mark and CRLF are mended and noted.

    `forgiving` is for files whose checksum proves that they are what was published: bytes that
    are not UTF-8, which the user could do nothing about, are then replaced and noted.
    """
    raw = read_bytes(path)
    notes = []
    if raw.startswith(b"\xef\xbb\xbf"):
        raw = raw[3:]
        notes.append(f"{path.name}: a byte order mark (BOM) at the start was dropped")
    try:
        content = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        if not forgiving:
            line, column = _place(raw, error.start)
            raise VHEError(
                f"{path}:{line}: byte {column} of the line, 0x{raw[error.start]:02x}, is not "
                "UTF-8; save the file as UTF-8."
            ) from None
        content = raw.decode("utf-8", errors="replace")
        notes.append(f"{path.name}: bytes that are not UTF-8 were replaced")
    if "\0" in content and not forgiving:
        line, column = _place(raw, raw.index(b"\0"))
        raise VHEError(
            f"{path}:{line}: byte {column} of the line is NUL, which no text holds; "
            "is it a binary file, or UTF-16?"
        )
    windows = content.count("\r\n")
    if windows:
        content = content.replace("\r\n", "\n")
        notes.append(f"{path.name}: {counted(windows, 'Windows line end')} (CRLF) read as plain")
    return Text(path, content, tuple(notes))


def physical_memory() -> int:
    """The bytes of memory that this machine has; where that cannot be told, more than any has."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 1 << 50


def _place(raw: bytes, offset: int) -> tuple[int, int]:
    """Return the line and the byte in it, both from 1."""
    return raw.count(b"\n", 0, offset) + 1, offset - raw.rfind(b"\n", 0, offset)


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; it takes that name at the end, or nothing changes."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise VHEError(f"{path} is a folder; name a file to write.")
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())  # otherwise a crash could leave the name on an empty file
        temporary.replace(path)
    except OSError as error:
        raise VHEError(f"{path} cannot be written: {error.strerror or error}.") from error
    finally:
        with suppress(OSError):  # mostly it has its new name by now
            temporary.unlink()
