"""Folders that are replaced atomically and verified when they are read.

A model folder and a training folder are both a few plain files and a MANIFEST.json with the
size and SHA-256 of each. Nothing in them is ever executed.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any, Self

import numpy as np

from vhe.errors import VHEError
from vhe.runtime.files import physical_memory
from vhe.runtime.messages import counted, listed
from vhe.storage.locks import folder_lock

FORMAT = 2
MANIFEST = "MANIFEST.json"
MAX_NAME = 60  # characters of a file name in a folder
MAX_MANIFEST = 1 << 20  # bytes
WRITER_TIMEOUT = 10.0  # seconds for which a reader waits while the folder is being replaced
WRITING = "writing"  # purpose of the lock

Content = bytes | Callable[[Path], None]  # the bytes of a file, or a function that writes it
Entry = dict[str, Any]  # size and checksum of a file in the manifest


def write_folder(folder: Path, files: Mapping[str, Content], kind: str) -> None:
    """Write files and their manifest as ``folder``, which replaces an older one in one step.

    The files are first written to a temporary folder next to it and flushed to disk; only then is
    the older folder renamed, and deleted last. At every moment one of the two is complete: see
    `restore_interrupted_write`. A large file is given as a function that writes it to a path.
    """
    folder = Path(os.path.realpath(folder))  # a symbolic link to a folder remains a link
    with folder_lock(folder, WRITING):
        _refuse_foreign_content(folder)
        _remove_leftovers(folder)
        _write_locked(folder, files, kind)


def _write_locked(folder: Path, files: Mapping[str, Content], kind: str) -> None:
    temporary, previous = _temporary(folder), _previous(folder)
    try:
        temporary.mkdir(parents=True)
        entries = {name: _write_file(temporary / name, files[name]) for name in sorted(files)}
        manifest = {"format": FORMAT, "kind": kind, "files": entries}
        _write_file(temporary / MANIFEST, json_bytes(manifest))
        _sync_folder(temporary)
        if os.path.exists(folder):
            shutil.rmtree(previous, ignore_errors=True)
            folder.rename(previous)
        temporary.rename(folder)
        _sync_folder(folder.parent)
        shutil.rmtree(previous, ignore_errors=True)
    except OSError as error:
        _rename_back(folder)
        raise VHEError(
            f"{folder}: the folder cannot be written ({error.strerror or error}); "
            "its previous content is unchanged"
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _write_file(path: Path, content: Content) -> Entry:
    """Write and flush a file; return its entry in the manifest."""
    if isinstance(content, bytes):
        with open(path, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    content(path)
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return {"bytes": os.fstat(file.fileno()).st_size, "sha256": digest}


def check_replaceable(folder: Path) -> None:
    """Raise `VHEError` unless `write_folder` can create or replace ``folder``.

    Tries the same steps (lock file, temporary folder, rename) without changing the folder, so that
    a mount point, a name that is too long or foreign files are found before the work, not after.
    """
    folder = restore_interrupted_write(folder)
    with folder_lock(folder, WRITING):
        _refuse_foreign_content(folder)
        probe = _temporary(folder)
        try:
            probe.mkdir()
            if not os.path.exists(folder):
                probe.rename(folder)
                folder.rename(probe)
                return
            (probe / MANIFEST).touch()
            # A folder cannot be renamed to the name of one that is not empty. Whatever forbids
            # renaming this folder at all (a mount point, missing rights) is reported first.
            with contextlib.suppress(FileExistsError):
                folder.rename(probe)
                probe.rename(folder)
        except OSError as error:
            if error.errno == errno.ENOTEMPTY:
                return
            reason = error.strerror or str(error)
            if error.errno == errno.EBUSY:
                reason += ": it is a mount point or in use"
            raise VHEError(
                f"{folder}: the folder cannot be written ({reason}); choose another folder"
            ) from error
        finally:
            shutil.rmtree(probe, ignore_errors=True)


class Folder:
    """The files of a folder as one `write_folder` wrote them, each verified when it is accessed.

    All files are open, so that they stay available, and consistent with each other, if the folder
    is replaced. Close it, or use it in a with block.
    """

    def __init__(self, folder: Path, kind: str) -> None:
        self.folder = folder
        self._files: dict[str, BufferedReader] = {}
        self._verified: set[str] = set()
        try:
            self._entries = self._open(kind)
        except BaseException:
            self.close()
            raise

    def _open(self, kind: str) -> dict[str, Entry]:
        folder = self.folder
        if not os.path.isdir(folder):
            raise VHEError(f"{folder}: no such {kind} folder")
        manifest = _open_regular(folder / MANIFEST)
        if manifest is None:
            raise VHEError(f"{folder}: not a {kind} folder: it has no {MANIFEST}")
        with manifest:
            raw = manifest.read(MAX_MANIFEST + 1)
        entries = _checked_manifest(folder, raw, kind)
        for name, entry in entries.items():
            path = folder / name
            file = _open_regular(path)
            if file is None:
                raise VHEError(
                    f"{path}: this file of the folder is missing; restore a copy or fit again"
                )
            self._files[name] = file
            if os.fstat(file.fileno()).st_size != entry["bytes"]:
                raise _changed(path)
        return entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        file = self._file(name)
        with _readable(self.folder / name):
            file.seek(0)
            data = file.read(self._entries[name]["bytes"] + 1)
        self._verify(name, len(data), hashlib.sha256(data).hexdigest())
        return data

    def path(self, name: str) -> Path:
        """Return a path at which a file can be opened or mapped while this folder is open."""
        file = self._file(name)
        if name not in self._verified:
            with _readable(self.folder / name):
                file.seek(0)
                digest = hashlib.file_digest(file, "sha256").hexdigest()
                self._verify(name, os.fstat(file.fileno()).st_size, digest)
            self._verified.add(name)
        # by its descriptor (Linux): the same file even if the folder is replaced
        descriptor = Path(f"/proc/self/fd/{file.fileno()}")
        return descriptor if descriptor.exists() else self.folder / name

    def _file(self, name: str) -> BufferedReader:
        if name not in self._files:
            raise VHEError(f"{self.folder}: the folder has no {name}; restore a copy or fit again")
        return self._files[name]

    def _verify(self, name: str, size: int, digest: str) -> None:
        entry = self._entries[name]
        if (size, digest) != (entry["bytes"], entry["sha256"]):
            raise _changed(self.folder / name)


def open_folder(folder: Path, kind: str) -> Folder:
    """Open a folder for reading; wait for a writer that is just replacing it."""
    deadline = time.monotonic() + WRITER_TIMEOUT
    while True:
        folder = restore_interrupted_write(folder)
        before = _identity(folder)
        try:
            opened = Folder(folder, kind)
        except VHEError:
            replaced = _identity(restore_interrupted_write(folder)) != before
            if not replaced or time.monotonic() > deadline:
                raise
            continue
        if _identity(folder) == before:  # otherwise the files may be of two writes
            return opened
        opened.close()


def read_folder(folder: Path, kind: str) -> dict[str, bytes]:
    """Return the verified content of every file of a folder."""
    with open_folder(folder, kind) as opened:
        return {name: opened.read(name) for name in opened}


def restore_interrupted_write(folder: Path) -> Path:
    """Rename a folder back if its writer was killed between its two renames; return its path."""
    folder = Path(os.path.realpath(folder))
    previous = _previous(folder) / MANIFEST
    deadline = time.monotonic() + WRITER_TIMEOUT
    while not os.path.exists(folder) and os.path.exists(previous) and time.monotonic() < deadline:
        try:
            with folder_lock(folder, WRITING):
                _rename_back(folder)
        except VHEError:  # a writer is at this moment between its renames
            time.sleep(0.01)
    return folder


def discard(folder: Path) -> None:
    """Delete a folder that `write_folder` wrote, in one step; leave anything else unchanged."""
    folder = Path(os.path.realpath(folder))
    temporary = _temporary(folder)
    with contextlib.suppress(OSError, VHEError), folder_lock(folder, WRITING):
        _refuse_foreign_content(folder)
        folder.rename(temporary)
        shutil.rmtree(temporary, ignore_errors=True)


def _rename_back(folder: Path) -> None:
    previous = _previous(folder)
    if not os.path.exists(folder) and os.path.exists(previous / MANIFEST):
        with contextlib.suppress(OSError):
            previous.rename(folder)


def _identity(folder: Path) -> tuple[int, int] | None:
    """Return what distinguishes a folder from another one that takes its name."""
    try:
        status = folder.stat()
    except OSError:
        return None
    return status.st_ino, status.st_ctime_ns


def _temporary(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.part")


def _previous(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.previous")


def _remove_leftovers(folder: Path) -> None:
    """Delete the temporary folders of killed writers; the caller holds the lock."""
    temporary = re.compile(rf"\.{re.escape(folder.name)}\.[0-9a-f]{{8}}\.part")
    with contextlib.suppress(OSError):
        for path in folder.parent.iterdir():
            if temporary.fullmatch(path.name):
                shutil.rmtree(path, ignore_errors=True)


def _refuse_foreign_content(folder: Path) -> None:
    """Allow a new path, an empty folder, or a folder of which the manifest lists every file."""
    with _readable(folder):
        if not os.path.exists(folder):
            return
        if not os.path.isdir(folder):
            raise VHEError(f"{folder}: this is a file; choose a new or an empty folder")
        found = {path.name: path for path in folder.iterdir()}
    if not found:
        return
    manifest = _open_regular(folder / MANIFEST)
    if manifest is None:
        raise VHEError(
            f"{folder}: contains other files ({listed(sorted(found))}); choose a new or an empty "
            "folder"
        )
    with manifest:
        files = _parsed_manifest(folder, manifest.read(MAX_MANIFEST + 1))["files"]
    foreign = sorted(
        name
        for name, path in found.items()
        if name != MANIFEST and (name not in files or path.is_dir())
    )
    if foreign:
        raise VHEError(
            f"{folder}: contains {counted(len(foreign), 'file or folder', 'files or folders')} "
            f"that {MANIFEST} does not list ({listed(foreign)}); move them or choose another folder"
        )


def _parsed_manifest(folder: Path, raw: bytes) -> dict[str, Any]:
    """Return a manifest after a check of its structure."""
    damaged = VHEError(
        f"{folder / MANIFEST}: the manifest is damaged; restore a copy, or delete the folder and "
        "fit again"
    )
    if len(raw) > MAX_MANIFEST:
        raise damaged
    try:
        manifest: dict[str, Any] = json.loads(raw)
        sound = (
            type(manifest["format"]) is int
            and manifest["format"] >= 1
            and isinstance(manifest["kind"], str)
            and all(
                len(name) <= MAX_NAME
                and type(entry["bytes"]) is int
                and isinstance(entry["sha256"], str)
                for name, entry in manifest["files"].items()
            )
        )
        canonical = raw == json_bytes(manifest)  # so that every changed byte is detected
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise damaged from None
    if not sound or not canonical:
        raise damaged
    return manifest


def _checked_manifest(folder: Path, raw: bytes, kind: str) -> dict[str, Entry]:
    """Return the entries of a manifest of this format and kind whose files are in the folder."""
    manifest = _parsed_manifest(folder, raw)
    if manifest["format"] < FORMAT:
        raise VHEError(
            f"{folder}: written by the first edition of vhe (format {manifest['format']}); "
            "fit the model again"
        )
    if manifest["format"] > FORMAT:
        raise VHEError(
            f"{folder}: written in format {manifest['format']}, but this version of vhe reads "
            f"format {FORMAT}; install a newer vhe"
        )
    if manifest["kind"] != kind:
        raise VHEError(f"{folder}: this is a {manifest['kind']} folder, not a {kind} folder")
    files: dict[str, Entry] = manifest["files"]
    for name in files:
        if not name or name in (".", "..") or "/" in name or "\\" in name or "\0" in name:
            raise VHEError(f"{folder / MANIFEST}: lists {name!r}, which is outside the folder")
    size = sum(entry["bytes"] for entry in files.values())
    if size > physical_memory():
        raise VHEError(f"{folder}: its files have {size:,} bytes, more than the memory available")
    return files


def _open_regular(path: Path) -> BufferedReader | None:
    """Open a file for reading; None for a symbolic link, a pipe, or anything but a plain file."""
    with _readable(path):
        try:
            if not stat.S_ISREG(path.lstat().st_mode):
                return None
            # not blocking, not followed: in case the file has become a pipe or a link meanwhile
            flags = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
            return open(path, "rb", opener=lambda name, mode: os.open(name, mode | flags))
        except FileNotFoundError:
            return None


def _changed(path: Path) -> VHEError:
    return VHEError(
        f"{path}: the file has changed since it was written; restore a copy or fit again"
    )


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Report errors of the operating system inside a with block as those of reading ``path``."""
    try:
        yield
    except OSError as error:
        raise VHEError(f"{path}: cannot be read ({error.strerror or error})") from None


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
    """Return tensors as safetensors; the same tensors give the same bytes."""
    from safetensors.torch import save

    return save(_contiguous(tensors))


def tensor_file(tensors: Mapping[str, Any]) -> Callable[[Path], None]:
    """Return a function that writes what `tensor_bytes` returns to a path, without a copy of it."""

    def write(path: Path) -> None:
        from safetensors import SafetensorError
        from safetensors.torch import save_file

        try:
            save_file(_contiguous(tensors), path)
        except SafetensorError as error:
            raise OSError(str(error)) from None

    return write


def _contiguous(tensors: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tensors[name].detach().cpu().contiguous() for name in sorted(tensors)}


def read_tensors(source: bytes | Path, where: str) -> dict[str, Any]:
    """Return the tensors in safetensors; those of a path are mapped into memory, not copied."""
    from safetensors import SafetensorError
    from safetensors.torch import load, load_file

    try:
        return load(source) if isinstance(source, bytes) else load_file(source)
    except (SafetensorError, OSError, ValueError, OverflowError, KeyError) as error:
        raise VHEError(f"{where}: not valid safetensors ({error})") from None


def encode_key(value: Any) -> Any:
    """Return a vertex id or a label as a JSON value from which `decode_key` restores its type.

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
