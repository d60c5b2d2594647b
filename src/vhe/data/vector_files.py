"""Files of vectors in the order of the vertices, as numpy.save writes them."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from vhe.data.network import TextNetwork
from vhe.errors import VHEError


def read_vectors(path: str | PathLike[str]) -> Any:
    """Read an array of vectors."""
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise VHEError(f"{path}: no such file of vectors; check the path") from None
    except (OSError, ValueError, EOFError) as error:
        raise VHEError(
            f"{path}: not an array of numbers as numpy.save writes it ({error})"
        ) from None
    if not isinstance(found, np.ndarray):
        raise VHEError(f"{path}: contains several arrays; save one array as .npy")
    return found


def with_vectors(network: TextNetwork, vectors: str | PathLike[str] | ArrayLike) -> TextNetwork:
    """Return the network with an array of vectors (n, k), or with those of a file."""
    is_file = isinstance(vectors, str | PathLike)
    found = read_vectors(vectors) if isinstance(vectors, str | PathLike) else vectors
    try:
        return network.with_edges(
            network.edges,
            vectors=found,
            edge_weights=network.edge_weights,
            notes=network.notes,
        )
    except VHEError as error:
        raise VHEError(f"{Path(str(vectors))}: {error}") if is_file else error from None
