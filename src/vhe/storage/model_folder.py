"""The model folder: what a saved model consists of, and how it is written and read."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vhe.config import PairVHEConfig, VHEConfig
from vhe.data.network import TextNetwork
from vhe.data.readers.parquet import (
    open_parquet,
    parquet_numbers,
    parquet_table,
    parquet_values,
    readable_parquet,
)
from vhe.errors import VHEError
from vhe.runtime.files import physical_memory
from vhe.runtime.messages import shortened
from vhe.storage import schema
from vhe.storage.arrays import array_file, read_arrays
from vhe.storage.folder import Content, Folder, json_bytes, open_folder, write_folder
from vhe.storage.keys import decode_key, encode_key
from vhe.storage.stored_network import StoredColumn, StoredNetwork
from vhe.text.encoder_identity import EncoderIdentity

MODEL = "model"  # the kind of folder
VERTICES, EDGES = "vertices.parquet", "edges.parquet"
LARGE = 1 << 25  # bytes of all tables beyond which a query reads only the rows it needs
LARGE_TABLE = 1 << 24  # bytes of a table whose values are then checked when they are used
ROW_GROUP = 1 << 13  # rows of a Parquet file that are read at a time
Columns = dict[str, tuple[Any, Callable[[Any], Any]]]  # values, and how they are stored
CONFIGS: dict[str, type[VHEConfig] | type[PairVHEConfig]] = {
    "graph": VHEConfig,
    "pair": PairVHEConfig,
}


@dataclass(frozen=True)
class SavedModel:
    """Everything that a fitted model needs to make predictions and to say how it was made.

    Attributes
    ----------
    model : "graph" or "pair"
    arrays : by name; each table occurs once
    numbers : single numbers by name, such as the calibration
    encoder : the text encoder whose vectors the model uses, if any
    """

    model: str
    config: VHEConfig | PairVHEConfig
    network: TextNetwork
    vocabulary: tuple[str, ...]
    arrays: dict[str, Any]
    numbers: dict[str, float]
    history: list[dict[str, float]]
    result: dict[str, Any]
    encoder: EncoderIdentity | None = None


def write_model(folder: Path, saved: SavedModel) -> None:
    """Write the model folder, whole or not at all."""
    network = saved.network
    about = {
        "model": saved.model,
        "config": saved.config.to_dict(),
        "network": {
            "name": network.name,
            "directed": network.directed,
            "edges": len(network.edges),
        },
        "numbers": saved.numbers,
        "encoder": None if saved.encoder is None else saved.encoder.to_dict(),
    }
    try:  # what is saved can be loaded
        schema.check_config(about)
        schema.check_result(saved.result, saved.history, saved.model)
        dimensions, words = saved.config.latent_dim, len(saved.vocabulary)
        schema.check_tables(saved.model, saved.arrays, words, dimensions)
    except ValueError as error:
        raise VHEError(f"{folder}: this model cannot be saved: {error}") from None
    vertices: Columns = {"id": (network.ids, _keys), "text": (network.texts, _texts)}
    if network.labels is not None:
        vertices["label"] = network.labels, _keys
    edges: Columns = {
        name: (network.edges[:, end], np.asarray) for end, name in enumerate(("source", "target"))
    }
    if network.edge_weights is not None:
        edges["weight"] = network.edge_weights, np.asarray
    write_folder(
        folder,
        {
            "config.json": json_bytes(about),
            "weights.safetensors": array_file(saved.arrays),
            "vocabulary.txt": "".join(f"{word}\n" for word in saved.vocabulary).encode(),
            VERTICES: _parquet(vertices),
            EDGES: _parquet(edges),
            "history.jsonl": "".join(json.dumps(r) + "\n" for r in saved.history).encode(),
            "result.json": json_bytes(saved.result),
        },
        MODEL,
    )


def read_model(folder: Path, *, partly: bool = False) -> SavedModel:
    """Read a model folder; every file is verified, and every value checked (`vhe.storage.schema`).

    Counts of rows are compared before the rows are read: a file of a few kilobytes can claim
    millions. With ``partly``, tables, ids and texts of more than `LARGE` bytes stay on disk: their
    sizes are checked here, their values when they are used.
    """
    try:
        with open_folder(folder, MODEL) as files:
            about = schema.parse_json(files.read("config.json"))
            schema.check_config(about)
            result = schema.parse_json(files.read("result.json"))
            records = files.read("history.jsonl").decode().splitlines()
            history = [schema.parse_json(record) for record in records]
            schema.check_result(result, history, about["model"])
            vocabulary = schema.parse_words(files.read("vocabulary.txt"))
            config = CONFIGS[about["model"]].from_dict(about["config"])
            partly = partly and files.entries["weights.safetensors"]["bytes"] > LARGE
            weights = files.path("weights.safetensors", verify=not partly)
            arrays = read_arrays(weights, f"{folder}/weights.safetensors")
            up_to = LARGE_TABLE if partly else math.inf
            words, dimensions = len(vocabulary), config.latent_dim
            schema.check_tables(about["model"], arrays, words, dimensions, up_to=up_to)
            read_network = _stored_network if partly else _network
            return SavedModel(
                model=about["model"],
                config=config,
                network=read_network(files, about["network"], schema.number_of_vertices(arrays)),
                vocabulary=vocabulary,
                arrays=arrays,
                numbers={name: float(value) for name, value in about["numbers"].items()},
                history=history,
                result=result,
                encoder=about["encoder"] and EncoderIdentity.from_dict(about["encoder"]),
            )
    except VHEError as error:
        if str(folder) in str(error):
            raise
        raise VHEError(f"{folder}: {shortened(str(error), 300)}") from None
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        raise incomplete(folder, error) from None
    except RecursionError:
        raise VHEError(f"{folder}: a file of the model folder is nested too deeply") from None


def incomplete(folder: Path, error: Exception) -> VHEError:
    """The error for a folder whose files do not make up a model."""
    own = isinstance(error, schema.SchemaError)
    reason = shortened(str(error) if own else repr(error), 200)
    return VHEError(f"{folder}: the model folder is incomplete or inconsistent ({reason})")


def _network(files: Folder, about: dict[str, Any], n: int) -> TextNetwork:
    vertices = _table(files, VERTICES, n, ("id", "text"), ("label",))
    edges, weights = _edges(files, about["edges"])
    texts = parquet_values(vertices["text"])
    if sum(map(len, texts)) > physical_memory():  # equal texts are stored once
        raise VHEError(f"{files.folder}: its texts are larger than the memory of this machine")
    labels = "label" in vertices
    return TextNetwork(
        _decoded(vertices["id"], distinct=True),
        texts,
        edges,
        _decoded(vertices["label"]) if labels else None,
        directed=about["directed"],
        name=about["name"],
        edge_weights=weights,
    )


def _stored_network(files: Folder, about: dict[str, Any], n: int) -> TextNetwork:
    import pyarrow as pa
    from pyarrow import parquet

    where = str(files.folder / VERTICES)
    with readable_parquet(where):
        # the mapped file stays open after the folder is closed, and if it is replaced
        path = files.path(VERTICES, verify=False)
        file = parquet.ParquetFile(pa.memory_map(str(path)))
        _check_columns(file, n, ("id", "text"), ("label",))
    edges, weights = _edges(files, about["edges"])
    labels = "label" in file.schema_arrow.names
    return StoredNetwork(
        StoredColumn(file, "id", where, _key),
        StoredColumn(file, "text", where, str),
        edges,
        StoredColumn(file, "label", where, _key) if labels else None,
        directed=about["directed"],
        name=about["name"],
        edge_weights=weights,
    )


def _edges(files: Folder, rows: int) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Pairs of vertex numbers (m, 2), and their weights (m,) if they have some."""
    columns = _table(files, EDGES, rows, ("source", "target"), ("weight",))
    with readable_parquet(str(files.folder / EDGES)):
        found = {name: parquet_numbers(column) for name, column in columns.items()}
    return np.stack([found["source"], found["target"]], axis=1), found.get("weight")


