"""Arrays that are computed from a model and stored in its folder: they belong to that model only.

A file is added by writing the folder anew, with links to its other files, so that readers find the
folder with it or without it, and every file verified.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vhe.errors import VHEError
from vhe.storage.arrays import array_file, read_arrays
from vhe.storage.folder import Content, open_folder, write_folder
from vhe.storage.model_folder import MODEL

EXTENSION = ".derived"
Arrays = dict[str, NDArray[Any]]


def fingerprint(folder: Path) -> str:
    """What distinguishes the model in a folder from another one, whatever was derived from it."""
    with open_folder(folder, MODEL) as opened:
        return _fingerprint(opened.entries)


def _fingerprint(entries: Mapping[str, Mapping[str, Any]]) -> str:
    own = sorted((k, e["sha256"]) for k, e in entries.items() if not k.endswith(EXTENSION))
    return hashlib.sha256(repr(own).encode()).hexdigest()


def read_derived(folder: Path, model: str, name: str) -> Arrays | None:
    """Read arrays; None if there are none for the model with this fingerprint."""
    with open_folder(folder, MODEL) as opened:
        file = name + EXTENSION
        if _fingerprint(opened.entries) != model or file not in opened.entries:
            return None
        found = read_arrays(opened.path(file), f"{folder}/{file}")
        return {key: np.array(values) for key, values in found.items()}


def write_derived(folder: Path, model: str, name: str, arrays: Arrays) -> None:
    """Store arrays with the model of this fingerprint.

    Raises `VHEError` if the folder cannot be written, or contains another model.
    """
    folder = Path(os.path.realpath(folder))
    with open_folder(folder, MODEL) as opened:
        if _fingerprint(opened.entries) != model:
            raise VHEError(f"{folder}: the folder now contains another model")
        files: dict[str, Content] = {
            file: _link(folder / file, entry["sha256"]) for file, entry in opened.entries.items()
        }
    write_folder(folder, files | {name + EXTENSION: array_file(arrays)}, MODEL)


def _link(source: Path, digest: str) -> Callable[[Path], None]:
    """A function that links or copies a file, which must have this checksum."""

    def write(path: Path) -> None:
        try:
            os.link(source, path)
        except OSError:  # a file system without links
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(source, path)
        with open(path, "rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != digest:
                raise VHEError(f"{source}: the file has changed since it was written")

    return write
