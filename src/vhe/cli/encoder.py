"""Options of text encoders and vectors, and files of vectors."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from cyclopts.types import PositiveInt

from vhe.cli.options import Help
from vhe.errors import VHEError

if TYPE_CHECKING:
    from vhe.data.network import TextNetwork

Vectors = Annotated[
    Path | None, Help("array of shape (vertices, columns) in the order of the vertices (.npy)")
]


@Parameter(name="*")
@dataclass(frozen=True)
class EncoderOptions:
    """Vectors beside words: encoded from the texts, or given."""

    encoder: Annotated[
        str | None,
        Help("sentence-transformers model, such as all-MiniLM-L6-v2", metavar="NAME|FOLDER"),
    ] = None
    encoder_weight: Annotated[
        float | None, Help("share of the vectors, 0 to 1 (default: chosen on validation links)")
    ] = None
    encoder_device: Annotated[
        str, Help("device of the encoder (default: a GPU if there is one)", show_default=False)
    ] = "auto"
    encoder_batch: Annotated[PositiveInt, Help("texts encoded at a time")] = 32
    vectors: Vectors = None


def read_vectors(path: Path) -> Any:
    """Read an array of vectors."""
    import numpy as np

    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise VHEError(f"{path}: no such file of vectors") from None
    except (OSError, ValueError, EOFError) as error:
        raise VHEError(
            f"{path}: not an array of numbers as numpy.save writes it ({error})"
        ) from None
    if not isinstance(found, np.ndarray):
        raise VHEError(f"{path}: contains several arrays; save one array as .npy")
    return found


def with_vectors(network: TextNetwork, path: Path) -> TextNetwork:
    """Return the network with the vectors of a file."""
    weights = network.edge_weights
    try:
        return network.with_edges(
            network.edges, vectors=read_vectors(path), edge_weights=weights, notes=network.notes
        )
    except VHEError as error:
        raise error if str(path) in str(error) else VHEError(f"{path}: {error}") from None
