"""The folder of a model in shards is input: whatever is in it, finite answers or one sentence."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from vhe.errors import VHEError
from vhe.scale.checked import SUGGESTION
from vhe.scale.ids import arrow_shard, hashed
from vhe.scale.model import ShardedModel
from vhe.scale.shards import shard, write_array

ROWS = [5, 4]
INFO: dict[str, Any] = {"part_rows": ROWS, "buckets": 1, "id_type": "string"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model of nine vertices in two parts."""
    ids, rng, start = [f"v{k}" for k in range(sum(ROWS))], np.random.default_rng(0), 0
    index = hashed(ids, "string")
    index["row"] = np.arange(len(ids))
    write_array(shard(tmp_path, "index", 0), np.sort(index, order="hash"))
    for part, count in enumerate(ROWS):
        table = pa.table({"id": ids[start : start + count], "text": ["some words"] * count})
        path = arrow_shard(tmp_path, part)
        path.parent.mkdir(exist_ok=True)
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        links = np.zeros((count, 3), dtype=SUGGESTION)
        links["row"] = rng.integers(0, len(ids), links.shape)
        links["row"][:, 2], links["probability"] = -1, 0.25
        write_array(shard(tmp_path, "suggestions", part), links)
        write_array(shard(tmp_path, "embedding", part), rng.random((count, 4), dtype=np.float32))
        write_array(shard(tmp_path, "std", part), np.ones((count, 1), dtype=np.float32))
        start += count
    (tmp_path / "model.json").write_text(json.dumps(INFO))
    return tmp_path


def answers(folder: Path) -> bool:
    """Whether the model answers, with finite numbers; False if it is refused in one sentence."""
    try:
        model = ShardedModel(folder)
        numbers = [s.probability for s in model.suggest("v1", 3)]
        mean, std = model.embed(["v1", "v8"], return_std=True)
        numbers += [*mean.ravel(), *std.ravel()]
        for found in model.suggest_parts(2):
            numbers += found["probability"].tolist()
        for _, mean, std in model.shards():
            numbers += [*mean.ravel(), *std.ravel()]
    except VHEError as error:
        assert "\n" not in str(error)  # noqa: PT017
        return False
    assert np.isfinite(numbers).all()
    return True


def test_a_sound_model(folder: Path) -> None:
    assert answers(folder)


WRONG = {
    "part_rows": [None, 5, "x", [], {}, [5], [5, 5], [-5, 14], [1.5, 2], [True], [10**18], [2**40]],
    "buckets": [None, 0, -1, 1.5, "1", 10**18, True, [1]],
    "id_type": [None, "integer", "float", 1, []],
}


@pytest.mark.parametrize(("key", "value"), [(k, v) for k in WRONG for v in WRONG[k]], ids=str)
def test_wrong_values_of_the_description(folder: Path, key: str, value: object) -> None:
    (folder / "model.json").write_text(json.dumps(INFO | {key: value}))
    assert not answers(folder)


@pytest.mark.parametrize("raw", [b"", b"[]", b"1", b"\xff", b"{", b"[" * 100_000])
def test_a_description_that_is_none(folder: Path, raw: bytes) -> None:
    (folder / "model.json").write_bytes(raw)
    assert not answers(folder)


def links(row: int, probability: float) -> np.ndarray:
    return np.full((ROWS[1], 3), np.array((row, probability), dtype=SUGGESTION))


@pytest.mark.parametrize(
    ("table", "values"),
    [
        ("embedding", np.full((4, 4), np.nan, np.float32)),
        ("embedding", np.full((4, 4), np.inf, np.float32)),
        ("embedding", np.zeros((4, 3), np.float32)),
        ("embedding", np.zeros((4, 4), np.float64)),
        ("embedding", np.zeros((3, 4), np.float32)),
        ("embedding", np.zeros(4, np.float32)),
        ("std", np.full((4, 1), np.nan, np.float32)),
        ("suggestions", np.zeros((4, 3), np.float32)),
        ("suggestions", links(9, 0.5)),
        ("suggestions", links(-2, 0.5)),
        ("suggestions", links(1, 1.5)),
        ("suggestions", links(1, np.nan)),
    ],
)
def test_wrong_tables(folder: Path, table: str, values: np.ndarray) -> None:
    write_array(shard(folder, table, 1), values)
    assert not answers(folder)


def test_rows_of_the_index_beyond_the_table(folder: Path) -> None:
    index = np.load(shard(folder, "index", 0))
    index["row"] += 100
    write_array(shard(folder, "index", 0), index)
    assert not answers(folder)


def test_a_file_of_another_kind_in_the_place_of_a_table(folder: Path) -> None:
    path = shard(folder, "embedding", 0)
    with path.open("wb") as file:
        np.savez(file, a=np.zeros(3))
    assert not answers(folder)


def test_changed_bytes(folder: Path) -> None:
    draw, files = random.Random(1), sorted(p for p in folder.rglob("*") if p.is_file())
    for k in range(400):
        path = files[k % len(files)]
        whole = path.read_bytes()
        damaged = bytearray(whole)
        if k % 4 == 0:
            del damaged[draw.randrange(len(damaged)) :]
        else:
            for _ in range(draw.randrange(1, 20)):
                place = draw.randrange(min(len(damaged), 10**6 if k % 4 == 1 else 200))
                damaged[place] = 255 if k % 4 == 2 else draw.randrange(256)
        path.write_bytes(damaged)
        answers(folder)
        path.write_bytes(whole)
    assert answers(folder)
