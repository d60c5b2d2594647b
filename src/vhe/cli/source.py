"""Networks, models and vertices that are named on the command line."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Group, Parameter

from vhe.cli.options import Help
from vhe.cli.output import print_status
from vhe.data.readers.synonyms import SYNONYMS
from vhe.errors import VHEError
from vhe.runtime.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Hashable

    from vhe.data.network import TextNetwork
    from vhe.fitted import FittedModel


READING = Group("Reading the network", sort_key=1)


def _column(text: str, meaning: str = "", metavar: str = "COLUMN") -> Parameter:
    names = SYNONYMS.get(meaning, ())[:3]
    default = f" (default: {', '.join(names)}, ...)" if names else ""
    return Help(text + default, metavar=metavar)


@Parameter(name="*", group=READING)
@dataclass(frozen=True)
class NetworkOptions:
    """How a network is read; the options of every command with a SOURCE."""

    vertices: Annotated[
        Path | None, Help("instead of SOURCE: file with id, text[, vector, label]")
    ] = None
    edges: Annotated[
        Path | None, Help("file with source, target[, weight]: links of the vertices")
    ] = None
    id: Annotated[str | None, _column("column of ids", "id")] = None
    text: Annotated[
        str | None,
        _column("columns of texts, joined (default: text, or title and abstract)", "", "COLUMNS"),
    ] = None
    label: Annotated[str | None, _column("column of labels", "label")] = None
    source: Annotated[str | None, _column("column of sources in --edges", "source")] = None
    target: Annotated[str | None, _column("column of targets in --edges", "target")] = None
    references: Annotated[str | None, _column("column or field of references", "references")] = None
    vector: Annotated[
        str | None,
        _column("column of vectors, or numeric columns (default: vector)", "", "COLUMNS"),
    ] = None
    weight: Annotated[str | None, _column("column of weights in --edges (default: weight)")] = None
    on_unknown: Annotated[
        Literal["error", "skip", "create"] | None,
        Help(
            "links to unknown ids: error, skip, or create a vertex without text (default: error "
            "for --edges, otherwise skip)",
            metavar="CHOICE",
        ),
    ] = None
    on_duplicate: Annotated[
        Literal["error", "first", "merge"],
        Help("duplicate ids: error, keep the first, or merge the texts", metavar="CHOICE"),
    ] = "error"
    name: Annotated[str | None, Help("name of the network (default: of SOURCE)")] = None
    sql: Annotated[
        str | None, Help("instead of SOURCE: database URL (or VHE_SQL_URL)", metavar="URL")
    ] = None
    vertices_query: Annotated[
        str | None, Help("query of vertices (default: SELECT * FROM vertices)", metavar="SQL")
    ] = None
    edges_query: Annotated[
        str | None, Help("query of edges (default: SELECT * FROM edges)", metavar="SQL")
    ] = None


def read_network(
    source: str | None, options: NetworkOptions | None = None, vectors: Path | None = None
) -> TextNetwork:
    """Read the network named by SOURCE or by options, with the vectors of a file, if any.

    Prints the notes of the reader.
    """
    from vhe.data.datasets import DATASETS, load
    from vhe.data.sources import read
    from vhe.data.vector_files import with_vectors

    given = dict(vars(options or NetworkOptions()))
    vertices, edges, url = given.pop("vertices"), given.pop("edges"), given.pop("sql")
    if url is None and source is None and vertices is None and given["vertices_query"]:
        url = os.environ.get("VHE_SQL_URL")
    places = {"SOURCE": source, "--vertices": vertices, "--sql": url}
    named = [name for name, place in places.items() if place is not None]
    if len(named) > 1:
        raise VHEError(f"{named[0]} and {named[1]} exclude each other: omit one of them")
    if not named and edges:
        raise VHEError("--edges FILE requires SOURCE or --vertices FILE")
    if not named:
        raise VHEError(
            "no network given: name a dataset (listed by vhe data), a file or folder, "
            "--vertices FILE --edges FILE, or --sql URL"
        )
    chosen = {key: value for key, value in given.items() if value is not None}
    if source is not None and source in DATASETS:
        extra = [key for key, value in chosen.items() if value != getattr(NetworkOptions, key)]
        if extra or edges:
            option = "edges" if edges else extra[0].replace("_", "-")
            raise VHEError(f"--{option}: {source} is a dataset: omit the option")
        network = load(source)
        if vectors is not None:
            network = with_vectors(network, vectors)
    elif source is not None and not _can_be_read(source):
        network = load(source)  # raises an error with the names of the datasets
    else:
        with Progress("reading"):
            network = read(url or source or vertices or "", edges, vectors=vectors, **chosen)
    for note in network.notes:
        print_status(f"note: {note}")
    return network


def _can_be_read(source: str) -> bool:
    from vhe.data.readers.inputs import STDIN

    return source in STDIN or "://" in source or Path(source).exists()


def check_is_model(folder: Path) -> None:
    """Refuse a model folder that does not exist, or is in shards."""
    from vhe.storage.folder import restore_interrupted_write

    if folder.is_file():
        raise VHEError(
            f"{folder}: a file, not a model folder; fit a model first: vhe fit SOURCE --out MODEL"
        )
    if not restore_interrupted_write(folder).is_dir():
        raise VHEError(f"{folder}: no such model folder; create it: vhe fit SOURCE --out {folder}")
    if is_sharded(folder):
        raise VHEError(
            f"{folder}: a model in shards, written by vhe fit --scheduler: use vhe suggest, "
            "vhe embed, vhe add or vhe.scale.ShardedModel"
        )


def is_sharded(folder: Path) -> bool:
    """Whether `vhe fit --scheduler` wrote a folder; other model folders have a manifest."""
    return (folder / "model.json").is_file() and not (folder / "MANIFEST.json").exists()


def read_model(folder: Path) -> FittedModel:
    """Load a model folder written by `vhe fit`.

    A graph model is loaded without torch, whose import takes longer than most answers.
    """
    check_is_model(folder)
    from vhe.fitted import open_model

    if (model := open_model(folder)) is not None:
        model.verbose = True  # an encoder takes seconds
        return model
    from vhe.estimators import load_model

    return load_model(folder)


def vertex_id(network: TextNetwork, word: str) -> Hashable:
    """The id that a word on the command line means; the word itself if there is none."""
    found = network.find(word)
    return word if found is None else found


def ids_by_name(network: TextNetwork) -> dict[str, Hashable]:
    """Map command-line words to ids; a string id takes precedence over one that prints alike."""
    return {str(i): i for i in network.ids} | {i: i for i in network.ids if isinstance(i, str)}
