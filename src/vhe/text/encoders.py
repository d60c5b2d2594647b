"""Pretrained text encoders: one vector per text, encoded once and then read from a cache.

An encoder is a sentence-transformers model, by name or folder, or a function from a list of texts
to an array. It is loaded only when a text is not in the cache (`vector_cache.py`): a second fit
neither loads it nor needs it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from time import monotonic
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from vhe.data.attributes import Vectors
from vhe.errors import VHEError
from vhe.runtime.arrays import unit_rows
from vhe.runtime.checks import is_integer
from vhe.runtime.files import cache_folder
from vhe.runtime.messages import shortened, shown
from vhe.text.vector_cache import VectorCache, text_digests

Encode = Callable[[list[str]], Any]  # k texts to an array (k, dimension)

CHUNK = 16_384  # texts that are looked up, sorted by length and encoded at a time
SECONDS_BETWEEN_WRITES = 1.0  # an interrupted encoding loses no more than this
MODEL_FILES = ("modules.json", "config.json")  # one of them is in every model
PROBE = "Each vertex of the network carries a text, and linked vertices have similar texts."
PROBE_VALUES = 16
PROBE_TOLERANCE = 0.05  # devices and half precision differ by less, other models by more


@dataclass(frozen=True)
class EncoderIdentity:
    """What tells whether an encoder is the one that a model was fitted with.

    Attributes
    ----------
    name : name or folder of the model, or name of the function
    revision : commit of a downloaded model, "sha256:" and a digest of the files of a folder, or
        empty for a function
    dimension : of the vectors
    probe : first components of the vector of `PROBE`, scaled to the length √dimension; they
        identify a model as a hash would, but allow for the rounding of another device
    """

    name: str
    revision: str
    dimension: int
    probe: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the identity as values that JSON can store."""
        return asdict(self) | {"probe": list(self.probe)}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Self:
        """Restore an identity."""
        try:
            name, revision = stored["name"], stored["revision"]
            probe = tuple(map(float, stored["probe"]))
            if isinstance(name, str) and isinstance(revision, str) and np.isfinite(probe).all():
                return cls(name, revision, int(stored["dimension"]), probe)
        except (LookupError, TypeError, ValueError):
            pass
        raise VHEError("the description of the encoder is damaged; fit the model again.")

    def check(self, given: EncoderIdentity) -> None:
        """Raise `VHEError` unless the encoder `given` has the same vectors as this one.

        The vector of `PROBE` decides: a model may have been moved or downloaded again.
        """
        difference = ""
        if given.dimension != self.dimension:
            difference = f"has {given.dimension} dimensions instead of {self.dimension}"
        elif not np.allclose(given.probe, self.probe, rtol=0, atol=PROBE_TOLERANCE):
            difference = "encodes the same text differently"
        if difference:
            raise VHEError(
                f"the model was fitted with the encoder {shown(self.name)}, but "
                f"{shown(given.name)} {difference}; use the encoder of the fit, or fit again."
            )


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
        self.device, self.batch, self.download = device, int(batch), download
        self._function: Encode | None = None
        self._folder: Path | None = None
        self._given_revision = revision
        if isinstance(encoder, str | PathLike):
            self.name = os.fspath(encoder)
            path = Path(self.name).expanduser()
            if path.is_dir():
                if not any((path / file).is_file() for file in MODEL_FILES):
                    raise VHEError(
                        f"the encoder folder {self.name} has neither {' nor '.join(MODEL_FILES)}; "
                        "give the folder of a sentence-transformers model."
                    )
                self._folder, self.name = path, str(path.resolve())
            elif isinstance(encoder, PathLike) or self.name.startswith((".", "~", os.sep)):
                raise VHEError(f"the encoder folder {self.name} does not exist; check the path.")
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

    @cached_property
    def revision(self) -> str:
        """Commit, or digest of the files, of a model; empty for a function."""
        if self._function is not None:
            return ""
        if self._folder is not None:
            return f"sha256:{_folder_digest(self._folder)}"
        commit = self._commit()
        if commit is None:
            _ = self._model  # downloads it
            commit = self._commit()
        return commit or self._given_revision or "main"

    @cached_property
    def identity(self) -> EncoderIdentity:
        """What a model folder stores of the encoder."""
        vector = self._probe[None].astype(np.float64)
        scaled = unit_rows(vector)[0] * vector.shape[1] ** 0.5
        probe = tuple(scaled[:PROBE_VALUES].round(4).tolist())
        return EncoderIdentity(self.name, self.revision, len(self._probe), probe)

    @property
    def dimension(self) -> int:
        """Number of components of a vector."""
        return len(self._probe)

    def encode(
        self,
        texts: Sequence[str],
        progress: Callable[[int, int], None] | None = None,
        *,
        cache: bool = True,
    ) -> Vectors:
        """Return the vectors of texts, zero for those without any character: (n, dimension).

        Parameters
        ----------
        texts : sequence of str, n
        progress : called with the number of texts that are done and of all
        cache : False for texts that will not occur again
        """
        result = np.empty((len(texts), self.dimension), dtype=np.float32)
        done = 0
        for chunk in self.chunks(texts, progress, cache=cache):
            result[done : done + len(chunk)] = chunk
            done += len(chunk)
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
        # a folder may be moved: its files alone identify it
        model = self.revision if self._folder else f"{self.name}@{self.revision}"
        return VectorCache(cache_folder() / "encoders", model)

    def _call(self, texts: list[str]) -> Vectors:
        """Encode texts: (k, dimension)."""
        from torch import OutOfMemoryError

        # an unpaired surrogate is not part of any word, and tokenizers refuse it
        texts = [text.encode(errors="replace").decode() for text in texts]
        try:
            output = (self._function or self._encode_by_model)(texts)
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

    def _encode_by_model(self, texts: list[str]) -> Any:
        return self._model.encode(texts, batch_size=len(texts), show_progress_bar=False)

    # --- sentence-transformers

    @cached_property
    def _model(self) -> Any:
        """The loaded SentenceTransformer."""
        from vhe.runtime.device import find_device

        device = str(find_device(self.device))
        try:
            from sentence_transformers import SentenceTransformer
            from transformers.utils import logging
        except ImportError:
            raise self._not_installed() from None
        bars = logging.is_progress_bar_enabled()
        logging.disable_progress_bar()
        try:
            if self._folder is not None:
                return SentenceTransformer(str(self._folder), device=device, local_files_only=True)
            return SentenceTransformer(
                self._repository,
                device=device,
                revision=self._commit() or self._given_revision,
                local_files_only=not self.download,
            )
        except Exception as error:  # of several libraries, for damaged files of any kind
            raise self._not_loaded(error) from error
        finally:
            if bars:
                logging.enable_progress_bar()

    @property
    def _repository(self) -> str:
        return self.name if "/" in self.name else f"sentence-transformers/{self.name}"

    def _commit(self) -> str | None:
        """The commit of the downloaded model; None if it is not downloaded."""
        try:
            from huggingface_hub import try_to_load_from_cache
            from huggingface_hub.errors import HFValidationError
        except ImportError:
            raise self._not_installed() from None
        for file in MODEL_FILES:
            try:
                path = try_to_load_from_cache(self._repository, file, revision=self._given_revision)
            except HFValidationError:
                return None  # not the name of a repository
            if isinstance(path, str):
                return Path(path).parent.name
        return None

    def _not_installed(self) -> VHEError:
        return VHEError(
            f"the encoder {shown(self.name)} needs sentence-transformers; install vhe[encoders]."
        )

    def _not_loaded(self, error: Exception) -> VHEError:
        reason = shortened(str(error).strip().split("\n")[0] or type(error).__name__, 120)
        reason = reason.rstrip(".")
        if self._folder is not None:
            return VHEError(
                f"{self.name} cannot be loaded as a sentence-transformers model ({reason}); give "
                "the folder of another one, or its name."
            )
        if not self.download:
            return VHEError(
                f"the encoder {shown(self.name)} is not downloaded; download it by "
                f"'hf download {self._repository}', or give a folder that contains it."
            )
        return VHEError(
            f"the encoder {shown(self.name)} cannot be downloaded ({reason}); check its name and "
            "the network connection, or give a folder that contains it."
        )


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


def _folder_digest(folder: Path) -> str:
    """Digest of the names and contents of the files of a model, without its documentation."""
    total = hashlib.sha256()
    try:
        files = [
            Path(place, name)
            for place, _, names in os.walk(folder, followlinks=True)
            for name in names
        ]
        for path in sorted(files):
            relative = path.relative_to(folder)
            if path.suffix != ".md" and not any(part.startswith(".") for part in relative.parts):
                with path.open("rb") as file:
                    content = hashlib.file_digest(file, "sha256").digest()
                total.update(hashlib.sha256(relative.as_posix().encode()).digest() + content)
    except OSError as error:
        raise VHEError(f"{folder} cannot be read: {error.strerror or error}.") from error
    return total.hexdigest()
