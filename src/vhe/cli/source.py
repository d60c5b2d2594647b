"""From words on the command line to a network, a model, and the vertices of a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vhe.cli.output import say
from vhe.errors import VHEError

if TYPE_CHECKING:
    from collections.abc import Hashable

    from vhe.data.network import TextNetwork
    from vhe.estimators import VHE


def read_network(
    source: str | None, vertices: Path | None = None, edges: Path | None = None
) -> TextNetwork:
    """The network that SOURCE names, or that two files hold; what was mended is said."""
    from vhe.data.datasets import load
    from vhe.data.network import TextNetwork

    if source is not None and (vertices or edges):
        raise VHEError("both SOURCE and --vertices or --edges were given: leave one of them out")
    if vertices:
        network = TextNetwork.from_files(vertices, edges)  # GraphML holds its edges itself
    elif edges:
        raise VHEError("--edges FILE needs --vertices FILE beside it")
    elif source:
        network = load(source)
    else:
        raise VHEError(
            "no network was given: name a dataset (vhe data lists them), a folder with data.txt "
            "and graph.txt, or --vertices FILE --edges FILE"
        )
    for note in network.notes:
        say(f"note: {note}")
    return network


def read_model(folder: Path) -> VHE:
    """The model in a folder that `vhe fit` wrote."""
    from vhe.storage.folder import restore_interrupted_write

    if not restore_interrupted_write(folder).is_dir():
        raise VHEError(f"{folder} is no model folder; vhe fit SOURCE --out {folder} makes one")
    from vhe.estimators import VHE

    return VHE.load(folder)


def ids_by_word(network: TextNetwork) -> dict[str, Hashable]:
    """The id that a word stands for: the word itself if it is one, else the one that prints so."""
    return {str(i): i for i in network.ids} | {i: i for i in network.ids if isinstance(i, str)}
