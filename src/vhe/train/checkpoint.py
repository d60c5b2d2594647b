"""Folders that are written whole or not at all, and read only if every byte is as it was written.

A model folder and a training folder are both a few plain files and a MANIFEST.json with the
SHA-256 of each. Nothing in them is ever executed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from vhe.errors import VHEError

FORMAT = 1
MANIFEST = "MANIFEST.json"
LONGEST_NAME = 60  # of a file in a folder


def write_folder(folder: Path, files: Mapping[str, bytes], kind: str) -> None:
    """Write the files and their manifest as ``folder``, replacing what was there in one step.

    They are written beside the folder first and flushed to disk; an older folder is renamed away
    only then, and deleted last. At every moment one of the two is complete: see `recovered`.
    """
    folder = Path(os.path.realpath(folder))  # a symbolic link to a folder stays one
    _refuse_what_is_not_ours(folder)
    temporary = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.part")
    manifest = {
        "format": FORMAT,
        "kind": kind,
        "files": {
            name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            for name, data in sorted(files.items())
        },
    }
    try:
        temporary.mkdir(parents=True)
        for name, data in {**files, MANIFEST: json_bytes(manifest)}.items():
            with open(temporary / name, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        _sync_folder(temporary)
        previous = _previous(folder)
        if folder.exists():
            shutil.rmtree(previous, ignore_errors=True)
            folder.rename(previous)
        temporary.rename(folder)
        _sync_folder(folder.parent)
        shutil.rmtree(previous, ignore_errors=True)
    except OSError as error:
        recovered(folder)
        raise VHEError(
            f"{folder}: the folder cannot be written ({error.strerror or error}); "
            "nothing that was there has changed"
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def read_folder(folder: Path, kind: str) -> dict[str, bytes]:
    """Every file of a folder, after all of them have been checked."""
    folder = recovered(folder)
    if not folder.is_dir():
        raise VHEError(f"{folder}: there is no such {kind} folder")
    manifest = folder / MANIFEST
    if manifest.is_symlink() or not manifest.is_file():
        raise VHEError(f"{folder}: this is not a {kind} folder, it has no {MANIFEST}")
    raw = _bytes(manifest)
    files = _listed(folder, raw, kind)
    return {name: _checked(folder, name, entry) for name, entry in files.items()}


def recovered(folder: Path) -> Path:
    """Give a folder its name back if the writer was stopped between its two renames."""
    folder = Path(os.path.realpath(folder))
    previous = _previous(folder)
    if not folder.exists() and (previous / MANIFEST).exists():
        with contextlib.suppress(OSError):
            previous.rename(folder)
    return folder


def _refuse_what_is_not_ours(folder: Path) -> None:
    """Only a new place, an empty folder or one that was written here may be replaced."""
    if not folder.exists() or (folder / MANIFEST).is_file():
        return
    if not folder.is_dir() or any(folder.iterdir()):
        raise VHEError(f"{folder} holds something else: name a new or an empty folder")


def _previous(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.previous")


def _listed(folder: Path, raw: bytes, kind: str) -> dict[str, dict[str, Any]]:
    """The files a manifest names, if it is a manifest and names only files of this folder."""
    damaged = f"{folder / MANIFEST}: the manifest is damaged; take a copy or fit the model again"
    try:
        manifest = json.loads(raw)
        written_format, written_kind = manifest["format"], manifest["kind"]
        files: dict[str, dict[str, Any]] = manifest["files"]
        sound = isinstance(written_format, int) and all(
            isinstance(entry["bytes"], int) and isinstance(entry["sha256"], str)
            for entry in files.values()
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise VHEError(damaged) from None
    if not sound:
        raise VHEError(damaged)
    if written_format > FORMAT:
        raise VHEError(
            f"{folder}: it was written in format {written_format} and this version of vhe reads "
            f"up to format {FORMAT}: install a newer vhe"
        )
    if written_kind != kind:
        raise VHEError(f"{folder}: this is a {written_kind} folder, not a {kind} folder")
    for name in files:
        if not name or name in (".", "..") or "/" in name or "\\" in name or "\0" in name:
            raise VHEError(f"{folder / MANIFEST}: it names {name!r}, which is outside the folder")
        if len(name) > LONGEST_NAME:
            raise VHEError(damaged)
    return files


def _checked(folder: Path, name: str, entry: dict[str, Any]) -> bytes:
    path = folder / name
    if path.is_symlink() or not path.is_file():
        raise VHEError(f"{path}: this file of the folder is missing; take a copy or fit again")
    data = _bytes(path) if path.stat().st_size == entry["bytes"] else None
    if data is None or hashlib.sha256(data).hexdigest() != entry["sha256"]:
        raise VHEError(
            f"{path}: the file has changed since it was written; take a copy or fit again"
        )
    return data


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise VHEError(f"{path}: the file cannot be read ({error.strerror or error})") from None


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):  # some file systems cannot flush a folder
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def json_bytes(value: Any) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode(errors="surrogatepass")


def tensor_bytes(tensors: Mapping[str, Any]) -> bytes:
    """Tensors as safetensors; the same tensors give the same bytes."""
    from safetensors.torch import save

    return save({name: tensors[name].detach().cpu().contiguous() for name in sorted(tensors)})


def read_tensors(data: bytes, where: str) -> dict[str, Any]:
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        return load(data)
    except (SafetensorError, ValueError, OverflowError, KeyError) as error:
        raise VHEError(f"{where}: these are not tensors ({error})") from None


def encode_key(value: Any) -> Any:
    """A vertex id or a label as JSON, so that it comes back with its type.

    >>> decode_key(encode_key(("p", 12))) == ("p", 12)
    True
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, tuple):
        return {"tuple": [encode_key(part) for part in value]}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    raise VHEError(
        f"the id or label {value!r} is a {type(value).__name__}, which cannot be saved: "
        "use strings, numbers, or tuples of them"
    )


def decode_key(value: Any) -> Any:
    if isinstance(value, dict):
        if "tuple" in value:
            return tuple(decode_key(part) for part in value["tuple"])
        return bytes.fromhex(value["bytes"])
    return value
