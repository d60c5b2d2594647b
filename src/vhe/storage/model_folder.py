"""The model folder: what a saved model consists of, and how it is written and read."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vhe.config import PairVHEConfig, VHEConfig
from vhe.data.network import TextNetwork
from vhe.data.readers.parquet import open_parquet, parquet_columns, readable_parquet
from vhe.errors import VHEError
from vhe.runtime.files import physical_memory
from vhe.runtime.messages import shortened
from vhe.storage.folder import (
    Folder,
    array_file,
    decode_key,
    encode_key,
    json_bytes,
    open_folder,
    read_arrays,
    write_folder,
)

MODEL = "model"  # the kind of folder
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
    """

    model: str
    config: VHEConfig | PairVHEConfig
    network: TextNetwork
    vocabulary: tuple[str, ...]
    arrays: dict[str, Any]
    numbers: dict[str, float]
    history: list[dict[str, float]]
    result: dict[str, Any]


def write_model(folder: Path, saved: SavedModel) -> None:
    """Write the model folder, whole or not at all."""
    network = saved.network
    about = {
        "model": saved.model,
        "config": saved.config.to_dict(),
        "network": {"name": network.name, "directed": network.directed},
        "numbers": saved.numbers,
    }
    # an unpaired surrogate cannot be written as UTF-8, and is not part of any word
    texts = [text.encode(errors="replace").decode() for text in network.texts]
    vertices = {"id": _keys(network.ids), "text": texts}
    if network.labels is not None:
        vertices["label"] = _keys(network.labels)
    edges = {"source": network.edges[:, 0], "target": network.edges[:, 1]}
    write_folder(
        folder,
        {
            "config.json": json_bytes(about),
            "weights.safetensors": array_file(saved.arrays),
            "vocabulary.txt": "".join(f"{word}\n" for word in saved.vocabulary).encode(),
            "vertices.parquet": _parquet(vertices),
            "edges.parquet": _parquet(edges),
            "history.jsonl": "".join(json.dumps(r) + "\n" for r in saved.history).encode(),
            "result.json": json_bytes(saved.result),
        },
        MODEL,
    )


def read_model(folder: Path) -> SavedModel:
    """Read a model folder; every file is verified."""
    try:
        with open_folder(folder, MODEL) as files:
            about = json.loads(
                files.read("config.json"), parse_float=_finite, parse_constant=_finite
            )
            arrays = read_arrays(files.path("weights.safetensors"), f"{folder}/weights.safetensors")
            if not all(np.isfinite(v).all() for v in arrays.values()):
                raise VHEError(f"{folder}: some weights are not finite; fit the model again")
            result = json.loads(files.read("result.json"))
            int(result["seed"])
            return SavedModel(
                model=about["model"],
                config=CONFIGS[about["model"]].from_dict(about["config"]),
                network=_network(files, about["network"]),
                vocabulary=tuple(files.read("vocabulary.txt").decode().split("\n")[:-1]),
                arrays=arrays,
                numbers={name: float(value) for name, value in about["numbers"].items()},
                history=[json.loads(r) for r in files.read("history.jsonl").decode().splitlines()],
                result=result,
            )
    except VHEError as error:
        raise error if str(folder) in str(error) else VHEError(f"{folder}: {error}") from None
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        raise incomplete(folder, error) from None
    except RecursionError:
        raise VHEError(f"{folder}: a file of the model folder is nested too deeply") from None


def incomplete(folder: Path, error: Exception) -> VHEError:
    """The error for a folder whose files do not make up a model."""
    reason = shortened(repr(error))
    return VHEError(f"{folder}: the model folder is incomplete or inconsistent ({reason})")


def _network(files: Folder, about: dict[str, Any]) -> TextNetwork:
    vertices, edges = _table(files, "vertices.parquet"), _table(files, "edges.parquet")
    if sum(map(len, vertices["text"])) > physical_memory():  # equal texts are stored once
        raise VHEError(f"{files.folder}: its texts are larger than the memory of this machine")
    return TextNetwork(
        [_key(v) for v in vertices["id"]],
        vertices["text"],
        np.array([edges["source"], edges["target"]], dtype=np.int64).T,
        [_key(v) for v in vertices["label"]] if "label" in vertices else None,
        **about,
    )


def _keys(values: Sequence[Any]) -> list[str]:
    """Ids or labels as JSON texts: their types survive, and one column holds them all."""
    return [json.dumps(encode_key(value)) for value in values]


def _key(text: str) -> Any:
    return decode_key(json.loads(text))


def _parquet(columns: dict[str, Any]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, compression="zstd")
    return sink.getvalue()


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text} is not finite")
    return number


def _table(files: Folder, name: str) -> dict[str, list[Any]]:
    with readable_parquet(str(files.folder / name)):
        file = open_parquet(files.read(name))
        return parquet_columns(file, file.schema_arrow.names)
