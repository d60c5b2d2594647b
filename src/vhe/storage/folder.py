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
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

from vhe.errors import VHEError
from vhe.runtime.files import physical_memory
from vhe.runtime.messages import counted, listed
from vhe.storage.locks import folder_lock

FORMAT = 2
MANIFEST = "MANIFEST.json"
FILE_NAME = re.compile(r"[\w-][\w.-]{0,59}")  # of a file in a folder
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
    temporary, previous = _temporary(folder), _previous(folder)
    with folder_lock(folder, WRITING):
        _refuse_foreign_content(folder)
        for path in _leftovers(folder):
            shutil.rmtree(path, ignore_errors=True)
        try:
            temporary.mkdir()
            entries = {name: _write_file(temporary / name, files[name]) for name in sorted(files)}
            manifest = {"format": FORMAT, "kind": kind, "files": entries}
            _write_file(temporary / MANIFEST, json_bytes(manifest))
            sync_folder(temporary)
            if os.path.exists(folder):
                folder.rename(previous)
            temporary.rename(folder)
            sync_folder(folder.parent)
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
        path.write_bytes(content)
    else:
        content(path)
    with open(path, "rb+") as file:
        os.fsync(file.fileno())
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return {"bytes": os.fstat(file.fileno()).st_size, "sha256": digest}


def check_replaceable(folder: Path) -> None:
    """Raise `VHEError` unless `write_folder` can create or replace ``folder``.

    Tries the same steps (lock file, temporary folder, rename) without changing the folder, so that
    a mount point, a name that is too long or foreign files are found before the work, not after.
    """
    folder = restore_interrupted_write(folder)
    probe = _temporary(folder)
    with folder_lock(folder, WRITING):
        _refuse_foreign_content(folder)
        try:
            probe.mkdir()
            if os.path.exists(folder):
                # A folder cannot be renamed to the name of one that is not empty. Whatever forbids
                # renaming this folder at all (a mount point, missing rights) is reported first.
                (probe / MANIFEST).touch()
                folder.rename(probe)
            else:
                probe.rename(folder)
                folder.rename(probe)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                return
            reason = error.strerror or str(error)
            if error.errno == errno.EBUSY:
                reason += ": it is a mount point or in use"
            raise VHEError(
                f"{folder}: the folder cannot be written ({reason}); choose another folder"
            ) from error
        finally:
            shutil.rmtree(probe, ignore_errors=True)


@dataclass(frozen=True)
class Folder:
    """The files of a folder as one `write_folder` wrote them, each verified when it is accessed.

    All files are open, so that they stay available, and consistent with each other, if the folder
    is replaced.
    """

    folder: Path
    files: dict[str, BufferedReader]
    entries: dict[str, Entry]

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        with self._rewound(name) as file:
            data = file.read(self.entries[name]["bytes"] + 1)
            self._verify(name, hashlib.sha256(data).hexdigest())
            return data

    def path(self, name: str, *, verify: bool = True) -> Path:
        """Return a path at which a file can be opened or mapped while this folder is open."""
        with self._rewound(name) as file:
            if verify:
                self._verify(name, hashlib.file_digest(file, "sha256").hexdigest())
            # by its descriptor (Linux): the same file even if the folder is replaced
            descriptor = Path(f"/proc/self/fd/{file.fileno()}")
            return descriptor if descriptor.exists() else self.folder / name

    @contextlib.contextmanager
    def _rewound(self, name: str) -> Iterator[BufferedReader]:
        if name not in self.files:
            raise VHEError(f"{self.folder}: the folder has no {name}; restore a copy or fit again")
        with _readable(self.folder / name):
            self.files[name].seek(0)
            yield self.files[name]

    def _verify(self, name: str, digest: str) -> None:
        if digest != self.entries[name]["sha256"]:
            raise _changed(self.folder / name)


@contextlib.contextmanager
def open_folder(folder: Path, kind: str) -> Iterator[Folder]:
    """Open a folder for reading in a with block; wait for a writer that is just replacing it."""
    deadline = time.monotonic() + WRITER_TIMEOUT
    while True:
        folder = restore_interrupted_write(folder)
        before = _identity(folder)
        with contextlib.ExitStack() as stack:
            try:
                entries = _checked_manifest(folder, kind)
                files = {
                    name: _open_listed(folder / name, entries[name], stack) for name in entries
                }
            except VHEError:
                replaced = _identity(restore_interrupted_write(folder)) != before
                if not replaced or time.monotonic() > deadline:
                    raise
                continue
            if _identity(folder) == before:  # otherwise the files may be of two writes
                yield Folder(folder, files, entries)
                return


