"""A model folder is input: values that no fit can have are refused, also with right checksums."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vhe.errors import VHEError
from vhe.estimators import VHE, PairVHE, load_model
from vhe.storage.arrays import array_file, read_arrays
from vhe.storage.folder import MANIFEST, json_bytes, read_folder
from vhe.storage.folder import write_folder as write
from vhe.storage.schema import parse_json


@pytest.fixture
def saved(fitted: VHE, tmp_path: Path) -> Path:
    fitted.save(tmp_path / "model")
    return tmp_path / "model"


def assert_refused(folder: Path, reason: str) -> None:
    with pytest.raises(VHEError, match=reason) as refused:
        load_model(folder)
    assert str(folder) in str(refused.value)
    assert "\n" not in str(refused.value)


def rewritten(folder: Path, **files: bytes) -> None:
    """Replace files, with right checksums; names are given without extension."""
    found: dict[str, Any] = read_folder(folder, "model")
    names = {name.partition(".")[0]: name for name in found}
    write(folder, found | {names[key]: data for key, data in files.items()}, "model")


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        ("config.numbers.link.offset", 1e308, "link.offset"),
        ("config.numbers.link.embedding", True, "embedding"),
        ("config.numbers.link_strength", -1.0, "link_strength"),
        ("config.numbers.mean_log_length", 10**400, "mean_log_length|too large"),
        ("config.network.name", 7, "name"),
        ("config.network.edges", 10**9, "rows"),
        ("config.network.vectors", [[1.0]], "vectors"),
        ("result.seed", -1, "seed"),
        ("result.added", "many", "added"),
        ("result.validation_auc", "high", "validation_auc"),
        ("result.validation_auc", 1.5, "validation_auc"),
        ("result.best_step", 10**6, "best_step"),
        ("result.model", "pair", "model"),
        ("result.notes", [1], "notes"),
        ("result.reliability.count", [1.0], "reliability"),
        ("result.reliability.frequency", "often", "frequency"),
        ("result.versions", None, "versions"),
    ],
)
def test_documents(saved: Path, path: str, value: Any, reason: str) -> None:
    name, *keys = path.split(".", 2)
    document = json.loads((saved / f"{name}.json").read_bytes())
    holder = document
    for key in keys[:-1]:
        holder = holder[key]
    holder[keys[-1]] = value
    rewritten(saved, **{name: json_bytes(document)})
    assert_refused(saved, reason)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_json_numbers_are_finite_and_keys_distinct(saved: Path, number: str) -> None:
    text = (saved / "result.json").read_text()
    rewritten(saved, result=text.replace('"seconds": ', f'"seconds": {number}, "x": ').encode())
    assert_refused(saved, "finite")
    with pytest.raises(ValueError, match="repeated"):
        parse_json('{"seed": 1, "seed": 2}')


@pytest.mark.parametrize("record", ['{"seconds": 1}', '{"step": "a"}', "[]", '{"step": NaN}'])
def test_history(saved: Path, record: str) -> None:
    rewritten(saved, history=f"{record}\n".encode())
    assert_refused(saved, "history|finite")


@pytest.mark.parametrize("change", ["repeated", "empty", "open"])
def test_vocabulary(saved: Path, change: str) -> None:
    words = (saved / "vocabulary.txt").read_bytes().split(b"\n")
    if change == "repeated":
        words[0] = words[1]
    elif change == "empty":
        words[0] = b""
    else:
        words[-1] = b"more"
    rewritten(saved, vocabulary=b"\n".join(words))
    assert_refused(saved, "vocabulary.txt")


def changed_table(name: str, change: Callable[[Any], Any]) -> Callable[[Path], None]:
    def act(folder: Path) -> None:
        arrays = {
            key: np.array(v) for key, v in read_arrays(folder / "weights.safetensors", "").items()
        }
        arrays[name] = change(arrays[name])
        array_file(arrays)(folder.parent / "changed")
        rewritten(folder, weights=(folder.parent / "changed").read_bytes())

    return act


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("mean", lambda t: t * np.float32(1e30)),
        ("variance", lambda t: t * np.float32(1e30)),
        ("variance", lambda t: -t),
        ("precision", lambda t: 0 * t),
        ("diagonal", lambda t: t / 1000),
        ("tokens", lambda t: t + 10**6),
        ("tokens", lambda t: 0 * t),
        ("offsets", lambda t: t[::-1]),
        ("offsets", lambda t: t.astype(np.float32)),
        ("neighbours.pairs", lambda t: t + 60),
        ("neighbours.cosines", lambda t: t + 2),
        ("words", lambda t: t.astype(np.int32)),
        ("words", lambda t: np.where(t > 1, np.nan, t).astype(np.float32)),
        ("structure_signs", lambda t: np.ones(3, np.float32)),
    ],
)
def test_tables(saved: Path, name: str, change: Callable[[Any], Any]) -> None:
    changed_table(name, change)(saved)
    assert_refused(saved, f"weights.safetensors: ({name}|structure)")


def test_the_weights_of_a_network_are_bounded(fitted_pair: PairVHE, tmp_path: Path) -> None:
    fitted_pair.save(tmp_path / "model")
    changed_table("network.words.weight", lambda t: t * np.float32(1e9))(tmp_path / "model")
    assert_refused(tmp_path / "model", "network.words.weight")


@pytest.mark.parametrize("name", ["vertices", "edges"])
def test_rows_are_counted_before_they_are_read(saved: Path, name: str, monkeypatch: Any) -> None:
    """A file of some kilobytes with two million equal rows; nothing of it is read."""
    n = 2_000_000
    values = {"id": '"a"', "text": "word", "source": 0, "target": 1}
    columns = pq.read_schema(saved / f"{name}.parquet").names
    table = pa.table({key: pa.repeat(values.get(key, '"a"'), n) for key in columns})
    pq.write_table(table, saved.parent / "many", compression="zstd")
    rewritten(saved, **{name: (saved.parent / "many").read_bytes()})
    genuine = pq.ParquetFile.read

    def read(file: Any, *arguments: Any, **options: Any) -> Any:
        assert file.metadata.num_rows < n
        return genuine(file, *arguments, **options)

    monkeypatch.setattr(pq.ParquetFile, "read", read)
    assert_refused(saved, "2,000,000 rows")


def test_many_equal_edges_are_read_without_a_python_object_each(saved: Path) -> None:
    """A count that agrees: five million equal edges take a second, not minutes."""
    import time

    n = 5_000_000
    table = pa.table({"source": pa.repeat(0, n), "target": pa.repeat(1, n)})
    pq.write_table(table, saved.parent / "many", compression="zstd")
    about = json.loads((saved / "config.json").read_bytes())
    about["network"]["edges"] = n
    files = {"edges": (saved.parent / "many").read_bytes(), "config": json_bytes(about)}
    rewritten(saved, **files)
    began = time.process_time()
    assert len(load_model(saved).network_.edges) == n
    assert time.process_time() - began < 4


def test_what_cannot_be_loaded_is_not_saved(fitted: VHE, tmp_path: Path) -> None:
    model = VHE.__new__(VHE)
    model.__dict__ = fitted.__dict__ | {"result_": fitted.result_ | {"seed": -1}}
    with pytest.raises(VHEError, match=r"cannot be saved: result\.json: seed"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_equal_labels_are_decoded_once(saved: Path, monkeypatch: Any) -> None:
    from vhe.storage import model_folder

    decoded: list[str] = []
    genuine = model_folder._key
    monkeypatch.setattr(model_folder, "_key", lambda text: decoded.append(text) or genuine(text))
    load_model(saved)
    assert len(decoded) == 60 + 5
    assert (saved / MANIFEST).exists()
