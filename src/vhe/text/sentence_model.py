"""A sentence-transformers model: where it is, which revision it has, and how it is loaded."""

from __future__ import annotations

import hashlib
import os
from functools import cached_property
from pathlib import Path
from typing import Any

from vhe.errors import VHEError
from vhe.runtime.messages import shortened, shown

MODEL_FILES = ("modules.json", "config.json")  # one of them is in every model


class SentenceModel:
    """A model by name or folder; it is loaded by the first call of `encode`.

    Parameters
    ----------
    name : str
        Name, such as ``all-MiniLM-L6-v2``, or folder; a folder that exists takes precedence.
    is_path : bool
        Whether `name` cannot be anything but a folder.
    revision, device, download
        As in `vhe.text.encoders.TextEncoder`.
    """

    def __init__(
        self, name: str, *, is_path: bool, revision: str | None, device: str, download: bool
    ) -> None:
        self.name, self.device, self.download = name, device, download
        self._given_revision = revision
        self._folder: Path | None = None
        path = Path(name).expanduser()
        if path.is_dir():
            if not any((path / file).is_file() for file in MODEL_FILES):
                raise VHEError(
                    f"the encoder folder {name} has neither {' nor '.join(MODEL_FILES)}; "
                    "give the folder of a sentence-transformers model."
                )
            self._folder, self.name = path, str(path.resolve())
        elif is_path or name.startswith((".", "~", os.sep)):
            raise VHEError(f"the encoder folder {name} does not exist; check the path.")

    @cached_property
    def revision(self) -> str:
        """Commit of a downloaded model, or digest of the files of a folder."""
        if self._folder is not None:
            return f"sha256:{_folder_digest(self._folder)}"
        commit = self._commit()
        if commit is None:
            self.load()  # downloads it
            commit = self._commit()
        return commit or self._given_revision or "main"

    @property
    def cache_key(self) -> str:
        """The key of cached vectors. A folder can be moved: the digest of its files is its key."""
        return self.revision if self._folder else f"{self.name}@{self.revision}"

    def load(self) -> None:
        """Load the model, if it is not loaded."""
        _ = self._model

    def encode(self, texts: list[str]) -> Any:
        """Vectors of texts: (k, dimension)."""
        return self._model.encode(texts, batch_size=len(texts), show_progress_bar=False)

    @cached_property
    def _model(self) -> Any:
        """The loaded SentenceTransformer."""
        from vhe.runtime.device import find_device

        device = str(find_device(self.device))
        try:
            from huggingface_hub import HfApi
            from sentence_transformers import SentenceTransformer
            from transformers.utils import logging
        except ImportError:
            raise self._not_installed() from None
        bars = logging.is_progress_bar_enabled()
        logging.disable_progress_bar()
        try:
            if self._folder is not None:
                return SentenceTransformer(str(self._folder), device=device, local_files_only=True)
            commit = self._commit()
            if commit is None and self.download:
                # fails at once, where the download of each file is retried for half a minute
                HfApi().model_info(self._repository, revision=self._given_revision, timeout=10)
            return SentenceTransformer(
                self._repository,
                device=device,
                revision=commit or self._given_revision,
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


def _folder_digest(folder: Path) -> str:
    """Digest of the names and contents of the files of a model, without its documentation."""
    total = hashlib.sha256()
    try:
        files, seen = [], set()
        for place, folders, names in os.walk(folder, followlinks=True):
            real = os.path.realpath(place)
            if real in seen:  # a link to a folder that was read already, perhaps above it
                folders.clear()
                continue
            seen.add(real)
            files += [Path(place, name) for name in names]
        for path in sorted(files):
            relative = path.relative_to(folder)
            if path.suffix != ".md" and not any(part.startswith(".") for part in relative.parts):
                if not path.is_file():
                    raise VHEError(f"{path} is not a regular file; give the folder of a model.")
                with path.open("rb") as file:
                    content = hashlib.file_digest(file, "sha256").digest()
                total.update(hashlib.sha256(relative.as_posix().encode()).digest() + content)
    except OSError as error:
        raise VHEError(f"{folder} cannot be read: {error.strerror or error}.") from error
    return total.hexdigest()
