"""The bytes, text and lines of a file or of standard input (`-`), whatever its packing.

- gzip and zstd are recognised by their first bytes and unpacked while reading. A file that unpacks
  to more than the memory of this machine, or to `MAX_RATIO` times its size, is refused.
- Text is UTF-8, UTF-16 with a byte order mark, or Windows-1252 (a superset of Latin-1) if it is not
  UTF-8; the latter is reported. A file that mixes encodings is refused at its first invalid byte.
- Line ends are LF, CRLF or CR, and become LF.
"""

from __future__ import annotations

import codecs
import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import BinaryIO, cast

from vhe.errors import VHEError
from vhe.runtime.files import physical_memory
from vhe.runtime.messages import shortened

GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
STDIN = ("-", "/dev/stdin", str(Path("/dev/stdin")))  # the last: as Windows writes it
PACKED = (".gz", ".zst")
MAX_RATIO = 200  # texts are packed to a tenth; zeros to a thousandth
SMALL = 1 << 26  # a ratio says nothing about files that unpack to fewer bytes
CHUNK = 1 << 20


class Input:
    """A file, or standard input for `-`, that can be read more than once.

    Attributes
    ----------
    path : Path
    shown : str
        Name in error messages: the path, or `<stdin>`.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        self.shown = str(path)
        self._data: bytes | None = None
        if self.shown in STDIN:
            self.path, self.shown = Path("stdin"), "<stdin>"
            self._data = sys.stdin.buffer.read()
        elif self.path.is_dir():
            raise VHEError(f"{path} is a folder; give a file.")
        elif not self.path.exists():
            raise VHEError(f"{path} does not exist; check the path.")
        elif not self.path.is_file():
            raise VHEError(f"{path} is a pipe or a device; give a regular file, or - for stdin.")
        self.notes: list[str] = []

    @property
    def name(self) -> str:
        """File name in notes."""
        return self.path.name if self._data is None else self.shown

    @property
    def unpacked_path(self) -> Path:
        """The path without the extension of gzip or zstd."""
        return self.path.with_suffix("") if self.path.suffix.lower() in PACKED else self.path

    @property
    def extension(self) -> str:
        """Extension in lower case, without that of gzip or zstd."""
        return self.unpacked_path.suffix.lower()

    @property
    def stem(self) -> str:
        return self.unpacked_path.stem

    @cached_property
    def head(self) -> bytes:
        """The first bytes, unpacked."""
        with self.open() as stream:
            return stream.read(4096)

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Yield the unpacked bytes as a stream; errors in reading them become `VHEError`."""
        try:
            with self._raw() as raw:
                magic = raw.read(4)
                raw.seek(0)
                if magic.startswith(GZIP):
                    yield self._bounded(cast(BinaryIO, gzip.GzipFile(fileobj=raw)))
                elif magic == ZSTD:
                    import pyarrow

                    yield self._bounded(pyarrow.CompressedInputStream(raw, "zstd"))
                else:
                    yield raw
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            reason = shortened(str(error).rstrip("."), 200)
            raise VHEError(f"{self.shown} is damaged or truncated: {reason}.") from None
        except OSError as error:
            reason = error.strerror or shortened(str(error).rstrip("."), 200)
            raise VHEError(f"{self.shown} cannot be read: {reason}.") from error

    def _raw(self) -> BinaryIO:
        return self.path.open("rb") if self._data is None else io.BytesIO(self._data)

    def _bounded(self, stream: BinaryIO) -> BinaryIO:
        packed = len(self._data) if self._data is not None else self.path.stat().st_size
        return io.BufferedReader(_Bounded(stream, packed, self.shown), CHUNK)

    def read(self) -> bytes:
        """Return all bytes, unpacked."""
        with self.open() as stream:
            return stream.read()

    @cached_property
    def encoding(self) -> str:
        """Encoding of the text, found by decoding it once."""
        if self.head.startswith(codecs.BOM_UTF8):
            name = "utf-8-sig"
        elif self.head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            name = "utf-16"
        else:
            name = "utf-8"
        decoder = codecs.getincrementaldecoder(name)()
        line, column = 1, 1
        with self.open() as stream:
            while True:
                chunk = stream.read(CHUNK)
                pending = len(decoder.getstate()[0])  # of the chunk before
                try:
                    decoder.decode(chunk, final=not chunk)
                except UnicodeDecodeError as error:
                    wrong = max(error.start - pending, 0)
                    here = line + chunk.count(b"\n", 0, wrong)
                    newline = chunk.rfind(b"\n", 0, wrong)
                    byte = wrong - newline if newline >= 0 else column + error.start - pending
                    if name == "utf-16":
                        raise VHEError(
                            f"{self.shown} is not UTF-16 although it has its byte order mark; "
                            "save it as UTF-8."
                        ) from None
                    if name == "utf-8" and self._is_windows_1252():
                        self.notes.append(f"{self.name}: not UTF-8, read as Windows-1252 (Latin-1)")
                        return "cp1252"
                    raise VHEError(
                        f"{self.shown}:{here}: byte {byte} of the line, "
                        f"0x{error.object[error.start]:02x}, is not UTF-8; save the file as UTF-8."
                    ) from None
                zero = chunk.find(b"\0") if name != "utf-16" else -1
                if zero >= 0:
                    here = line + chunk.count(b"\n", 0, zero)
                    newline = chunk.rfind(b"\n", 0, zero)
                    byte = zero - newline if newline >= 0 else column + zero
                    raise VHEError(
                        f"{self.shown}:{here}: byte {byte} of the line is NUL, so this is not a "
                        "text file; if it is UTF-16, save it as UTF-8."
                    )
                if not chunk:
                    return name
                line += chunk.count(b"\n")
                newline = chunk.rfind(b"\n")
                column = len(chunk) - newline if newline >= 0 else column + len(chunk)

    def _is_windows_1252(self) -> bool:
        """Return whether the bytes that are not ASCII are Windows-1252 and none are UTF-8."""
        utf8 = codecs.getincrementaldecoder("utf-8")("ignore")
        with self.open() as stream:
            while chunk := stream.read(CHUNK):
                if b"\0" in chunk or not utf8.decode(chunk).isascii():
                    return False
                try:
                    chunk.decode("cp1252")
                except UnicodeDecodeError:
                    return False
        return True

    @contextmanager
    def lines(self) -> Iterator[io.TextIOWrapper]:
        """Yield a stream of decoded lines; line ends are LF."""
        encoding = self.encoding
        with self.open() as stream:
            text = io.TextIOWrapper(stream, encoding)
            try:
                yield text
            finally:
                text.detach()

    def text(self) -> str:
        """Return the whole text."""
        with self.lines() as lines:
            return lines.read()


class _Bounded(io.RawIOBase):
    """An unpacked stream that ends with an error when it becomes too large."""

    def __init__(self, stream: BinaryIO, packed: int, shown: str) -> None:
        self.stream, self.shown, self.done = stream, shown, 0
        self.limit = min(physical_memory(), max(MAX_RATIO * packed, SMALL))

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        chunk = self.stream.read(len(buffer))
        self.done += len(chunk)
        if self.done > self.limit:
            raise VHEError(
                f"{self.shown} unpacks to more than {self.limit:,} bytes, too many for its size or "
                "for the memory of this machine; unpack it and check its content."
            )
        buffer[: len(chunk)] = chunk
        return len(chunk)
