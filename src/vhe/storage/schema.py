"""The schema of a model folder: types, ranges, shapes, and how the files must agree.

The content of a folder is untrusted input, even if its checksums are right. Everything is checked
before it is used, and before it is written, so that a saved model can always be loaded.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vhe.runtime.arrays import blocks
from vhe.runtime.checks import is_integer
from vhe.runtime.messages import shortened, shown

MAX_SEED = 2**32 - 1
LARGEST = 1e9  # absolute value in a table of a model; squares of it can still be added
LARGEST_WEIGHT = 1e4  # of a neural network: values grow from layer to layer
LARGEST_LOG_ODDS = 1e6  # of a weight or offset of the link posterior

Check = Callable[[Any], bool]


class SchemaError(ValueError):
    """A value that the schema does not allow."""


def number(low: float = -math.inf, high: float = math.inf) -> Check:
    """A finite number in a range; not a boolean, and not one beyond the range of a float."""

    def check(value: Any) -> bool:
        if type(value) not in (int, float):
            return False
        return bool(abs(value) <= 1.7e308 and low <= value <= high)

    return check


def integer(low: int, high: int = 2**53) -> Check:
    return lambda value: is_integer(value) and low <= value <= high


def text(value: Any) -> bool:
    return isinstance(value, str)


def list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def mapping_of(check: Check) -> Check:
    return lambda value: isinstance(value, dict) and all(map(check, value.values()))


def optional(check: Check) -> Check:
    return lambda value: value is None or check(value)


share = number(0.0, 1.0)

# required keys of the documents; `result.json` and `history.jsonl` may have others
CONFIG: dict[str, Check] = {
    "model": text,
    "config": lambda value: isinstance(value, dict),
    "network": lambda value: isinstance(value, dict),
    "numbers": lambda value: isinstance(value, dict),
    "encoder": optional(lambda value: isinstance(value, dict)),
}
ENCODER: dict[str, Check] = {
    "name": text,
    "revision": text,
    "dimension": integer(1),
    "probe": list_of(number(-LARGEST, LARGEST)),
}
NETWORK: dict[str, Check] = {
    "name": text,
    "directed": lambda value: isinstance(value, bool),
    "edges": integer(0),
}
RESULT: dict[str, Check] = {
    "seed": integer(0, MAX_SEED),
    "versions": mapping_of(text),
    "git": optional(text),
    "machine": text,
    "threads": integer(1),
    "kernels": text,
    "model": text,
    "seconds": number(0.0),
    "steps": integer(0),
    "best_step": integer(0),
    "trained": lambda value: isinstance(value, bool),
    "stopped": text,
    "notes": list_of(text),
    "validation_auc": optional(share),
    "chosen": mapping_of(number()),
    "link_posterior": mapping_of(number()),
    "calibration_error": share,
    "reliability": lambda value: isinstance(value, dict),
}
ADDED = integer(0)  # number of vertices that were added after the fit
RELIABILITY: dict[str, Check] = {
    "probability": list_of(number(-1e-9, 1.0 + 1e-9)),
    "frequency": list_of(number(-1e-9, 1.0 + 1e-9)),
    "count": list_of(number(0.0)),
}
NUMBERS: dict[str, dict[str, Check]] = {
    "graph": {
        "link_strength": number(0.0),
        "text_knn_weight": number(0.0),
        "mean_log_length": number(0.0, 100.0),
        "encoder_weight": share,
    },
    "pair": {"pi0": share},
}

# Tables: kind ("f" or "i"), shape, smallest and largest value. Sizes: n vertices, m dimensions of
# embeddings, V words; other letters are any size, the same one in every table.
Table = tuple[str, tuple[str | int, ...], float, float]
COMMON: dict[str, Table] = {
    "mean": ("f", ("n", "m"), -LARGEST, LARGEST),
    "idf": ("f", ("V",), 0.0, LARGEST),
    "structure": ("f", ("n", "s"), -LARGEST, LARGEST),
    "structure_signs": ("f", ("s",), -1.0, 1.0),
    "tokens": ("i", ("t",), 1, math.inf),
    "offsets": ("i", ("n + 1",), 0, math.inf),
}
TABLES: dict[str, dict[str, Table]] = {
    "graph": COMMON
    | {
        "words": ("f", ("V + 1", "d"), -LARGEST, LARGEST),
        "centre": ("f", ("d",), -LARGEST, LARGEST),
        "vectors": ("f", ("n", "p"), -LARGEST, LARGEST),
        "variance": ("f", ("n",), 0.0, LARGEST),
        "precision": ("f", ("n",), 1e-9, LARGEST),
        "diagonal": ("f", ("n",), 1e-9, math.inf),
        "neighbours.pairs": ("i", ("k", 2), 0, math.inf),
        "neighbours.cosines": ("f", ("k",), -1.001, 1.001),
    },
    "pair": COMMON | {"std": ("f", ("n", "m"), 0.0, LARGEST)},
}
SCALE: Table = ("f", ("n", "m"), -LARGEST, LARGEST)
VECTOR_CODES: dict[str, Table] = {  # of a graph model with vectors
    "vector_codes.width": ("i", (), 1, math.inf),
    "vector_codes.columns": ("i", ("c",), 0, math.inf),
    "vector_codes.mean": ("f", ("c",), -math.inf, math.inf),
    "vector_codes.scale": ("f", ("c",), 0.0, math.inf),
    "vector_codes.components": ("f", ("c", "p"), -LARGEST, LARGEST),
    "vector_codes.length": ("f", (), 0.0, LARGEST),
}


def parse_json(data: bytes | str) -> Any:
    """Parse JSON; repeated keys and numbers that are not finite are refused."""
    return json.loads(
        data, parse_float=_finite, parse_constant=_finite, object_pairs_hook=_distinct_keys
    )


def check_config(about: Any) -> None:
    """Check config.json."""
    _check("config.json", about, CONFIG, exact=True)
    _check("config.json: network", about["network"], NETWORK, exact=True)
    if about["encoder"] is not None:
        _check("config.json: encoder", about["encoder"], ENCODER, exact=True)
    if about["model"] not in NUMBERS:
        raise SchemaError(f"config.json: model is {shown(about['model'])}, not graph or pair")
    link = [k for k in about["numbers"] if k.startswith(("link.", "isolated."))]
    weight = number(-LARGEST_LOG_ODDS, LARGEST_LOG_ODDS)
    required = NUMBERS[about["model"]] | dict.fromkeys(("link.embedding", "link.offset"), weight)
    required |= dict.fromkeys(link, weight)
    _check("config.json: numbers", about["numbers"], required, exact=True)


def check_result(result: Any, history: Sequence[Any], model: str) -> None:
    """Check result.json and history.jsonl."""
    _check("result.json", result, RESULT)
    _check("result.json: reliability", result["reliability"], RELIABILITY, exact=True)
    if result["model"] != model:
        raise SchemaError(f"result.json: model is {shown(result['model'])}, not {model}")
    if result["best_step"] > result["steps"]:
        raise SchemaError("result.json: best_step is beyond steps")
    bins = {name: len(values) for name, values in result["reliability"].items()}
    if len(set(bins.values())) != 1:
        raise SchemaError("result.json: reliability has lists of different lengths")
    if not ADDED(result.get("added", 0)):
        raise SchemaError("result.json: added is not a number of vertices")
    for row, record in enumerate(history, 1):
        if not mapping_of(number())(record) or "step" not in record:
            raise SchemaError(f"history.jsonl:{row}: not a record of numbers with a step")


def parse_words(data: bytes) -> tuple[str, ...]:
    """Return the words of vocabulary.txt, one per line."""
    *words, rest = data.decode().split("\n")
    if rest or not all(words) or len(set(words)) < len(words):
        raise SchemaError("vocabulary.txt: empty or repeated words, or a line without end")
    return tuple(words)


def check_tables(
    model: str,
    arrays: Mapping[str, NDArray[Any]],
    words: int,
    dimensions: int,
    *,
    up_to: float = math.inf,
) -> None:
    """Check the tables of a model; `number_of_vertices` are those of ``offsets``.

    Of tables of more than ``up_to`` bytes, type and shape are checked, but no value is read.
    """
    unread = {name for name, table in arrays.items() if table.nbytes > up_to}
    sizes = {"V": words, "V + 1": words + 1}
    if model == "pair":
        sizes["m"] = dimensions
    n = number_of_vertices(arrays)
    sizes |= {"n": n, "n + 1": n + 1}
    tables = dict(TABLES[model])
    if model == "graph" and any(name.startswith("vector_codes.") for name in arrays):
        tables |= VECTOR_CODES
    tables |= dict.fromkeys((name for name in arrays if name.startswith("scale.")), SCALE)
    for name, (kind, shape, low, high) in tables.items():
        if name not in arrays:
            raise SchemaError(f"weights.safetensors: no table {name}")
        _check_table(name, arrays[name], kind, low, high, name not in unread)
        found = arrays[name].shape
        expected = tuple(
            size if isinstance(size, int) else sizes.setdefault(size, own)
            for size, own in zip(shape, found, strict=False)
        )
        if found != expected or len(found) != len(shape):
            raise SchemaError(f"weights.safetensors: {name} has the shape {list(found)}")
    for name in arrays.keys() - tables.keys():
        if model != "pair" or not name.startswith("network."):
            raise SchemaError(f"weights.safetensors: unknown table {shown(name)}")
        _check_table(name, arrays[name], "f", -LARGEST_WEIGHT, LARGEST_WEIGHT, name not in unread)
    _check_agreement(arrays, n, words, unread)
    if model == "graph":
        d, p = arrays["words"].shape[1], arrays["vectors"].shape[1]
        given = "vector_codes.width" in arrays
        if d not in (dimensions, 0 if p else dimensions) or arrays["mean"].shape[1] != d + p:
            raise SchemaError(f"weights.safetensors: words has {d} columns, vectors {p}")
        if given != bool(p):
            raise SchemaError("weights.safetensors: vectors does not match vector_codes")


def number_of_vertices(arrays: Mapping[str, NDArray[Any]]) -> int:
    """The number of vertices that the tables have."""
    if "offsets" not in arrays or arrays["offsets"].ndim != 1 or not len(arrays["offsets"]):
        raise SchemaError("weights.safetensors: no table offsets")
    return len(arrays["offsets"]) - 1


def _check_agreement(
    arrays: Mapping[str, NDArray[Any]], n: int, words: int, unread: set[str]
) -> None:
    """Check values of one table against the size or the values of another."""
    tokens, offsets = arrays["tokens"], arrays["offsets"]
    read = {name: table for name, table in arrays.items() if name not in unread}
    pairs = read.get("neighbours.pairs")
    agreed = {
        "tokens": "tokens" not in read or not len(tokens) or int(tokens.max()) <= words,
        "offsets": offsets[0] == 0
        and offsets[-1] == len(tokens)
        and bool((np.diff(offsets) >= 0).all()),
        "neighbours.pairs": pairs is None or not len(pairs) or int(pairs.max()) < n,
        # the diagonal of A is Λ and what is coupled: a text's share of its own code is at most 1
        "diagonal": not {"diagonal", "precision"} <= read.keys()
        or bool((arrays["diagonal"] >= 0.999 * arrays["precision"]).all()),
    }
    for name, right in agreed.items():
        if not right:
            raise SchemaError(f"weights.safetensors: {name} does not match the other tables")


def _check_table(
    name: str, table: NDArray[Any], kind: str, low: float, high: float, values: bool
) -> None:
    if table.dtype.kind != kind:
        raise SchemaError(f"weights.safetensors: {name} has the type {table.dtype}")
    if not table.size or not values:
        return
    # NaN if any value is
    limits = [(part.min(), part.max()) for _, part in blocks(table.reshape(-1))]
    smallest, largest = np.min(limits), np.max(limits)
    if not (np.isfinite(largest) and low <= smallest and largest <= high):
        raise SchemaError(
            f"weights.safetensors: {name} has values that are not finite or out of range"
        )


def _check(where: str, document: Any, checks: Mapping[str, Check], exact: bool = False) -> None:
    if not isinstance(document, dict):
        raise SchemaError(f"{where}: not an object of JSON")
    for name, check in checks.items():
        if name not in document:
            raise SchemaError(f"{where}: no {name}")
        if not check(document[name]):
            raise SchemaError(f"{where}: {name} is {shortened(shown(document[name]), 60)}")
    if exact and (unknown := document.keys() - checks.keys()):
        raise SchemaError(f"{where}: unknown key {shown(min(unknown))}")


def _finite(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise SchemaError(f"{text} is not finite")
    return value


def _distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        raise SchemaError("a key is repeated")
    return document
