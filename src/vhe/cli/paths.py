"""Checks of output paths before the work starts, so that a result can be written at the end."""

import shutil
import tempfile
from pathlib import Path

from vhe.errors import VHEError

MANIFEST = "MANIFEST.json"


def check_writable(path: Path) -> None:
    """Raise `VHEError` unless a file can be written as ``path``.

    Tries a temporary file with a name as long as that of `vhe.runtime.files.atomic_write`.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            dir=path.parent, prefix=f".{path.name}.", suffix=".part"
        ) as probe:
            probe.write(b"vhe")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise VHEError(f"{path}: cannot write: {reason}; choose another path") from None


def check_free_space(path: Path, size: float) -> None:
    """Raise `VHEError` if ``size`` bytes do not fit on the disk of ``path``."""
    free = shutil.disk_usage(path.parent).free
    if free < size:
        raise VHEError(
            f"{path}: {free / 1e6:,.0f} MB are free on this disk, but the model needs about "
            f"{size / 1e6:,.0f} MB; free some space or choose another disk"
        )


def training_folder(out: Path) -> Path:
    """Return the folder of the training checkpoints of the model in ``out``."""
    resolved = out if out.name else out.resolve()  # "." has no name
    return resolved.with_name(f"{resolved.name}.training")


def check_model_folder(out: Path, *, resume: bool, overwrite: bool) -> None:
    """Raise `VHEError` unless a model can be saved in ``out`` without unrequested data loss."""
    from vhe.storage.folder import check_replaceable, restore_interrupted_write

    if resume and overwrite:
        raise VHEError("--resume and --overwrite exclude each other: omit one of them")
    if out.is_file():
        raise VHEError(f"{out}: is a file, not a folder: choose a folder for the model")
    occupied = restore_interrupted_write(out).is_dir() and any(out.iterdir())
    if occupied and not (out / MANIFEST).exists():
        raise VHEError(f"{out}: contains other files: choose a new or empty folder")
    if resume and not restore_interrupted_write(training_folder(out)).is_dir():
        raise VHEError(f"{out}: no interrupted training to resume: omit --resume")
    if occupied and not (resume or overwrite):
        raise VHEError(
            f"{out}: already contains a model: replace it with --overwrite, "
            "or resume an interrupted training with --resume"
        )
    check_writable(out)
    check_replaceable(out)
