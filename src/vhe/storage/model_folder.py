"""What a saved model is made of, and how it becomes files and comes back."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vhe.config import VHEConfig
from vhe.data.checks import shortened
from vhe.data.network import TextNetwork
from vhe.data.readers.tables import open_parquet, parquet_columns, readable_parquet
from vhe.errors import VHEError
from vhe.runtime.files import physical_memory
from vhe.storage.folder import (
    decode_key,
    encode_key,
    json_bytes,
    read_folder,
    read_tensors,
    tensor_bytes,
    write_folder,
)

if TYPE_CHECKING:
    from vhe.pair.model import PairVAE

MODEL = "model"  # the kind of folder


@dataclass(frozen=True)
class SavedModel:
    """Everything that a fitted model needs to answer, and to tell how it was made."""

    config: VHEConfig
    network: TextNetwork
    vocabulary: tuple[str, ...]
    weights: dict[str, Any]  # of the PairVAE
    mean: NDArray[np.float32]  # (n, d)
    std: NDArray[np.float32]
    calibration: tuple[float, float, float]  # as `vhe.predict.degree.Calibration`
    pi0: float
    history: list[dict[str, float]]
    result: dict[str, Any]


def write_model(folder: Path, model: SavedModel) -> None:
    import torch

    network = model.network
    tensors = {f"network.{name}": value for name, value in model.weights.items()}
    tensors["embedding.mean"] = torch.from_numpy(model.mean)
    tensors["embedding.std"] = torch.from_numpy(model.std)
    about = {
        "config": model.config.to_dict(),
        "network": {"name": network.name, "directed": network.directed},
        "pi0": model.pi0,
        "calibration": list(model.calibration),
    }
    # what no file can hold (half a surrogate pair) belongs to no word
    texts = [text.encode(errors="replace").decode() for text in network.texts]
    vertices = {"id": _keys(network.ids), "text": texts}
    if network.labels is not None:
        vertices["label"] = _keys(network.labels)
    files = {
        "config.json": json_bytes(about),
        "weights.safetensors": tensor_bytes(tensors),
        "vocabulary.txt": "".join(f"{word}\n" for word in model.vocabulary).encode(),
        "vertices.parquet": _parquet(vertices),
        "edges.parquet": _parquet({"source": network.edges[:, 0], "target": network.edges[:, 1]}),
        "history.jsonl": "".join(json.dumps(r) + "\n" for r in model.history).encode(),
        "result.json": json_bytes(model.result),
    }
    write_folder(folder, files, MODEL)


def read_model(folder: Path) -> SavedModel:
    files = read_folder(folder, MODEL)
    try:
        about = json.loads(files["config.json"], parse_float=_finite, parse_constant=_finite)
        vertices, edges = (
            _table(files[name], folder / name) for name in ("vertices.parquet", "edges.parquet")
        )
        if sum(map(len, vertices["text"])) > physical_memory():  # one text for all of them
            raise VHEError(f"{folder}: its texts are longer than the memory here")
        labels = [_key(v) for v in vertices["label"]] if "label" in vertices else None
        network = TextNetwork(
            [_key(v) for v in vertices["id"]],
            vertices["text"],
            np.array([edges["source"], edges["target"]], dtype=np.int64).T.reshape(-1, 2),
            labels,
            **about["network"],
        )
        tensors = read_tensors(files["weights.safetensors"], f"{folder}/weights.safetensors")
        if not all(bool(value.isfinite().all()) for value in tensors.values()):
            raise VHEError(f"{folder}: not all weights are finite numbers; fit the model again")
        slope, offset, *degree_weight = about["calibration"]
        config, result = VHEConfig.from_dict(about["config"]), json.loads(files["result.json"])
        mean, std = (tensors[f"embedding.{name}"].numpy() for name in ("mean", "std"))
        if not mean.shape == std.shape == (len(network), config.latent_dim):
            raise VHEError(f"{folder}: the embedding does not fit the network beside it")
        int(result["seed"])
        return SavedModel(
            config=config,
            network=network,
            vocabulary=tuple(files["vocabulary.txt"].decode().split("\n")[:-1]),
            weights={
                name.removeprefix("network."): value
                for name, value in tensors.items()
                if name.startswith("network.")
            },
            mean=mean,
            std=std,
            calibration=(float(slope), float(offset), float(*degree_weight)),
            pi0=float(about["pi0"]),
            history=[json.loads(line) for line in files["history.jsonl"].decode().splitlines()],
            result=result,
        )
    except VHEError as error:
        if str(folder) in str(error):
            raise
        raise VHEError(f"{folder}: {error}") from None
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        said = shortened(repr(error))
        raise VHEError(f"{folder}: the model folder lacks something it needs ({said})") from None
    except RecursionError:
        raise VHEError(f"{folder}: a file of the model folder is nested too deeply") from None


def pair_vae(saved: SavedModel, folder: Path) -> PairVAE:
    """The network with its weights; sizes that its settings claim take no memory until they fit."""
    import torch

    from vhe.pair.model import PairVAE

    unfit = VHEError(f"{folder}: the weights do not fit the network beside them")
    try:
        with torch.device("meta"):
            model = PairVAE(saved.config, len(saved.vocabulary), len(saved.network), saved.pi0)
    except (RuntimeError, TypeError, OverflowError):  # sizes that no tensor has
        raise unfit from None
    wanted = {name: (value.shape, value.dtype) for name, value in model.state_dict().items()}
    if wanted != {name: (value.shape, value.dtype) for name, value in saved.weights.items()}:
        raise unfit
    model.to_empty(device="cpu").load_state_dict(saved.weights)
    return model


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


def _table(data: bytes, path: Path) -> dict[str, list[Any]]:
    with readable_parquet(str(path)):
        file = open_parquet(data)
        return parquet_columns(file, file.schema_arrow.names)