def _open_listed(path: Path, entry: Entry, stack: contextlib.ExitStack) -> BufferedReader:
    """Open a file that the manifest lists, until the stack is closed."""
    file = _open_regular(path)
    if file is None:
        raise VHEError(f"{path}: this file of the folder is missing; restore a copy or fit again")
    stack.enter_context(file)
    if os.fstat(file.fileno()).st_size != entry["bytes"]:
        raise _changed(path)
    return file


def read_folder(folder: Path, kind: str) -> dict[str, bytes]:
    """Return the verified content of every file of a folder."""
    with open_folder(folder, kind) as opened:
        return {name: opened.read(name) for name in opened}


def restore_interrupted_write(folder: Path) -> Path:
    """Rename a folder back if its writer was killed between its two renames; return its path."""
    folder = Path(os.path.realpath(folder))
    if not os.path.exists(folder) and os.path.exists(_previous(folder) / MANIFEST):
        # waits for a writer that is at this moment between its renames
        with contextlib.suppress(VHEError), folder_lock(folder, WRITING, WRITER_TIMEOUT):
            _rename_back(folder)
    return folder


def discard(folder: Path) -> None:
    """Delete a folder that `write_folder` wrote, in one step; leave anything else unchanged."""
    folder = Path(os.path.realpath(folder))
    temporary = _temporary(folder)
    with contextlib.suppress(OSError, VHEError), folder_lock(folder, WRITING):
        _refuse_foreign_content(folder)
        folder.rename(temporary)
        shutil.rmtree(temporary, ignore_errors=True)


def leftovers(folder: Path) -> list[Path]:
    """List the folders that killed writers of ``folder`` left next to it.

    The next writer deletes them. The list is empty while another process writes the folder.
    """
    with contextlib.suppress(VHEError), folder_lock(folder, WRITING):
        return _leftovers(Path(os.path.realpath(folder)))
    return []


def _leftovers(folder: Path) -> list[Path]:
    """List the folders of killed writers; the caller holds the lock."""
    temporary = re.compile(rf"\.{re.escape(folder.name)}\.[0-9a-f]{{8}}\.part")
    with _readable(folder.parent):
        found = [path for path in folder.parent.iterdir() if temporary.fullmatch(path.name)]
    previous = _previous(folder)
    return found + [previous] * (os.path.exists(folder) and os.path.exists(previous))


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


def _refuse_foreign_content(folder: Path) -> None:
    """Allow a new path, an empty folder, or a folder of which the manifest lists every file."""
    with _readable(folder):
        if not os.path.exists(folder):
            return
        if not os.path.isdir(folder):
            raise VHEError(f"{folder}: this is a file; choose a new or an empty folder")
        found = sorted(folder.iterdir())
    if not found:
        return
    manifest = _read_manifest(folder)
    if manifest is None:
        raise VHEError(
            f"{folder}: contains other files ({listed(path.name for path in found)}); choose a new "
            "or an empty folder"
        )
    own = {MANIFEST, *manifest["files"]}
    foreign = [path.name for path in found if path.name not in own or path.is_dir()]
    if foreign:
        raise VHEError(
            f"{folder}: contains {counted(len(foreign), 'file or folder', 'files or folders')} "
            f"that {MANIFEST} does not list ({listed(foreign)}); move them or choose another folder"
        )


def _read_manifest(folder: Path) -> dict[str, Any] | None:
    """Return the manifest of a folder after a check of its structure; None if there is none."""
    file = _open_regular(folder / MANIFEST)
    if file is None:
        return None
    with file, _readable(folder / MANIFEST):
        raw = file.read(MAX_MANIFEST + 1)
    try:
        manifest: dict[str, Any] = json.loads(raw) if len(raw) <= MAX_MANIFEST else {}
        sound = (
            raw == json_bytes(manifest)  # so that every changed byte is detected
            and type(manifest["format"]) is int
            and manifest["format"] >= 1
            and isinstance(manifest["kind"], str)
            and all(
                FILE_NAME.fullmatch(name)
                and type(entry["bytes"]) is int
                and isinstance(entry["sha256"], str)
                for name, entry in manifest["files"].items()
            )
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        sound = False
    if not sound:
        raise VHEError(
            f"{folder / MANIFEST}: the manifest is damaged; restore a copy, or delete the folder "
            "and fit again"
        )
    return manifest


def _checked_manifest(folder: Path, kind: str) -> dict[str, Entry]:
    """Return the entries of the manifest of a folder of this kind and format."""
    if not os.path.isdir(folder):
        raise VHEError(f"{folder}: no such {kind} folder")
    manifest = _read_manifest(folder)
    if manifest is None:
        raise VHEError(
            f"{folder}: not a {kind} folder: it has no {MANIFEST}; choose another folder"
        )
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


def sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):  # some file systems cannot flush a folder
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def json_bytes(value: Any) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode(errors="surrogatepass")
