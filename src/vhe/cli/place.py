"""Where a result will go: refused before the work what could not be written after it."""

import tempfile
from pathlib import Path

from vhe.errors import VHEError

MANIFEST = "MANIFEST.json"


def check_writable(path: Path) -> None:
    """See that something can be written at ``path``, by writing beside it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent) as probe:
            probe.write(b"vhe")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise VHEError(f"{path} cannot be written: {reason}; choose another place") from None


def training_folder(out: Path) -> Path:
    """Where the training of the model in ``out`` is kept until it has ended."""
    whole = out if out.name else out.resolve()  # "." has no name
    return whole.with_name(f"{whole.name}.training")


def check_model_folder(out: Path, *, resume: bool, overwrite: bool) -> None:
    """See that a model can be saved in ``out`` without destroying anything unasked."""
    from vhe.storage.folder import restore_interrupted_write

    if resume and overwrite:
        raise VHEError("--resume and --overwrite contradict each other: leave one of them out")
    if out.is_file():
        raise VHEError(f"{out} is a file: name a folder for the model")
    filled = restore_interrupted_write(out).is_dir() and any(out.iterdir())
    if filled and not (out / MANIFEST).exists():
        raise VHEError(f"{out} holds files that are no model: name a new or an empty folder")
    if resume and not restore_interrupted_write(training_folder(out)).is_dir():
        raise VHEError(f"{out} has no interrupted training to go on with: leave --resume out")
    if filled and not (resume or overwrite):
        raise VHEError(
            f"{out} holds a model already: --overwrite replaces it, "
            "--resume goes on with a training that was interrupted"
        )
    check_writable(out)
