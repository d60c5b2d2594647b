"""Networks, models and vertices that are named on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vhe.cli.output import print_status
from vhe.errors import VHEError

if TYPE_CHECKING:
    from collections.abc import Hashable

    from vhe.data.network import TextNetwork
    from vhe.estimators import Estimator


def read_network(
    source: str | None, vertices: Path | None = None, edges: Path | None = None
) -> TextNetwork:
    """Read the network named by SOURCE or stored in two files; print the notes of the reader."""
    from vhe.data.datasets import load
    from vhe.data.network import TextNetwork

    if source is not None and (vertices or edges):
        raise VHEError("SOURCE and --vertices/--edges exclude each other: omit one of them")
    if vertices:
        network = TextNetwork.from_files(vertices, edges)  # GraphML contains its edges
    elif edges:
        raise VHEError("--edges FILE requires --vertices FILE")
    elif source:
        network = load(source)
    else:
        raise VHEError(
            "no network given: name a dataset (listed by vhe data), a folder with data.txt and "
            "graph.txt, or --vertices FILE --edges FILE"
        )
    for note in network.notes:
        print_status(f"note: {note}")
    return network


def read_model(folder: Path) -> Estimator:
    """Load a model folder written by `vhe fit`."""
    from vhe.storage.folder import restore_interrupted_write

    if not restore_interrupted_write(folder).is_dir():
        raise VHEError(f"{folder}: no such model folder; create it: vhe fit SOURCE --out {folder}")
    from vhe.estimators import load_model

    return load_model(folder)


def ids_by_name(network: TextNetwork) -> dict[str, Hashable]:
    """Map command-line words to ids; a string id takes precedence over one that prints alike."""
    return {str(i): i for i in network.ids} | {i: i for i in network.ids if isinstance(i, str)}
