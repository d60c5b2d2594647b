"""Vectors of texts on disk: one file per encoder, to which records are appended.

A record has a fixed size: SHA-256 of the text, the vector in float32, and CRC-32 of both. A record
that was damaged or written in part does not pass its checksum, and its text is encoded again; the
last record of a text counts. The dimension is part of the file name. Processes append in turn.
"""

from __future__ import annotations

import hashlib
import logging
import re
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from vhe.data.attributes import Vectors
from vhe.errors import VHEError

logger = logging.getLogger(__name__)

LOCK_SECONDS = 60.0  # to wait for another process that is writing

Digests = NDArray[np.uint64]  # (n, 4): SHA-256 of n texts


def text_digests(texts: Sequence[str]) -> Digests:
    """Return the SHA-256 of each text: (n, 4)."""
    digests = (hashlib.sha256(text.encode(errors="surrogatepass")).digest() for text in texts)
    return np.frombuffer(b"".join(digests), dtype="<u8").reshape(-1, 4)


class VectorCache:
    """The cached vectors of one encoder.

    Parameters
    ----------
    folder : of the caches of all encoders
    model : str
        Name and revision of the encoder.
    """

    def __init__(self, folder: Path, model: str) -> None:
        readable = re.sub(r"[^A-Za-z0-9.]+", "-", model)[-40:].strip("-.")
        digest = hashlib.sha256(model.encode(errors="surrogatepass")).hexdigest()[:16]
        self.folder, self.model, self._stem = folder, model, f"{readable}-{digest}"
        self._path: Path | None = None
        self._dimension = 0
        self._forget()

    def read(self, digests: Digests) -> tuple[NDArray[np.int64], Vectors]:
        """Return the rows of `digests` that are in the cache, (k,), and their vectors."""
        nothing = np.empty(0, dtype=np.int64), np.empty((0, self._dimension), dtype=np.float32)
        try:
            self._refresh()
            if not len(self._order):
                return nothing
            place = np.searchsorted(self._prefixes, digests[:, 0], side="right") - 1
            rows = np.flatnonzero((self._prefixes[place] == digests[:, 0]) & (place >= 0))
            # in the order of the file, which is read only once then
            rows = rows[np.argsort(self._order[place[rows]])]
            records = self._table()[self._order[place[rows]]]
        except OSError:
            return nothing
        valid = (records["digest"] == digests[rows]).all(axis=1)
        valid &= records["checksum"] == _checksums(records)
        return rows[valid], records["vector"][valid]

    def append(self, digests: Digests, vectors: Vectors) -> None:
        """Add vectors; a folder that cannot be written is reported by a warning."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with FileLock(self.folder / f"{self._stem}.lock", timeout=LOCK_SECONDS):
                self._locate()
                if self._path is None:
                    self._dimension = vectors.shape[1]
                    self._path = self.folder / f"{self._stem}.{self._dimension}.vectors"
                if vectors.shape[1] != self._dimension:
                    raise VHEError(
                        f"the encoder {self.model} has {vectors.shape[1]} dimensions, but vectors "
                        f"of {self._dimension} are cached under its name; give it another name, "
                        f"or delete {self._path}."
                    )
                records = np.empty(len(vectors), dtype=self._record)
                records["digest"], records["vector"] = digests, vectors
                records["checksum"] = _checksums(records)
                with self._path.open("ab") as file:
                    partial = -file.tell() % self._record.itemsize
                    file.write(b"\0" * partial + records.tobytes())
        except (OSError, Timeout) as error:
            logger.warning(
                f"{self.folder}: vectors of texts cannot be cached ({error}); set VHE_CACHE to "
                "another folder",
            )

    @property
    def _record(self) -> np.dtype[np.void]:
        return np.dtype(
            [("digest", "<u8", 4), ("vector", "<f4", self._dimension), ("checksum", "<u4")]
        )

    def _forget(self) -> None:
        """Empty the index: prefixes of digests, sorted, and the numbers of their records."""
        self._prefixes = np.empty(0, dtype=np.uint64)
        self._order = np.empty(0, dtype=np.int64)

    def _locate(self) -> None:
        """Find the file, which another process may have created."""
        if self._path is None or not self._path.exists():
            self._path = None
            for path in self.folder.glob(f"{self._stem}.*.vectors"):
                self._path, self._dimension = path, int(path.name.split(".")[-2])

    def _refresh(self) -> None:
        """Index the records that were added since the last call."""
        self._locate()
        if self._path is None:
            self._forget()
            return
        count = self._path.stat().st_size // self._record.itemsize
        if count < len(self._order):  # the file was replaced
            self._forget()
        known = len(self._order)
        if count > known:
            prefixes = np.empty(count, dtype=np.uint64)
            prefixes[self._order] = self._prefixes
            prefixes[known:] = self._table()["digest"][known:count, 0]
            self._order = np.argsort(prefixes, kind="stable")  # the last of equal ones counts
            self._prefixes = prefixes[self._order]

    def _table(self) -> NDArray[np.void]:
        assert self._path is not None
        count = self._path.stat().st_size // self._record.itemsize
        return np.memmap(self._path, dtype=self._record, mode="r", shape=(count,))


def _checksums(records: NDArray[np.void]) -> NDArray[np.uint32]:
    """CRC-32 of each record, without its last field: (k,)."""
    size = records.dtype.itemsize
    rows = records.view(np.uint8).reshape(len(records), size)[:, :-4]
    return np.fromiter((zlib.crc32(row.tobytes()) for row in rows), np.uint32, len(records))
