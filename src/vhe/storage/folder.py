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
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from vhe.errors import VHEError
from vhe.runtime.files import physical_memory

FORMAT = 1
MANIFEST = "MANIFEST.json"
LONGEST_NAME = 60  # of a file in a folder
LARGEST_MANIFEST = 1 << 20  # bytes
SECONDS_FOR_A_WRITER = 10.0  # so long a reader waits for one that is at work


def write_folder(folder: Path, files: Mapping[str, bytes], kind: str) -> None:
    """Write the files and their manifest as ``folder``, atomic_write what was there in one step.

    They are written beside the folder first and flushed to disk; an older folder is renamed away
    only then, and deleted last. At every moment one of the two is complete: see `restore_interrupted_write`.
    """
    folder = Path(os.path.realpath(folder))  # a symbolic link to a folder stays one
    with folder_lock(folder, "writing"):
        _refuse_what_is_not_ours(folder)
        _write_claimed(folder, files, kind)


def _write_claimed(folder: Path, files: Mapping[str, bytes], kind: str) -> None:
    _remove_leftovers(folder)
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
        _give_back(folder)
        raise VHEError(
            f"{folder}: the folder cannot be written ({error.strerror or error}); "
            "nothing that was there has changed"
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def read_folder(folder: Path, kind: str) -> dict[str, bytes]:
    """Every file of a folder, after all of them have been checked."""
    patience = time.monotonic() + SECONDS_FOR_A_WRITER
    while True:
        folder = restore_interrupted_write(folder)
        found = _identity(folder)
        try:
            return _read(folder, kind)
        except VHEError:
            replaced = _identity(restore_interrupted_write(folder)) != found  # while it was read
            if not replaced or time.monotonic() > patience:
                raise


def _read(folder: Path, kind: str) -> dict[str, bytes]:
    if not folder.is_dir():
        raise VHEError(f"{folder}: there is no such {kind} folder")
    manifest = folder / MANIFEST
    if manifest.is_symlink() or not manifest.is_file():
        raise VHEError(f"{folder}: this is not a {kind} folder, it has no {MANIFEST}")
    files = _listed(folder, _bytes(manifest, LARGEST_MANIFEST + 1), kind)
    return {name: _checked(folder, name, entry) for name, entry in files.items()}


def restore_interrupted_write(folder: Path) -> Path:
    """Give a folder its name back if the writer was stopped between its two renames."""
    folder = Path(os.path.realpath(folder))
    previous = _previous(folder) / MANIFEST
    patience = time.monotonic() + SECONDS_FOR_A_WRITER
    while not folder.exists() and previous.exists() and time.monotonic() < patience:
        try:
            with folder_lock(folder, "writing"):
                _give_back(folder)
        except VHEError:  # it is between them right now
            time.sleep(0.01)
    return folder


def discard(folder: Path) -> None:
    """Delete a folder so that it is never seen half deleted."""
    folder = Path(os.path.realpath(folder))
    away = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.part")
    with contextlib.suppress(OSError):
        folder.rename(away)
    shutil.rmtree(away, ignore_errors=True)


def _give_back(folder: Path) -> None:
    previous = _previous(folder)
    if not folder.exists() and (previous / MANIFEST).exists():
        with contextlib.suppress(OSError):
            previous.rename(folder)


def _identity(folder: Path) -> tuple[int, int] | None:
    """What tells a folder from another one that took its name."""
    try:
        about = folder.stat()
    except OSError:
        return None
    return about.st_ino, about.st_ctime_ns


@contextlib.contextmanager
def folder_lock(folder: Path, purpose: str) -> Iterator[None]:
    """Keep other processes from claiming a folder for the same purpose inside a with block.

    The claim is a lock of the operating system on a file beside the folder: it ends with the
    process, however that ends.
    """
    folder = Path(os.path.realpath(folder))
    path = folder.with_name(f".{folder.name}.{purpose}")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        handle = _locked(path)
    except OSError as error:
        raise VHEError(
            f"{folder}: the folder cannot be written ({error.strerror or error})"
        ) from error
    if handle is None:
        raise VHEError(
            f"{folder}: another command is writing there; wait for its end or name another folder"
        )
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()
        os.close(handle)


def _locked(path: Path) -> int | None:
    """The file at ``path``, opened and locked; None if another process has it."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _lock(handle)
            if path.exists() and os.path.samestat(os.fstat(handle), path.stat()):
                return handle
        except (BlockingIOError, PermissionError):
            os.close(handle)
            return None
        except FileNotFoundError:
            pass
        except OSError:  # a file system without locks
            return handle
        os.close(handle)  # who had it before has deleted it meanwhile


def _lock(handle: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _remove_leftovers(folder: Path) -> None:
    """Delete what writers left that were killed; whoever holds the claim is the only writer."""
    with contextlib.suppress(OSError):
        for path in folder.parent.iterdir():
            if path.name.startswith(f".{folder.name}.") and path.name.endswith(".part"):
                shutil.rmtree(path, ignore_errors=True)


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
    if len(raw) > LARGEST_MANIFEST:
        raise VHEError(damaged)
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
    if written_format < 1 or raw != json_bytes(manifest):  # not a byte may differ
        raise VHEError(damaged)
    if written_kind != kind:
        raise VHEError(f"{folder}: this is a {written_kind} folder, not a {kind} folder")
    for name in files:
        if not name or name in (".", "..") or "/" in name or "\\" in name or "\0" in name:
            raise VHEError(f"{folder / MANIFEST}: it names {name!r}, which is outside the folder")
        if len(name) > LONGEST_NAME:
            raise VHEError(damaged)
    claims = sum(entry["bytes"] for entry in files.values())
    if claims > physical_memory():
        raise VHEError(f"{folder}: its files claim {claims:,} bytes, more than the memory here")
    return files


def _checked(folder: Path, name: str, entry: dict[str, Any]) -> bytes:
    path = folder / name
    if path.is_symlink() or not path.is_file():
        raise VHEError(f"{path}: this file of the folder is missing; take a copy or fit again")
    data = _bytes(path, max(0, entry["bytes"]) + 1)
    if len(data) != entry["bytes"] or hashlib.sha256(data).hexdigest() != entry["sha256"]:
        raise VHEError(
            f"{path}: the file has changed since it was written; take a copy or fit again"
        )
    return data


def _bytes(path: Path, most: int) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(min(most, os.fstat(file.fileno()).st_size))
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
