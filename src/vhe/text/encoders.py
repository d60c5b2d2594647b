"""Pretrained text encoders: one vector per text, encoded once and then read from a cache.

An encoder is a sentence-transformers model, by name or folder, or a function from a list of texts
to an array. It is loaded only when a text is not in the cache (`vector_cache.py`): a second fit
neither loads it nor needs it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vhe.data.attributes import Vectors
from vhe.errors import VHEError
from vhe.runtime.arrays import release, unit_rows
from vhe.runtime.checks import is_integer
from vhe.runtime.files import cache_folder
from vhe.runtime.messages import shown
from vhe.runtime.tables import new_table
from vhe.text.encoder_identity import PROBE, PROBE_VALUES, EncoderIdentity
from vhe.text.sentence_model import SentenceModel
from vhe.text.vector_cache import VectorCache, text_digests

Encode = Callable[[list[str]], Any]  # k texts to an array (k, dimension)

CHUNK = 16_384  # texts that are looked up, sorted by length and encoded at a time
SECONDS_BETWEEN_WRITES = 1.0  # an interrupted encoding loses no more than this


class TextEncoder:
    """Vectors of texts, cached on disk.

    Parameters
    ----------
    encoder : str, path or callable
        Name (such as ``all-MiniLM-L6-v2``) or folder of a sentence-transformers model, or a
        function that takes a list of k texts and returns an array (k, dimension).
    name : str, optional
        Name of a function. Vectors of a function are cached only under a name, because its code
        may change: give it another name then.
    revision : str, optional
        Commit of a model that is downloaded; default: the downloaded one, or the newest.
    device : str
        Device of a model; "auto" is a GPU if there is one.
    batch : int
        Number of texts that are encoded at a time.
    download : bool
        Whether a model that is not available locally is downloaded.
    cache : bool
        Whether vectors are read from and written to the cache folder (VHE_CACHE).

    Examples
    --------
    >>> encoder = TextEncoder(lambda texts: [[len(text), text.count("e")] for text in texts])
    >>> encoder.encode(["red fox", "", "bees"]).tolist()
    [[7.0, 1.0], [0.0, 0.0], [4.0, 2.0]]
    """

    def __init__(
        self,
        encoder: str | PathLike[str] | Encode,
        *,
        name: str | None = None,
        revision: str | None = None,
        device: str = "auto",
        batch: int = 32,
        download: bool = True,
        cache: bool = True,
    ) -> None:
        if not (is_integer(batch) and batch >= 1):
            raise VHEError(f"the encoder batch is {batch!r}; it must be an integer of at least 1.")
        self.device, self.batch = device, int(batch)
        self._model: SentenceModel | None = None
        self._function: Encode
        if isinstance(encoder, str | PathLike):
            self._model = SentenceModel(
                os.fspath(encoder),
                is_path=isinstance(encoder, PathLike),
                revision=revision,
                device=device,
                download=download,
            )
            self._function, self.name = self._model.encode, self._model.name
        elif callable(encoder):
            # a loaded SentenceTransformer can be called, too, but with tokens
            self._function = getattr(encoder, "encode", encoder)
            own = getattr(encoder, "__qualname__", type(encoder).__qualname__)
            self.name = name or f"{getattr(encoder, '__module__', '')}.{own}"
            cache = cache and name is not None
        else:
            raise VHEError(
                f"the encoder is {shown(encoder)}; give the name or folder of a "
                "sentence-transformers model, or a function."
            )
        self._caches = cache

    @property
    def revision(self) -> str:
        """Commit, or digest of the files, of a model; empty for a function."""
        return "" if self._model is None else self._model.revision

    @cached_property
    def identity(self) -> EncoderIdentity:
        """The identity of the encoder, as a model folder stores it."""
        vector = self._probe[None].astype(np.float64)
        scaled = unit_rows(vector)[0] * vector.shape[1] ** 0.5
        probe = tuple(scaled[:PROBE_VALUES].round(4).tolist())
        return EncoderIdentity(self.name, self.revision, len(self._probe), probe)

    @property
    def dimension(self) -> int:
        """Number of components of a vector."""
        return len(self._probe)

    def load(self) -> None:
        """Load a model now instead of with the first text that is not in the cache."""
        if self._model is not None:
            self._model.load()

    def encode(
        self,
        texts: Sequence[str],
        progress: Callable[[int, int], None] | None = None,
        *,
        cache: bool = True,
    ) -> Vectors:
        """Return the vectors of texts, zero for those without any character: (n, dimension).

        A large result is in a temporary file that is mapped into memory.

        Parameters
        ----------
        texts : sequence of str, n
        progress : called with the number of texts that are done and of all
        cache : False for texts that will not occur again
        """
        result = new_table(len(texts), self.dimension)
        done = 0
        for chunk in self.chunks(texts, progress, cache=cache):
            result[done : done + len(chunk)] = chunk
            done += len(chunk)
            release(result)
        return result

    def chunks(
        self,
        texts: Sequence[str],
        progress: Callable[[int, int], None] | None = None,
        *,
        cache: bool = True,
    ) -> Iterator[Vectors]:
        """Yield the rows of `encode` in order, at most `CHUNK` at a time."""
        for start in range(0, len(texts), CHUNK):

            def report(done: int, start: int = start) -> None:
                if progress is not None:
                    progress(start + done, len(texts))

            yield self._chunk(texts[start : start + CHUNK], report, cache)

    def _chunk(
        self, texts: Sequence[str], report: Callable[[int], None], use_cache: bool
    ) -> Vectors:
        result = np.zeros((len(texts), self.dimension), dtype=np.float32)
        digests = text_digests(texts)
        missing = np.array([bool(text.strip()) for text in texts], dtype=bool)
        cache = self._cache if use_cache else None
        if cache is not None:
            rows = np.flatnonzero(missing)
            found, vectors = cache.read(digests[rows])
            if len(found):
                result[rows[found]] = vectors
                missing[rows[found]] = False
        rows = np.flatnonzero(missing)
        done = len(texts) - len(rows)
        report(done)
        if not len(rows):
            return result
        # equal texts are encoded once; long ones first, because they need the most memory
        _, first, number = np.unique(digests[rows], axis=0, return_index=True, return_inverse=True)
        number = number.ravel()
        copies = np.bincount(number)
        order = np.argsort([-len(texts[rows[k]]) for k in first], kind="stable")
        encoded = np.empty((len(first), self.dimension), dtype=np.float32)
        written, last_write = 0, monotonic()
        for start in range(0, len(order), self.batch):
            batch = order[start : start + self.batch]
            encoded[batch] = self._call([texts[rows[first[k]]] for k in batch])
            done += int(copies[batch].sum())
            report(done)
            end = start + len(batch)
            pause = monotonic() - last_write
            if cache is not None and (end == len(order) or pause > SECONDS_BETWEEN_WRITES):
                new = order[written:end]
                cache.append(digests[rows[first[new]]], encoded[new])
                written, last_write = end, monotonic()
        result[rows] = encoded[number]
        return result

    @cached_property
    def _probe(self) -> NDArray[np.float32]:
        """The vector of `PROBE`: (dimension,)."""
        digest = text_digests([PROBE])
        if self._cache is not None:
            found, vectors = self._cache.read(digest)
            if len(found):
                return vectors[0]
        vector = self._call([PROBE])
        if self._cache is not None:
            self._cache.append(digest, vector)
        return vector[0]

    @cached_property
    def _cache(self) -> VectorCache | None:
        if not self._caches:
            return None
        key = f"{self.name}@" if self._model is None else self._model.cache_key
        return VectorCache(cache_folder() / "encoders", key)

    def _call(self, texts: list[str]) -> Vectors:
        """Encode texts: (k, dimension)."""
        from torch import OutOfMemoryError

        # an unpaired surrogate is not part of any word, and tokenizers refuse it
        texts = [text.encode(errors="replace").decode() for text in texts]
        try:
            output = self._function(texts)
        except OutOfMemoryError:
            raise VHEError(
                f"the encoder {shown(self.name)} ran out of memory with {len(texts)} texts at a "
                f"time on {self.device}; use a smaller encoder batch."
            ) from None
        if hasattr(output, "detach"):  # a tensor
            output = output.detach().float().cpu()
        try:
            vectors = np.asarray(output, dtype=np.float32)
        except (TypeError, ValueError):
            vectors = np.empty(0, dtype=np.float32)
        known = self.__dict__.get("_probe")  # not before the first call
        width = len(known) if known is not None else vectors.shape[1] if vectors.ndim == 2 else 0
        if vectors.shape != (len(texts), width) or not width:
            raise VHEError(
                f"the encoder {shown(self.name)} returned the shape {vectors.shape} for "
                f"{len(texts)} texts; it must return ({len(texts)}, {width or 'k'}) numbers."
            )
        if not np.isfinite(vectors).all():
            row = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
            raise VHEError(
                f"the encoder {shown(self.name)} returned NaN or infinite values for the text "
                f"{shown(texts[row])}."
            )
        return vectors


def matching_encoder(
    identity: EncoderIdentity,
    encoder: str | PathLike[str] | Encode | None = None,
    **options: Any,
) -> TextEncoder:
    """Return the encoder of a fitted model, after checking that it is the same.

    Parameters
    ----------
    identity : of the encoder of the fit
    encoder : replaces the one that `identity` names, for example a folder that was moved
    **options : of `TextEncoder`
    """
    if encoder is not None:
        found = TextEncoder(encoder, **options)
    elif not identity.revision:
        raise VHEError(
            f"the model was fitted with the function {shown(identity.name)} as encoder; give it "
            "by encoder=."
        )
    elif identity.revision.startswith("sha256:"):
        if not Path(identity.name).is_dir():
            raise VHEError(
                f"the model was fitted with the encoder in {identity.name}, which does not exist; "
                "give its folder or name by encoder=."
            )
        found = TextEncoder(identity.name, **options)
    else:
        found = TextEncoder(identity.name, revision=identity.revision, **options)
    identity.check(found.identity)
    return found