def _decoded(column: Any, distinct: bool = False) -> list[Any]:
    """Ids or labels from a column of JSON texts; equal ones are decoded once."""
    texts = parquet_values(column)
    if distinct and len(set(texts)) < len(texts):
        raise ValueError("repeated ids")
    values = {text: _key(text) for text in dict.fromkeys(texts)}
    return [values[text] for text in texts]


def _keys(values: Sequence[Any]) -> list[str]:
    """Ids or labels as JSON texts: their types survive, and one column holds them all."""
    return [json.dumps(encode_key(value)) for value in values]


def _key(text: str) -> Any:
    return decode_key(json.loads(text))


def _texts(values: Sequence[str]) -> list[str]:
    # an unpaired surrogate cannot be written as UTF-8, and is not part of any word
    return [text.encode(errors="replace").decode() for text in values]


def _parquet(columns: Columns) -> Content:
    """Return a function that writes a Parquet file, some rows at a time."""
    rows = len(next(iter(columns.values()))[0])

    def write(path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        step = 8 * ROW_GROUP
        tables = (
            pa.table({k: f(values[start : start + step]) for k, (values, f) in columns.items()})
            for start in range(0, max(rows, 1), step)
        )
        first = next(tables)
        with pq.ParquetWriter(path, first.schema, compression="zstd") as writer:
            for table in chain([first], tables):
                writer.write_table(table, row_group_size=ROW_GROUP)

    return write


def _table(
    files: Folder, name: str, rows: int, required: Sequence[str], others: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the columns of a Parquet file that must have this number of rows."""
    with readable_parquet(str(files.folder / name)):
        file = open_parquet(files.read(name))
        _check_columns(file, rows, required, others)
        return parquet_table(file, file.schema_arrow.names)


def _check_columns(file: Any, rows: int, required: Sequence[str], others: Sequence[str]) -> None:
    names = file.schema_arrow.names
    if file.metadata.num_rows != rows:
        raise ValueError(f"it has {file.metadata.num_rows:,} rows, not {rows:,}")
    if len(set(names)) < len(names) or not set(required) <= set(names) <= {*required, *others}:
        raise ValueError(f"its columns are {names}")
