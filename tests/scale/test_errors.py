"""What a user can do wrong, and full disks: one sentence each."""

from __future__ import annotations

import resource
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from vhe import scale
from vhe.data.network import TextNetwork
from vhe.errors import VHEError


@pytest.fixture
def copy(textual: TextNetwork, write_parquet: Callable[..., None], tmp_path: Path) -> Path:
    """A copy of the dataset, to be damaged."""
    write_parquet(textual, tmp_path / "copy", parts=3)
    return tmp_path / "copy"


def sentence(fit: Callable[..., Any], *args: Any, **options: Any) -> str:
    with pytest.raises(VHEError) as caught:
        fit(*args, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_paths(distributed_fit: Callable[..., Any], tmp_path: Path) -> None:
    assert "does not exist" in sentence(distributed_fit, tmp_path / "nowhere")
    for name in ("vertices", "edges"):
        (tmp_path / "empty" / name).mkdir(parents=True)
    assert "contains no part file" in sentence(distributed_fit, tmp_path / "empty")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    assert "contains files" in sentence(distributed_fit, out=tmp_path / "full")


def test_part_files(distributed_fit: Callable[..., Any], copy: Path, tmp_path: Path) -> None:
    part = copy / "vertices" / "part-00001.parquet"
    table = parquet.read_table(part)

    def with_part(table: pa.Table, name: str) -> str:
        parquet.write_table(table, part)
        return sentence(distributed_fit, copy, out=tmp_path / name)

    found = with_part(table.rename_columns(["id", "words"]), "a")
    assert "part-00001.parquet: no column for the text" in found
    numbers = pa.table({"id": list(range(len(table))), "text": table["text"]})
    found = with_part(numbers, "b")
    assert "part-00001.parquet: the column 'id' holds integers" in found
    assert "one schema" in found
    missing = table.set_column(0, "id", pa.array([*table["id"].to_pylist()[:-1], None]))
    assert "part-00001.parquet (row 100): no id" in with_part(missing, "c")
    repeated = table.set_column(0, "id", pa.array(["p0", *table["id"].to_pylist()[1:]]))
    assert "duplicate id 'p0' in rows 1 and 101" in with_part(repeated, "d")
    renamed = table.set_column(0, "id", pa.array(["q", *table["id"].to_pylist()[1:]]))
    found = with_part(renamed, "e")
    assert "'p100': no vertex has this id" in found
    assert "edges/part-" in found
    part.write_bytes(b"PAR1 but nothing else")
    assert "not a readable Parquet file" in sentence(distributed_fit, copy, out=tmp_path / "f")


def test_part_file_that_disappears(
    distributed_fit: Callable[..., Any], copy: Path, tmp_path: Path
) -> None:
    part = copy / "vertices" / "part-00002.parquet"

    def remove(name: str, moment: str) -> None:
        if (name, moment) == ("vocabulary", "start"):
            part.unlink()

    found = sentence(distributed_fit, copy, on_phase=remove)
    assert "part-00002.parquet does not exist: a part file is missing" in found
    found = sentence(distributed_fit, copy, resume=True)
    assert "started with other part files (vertices)" in found


def test_disk_without_space(distributed_fit: Callable[..., Any], cluster: Any) -> None:
    from distributed import Client

    def limit(size: int) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    with Client(cluster, set_as_default=False) as client:
        client.run(limit, 2000)  # bytes of a file: the system refuses to write more
        try:
            found = sentence(distributed_fit)
        finally:
            client.run(limit, resource.RLIM_INFINITY)
    assert "cannot be written: File too large" in found


def test_scheduler_that_is_not_there(dataset: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("vhe.scale.engine.CONNECT_SECONDS", 0.5)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    found = sentence(
        scale.fit, dataset / "vertices", dataset / "edges", tmp_path / "out", scheduler=address
    )
    assert f"the Dask scheduler {address} cannot be reached" in found


def test_max_memory(dataset: Path, tmp_path: Path) -> None:
    paths = dataset / "vertices", dataset / "edges", tmp_path / "out"
    assert "the memory is 'much'" in sentence(scale.fit, *paths, max_memory="much")
