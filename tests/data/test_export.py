"""Embeddings in files of each format."""

from pathlib import Path

import numpy as np
import pytest

from vhe.data.export import write_embedding
from vhe.errors import VHEError

MEAN = np.array([[1.5, -2.25, 0.1], [1e-9, 3.0, 7.0]], dtype=np.float32)


def test_embedding_to_parquet(tmp_path: Path) -> None:
    from pyarrow import parquet

    path = tmp_path / "new" / "z.parquet"
    write_embedding(path, ["a", "b"], MEAN, MEAN * 2)
    table = parquet.read_table(path)
    assert table.column_names == ["id", "mean", "std"]
    assert table["id"].to_pylist() == ["a", "b"]
    assert np.array_equal(np.array(table["mean"].to_pylist(), dtype=np.float32), MEAN)
    assert np.array_equal(np.array(table["std"].to_pylist(), dtype=np.float32), MEAN * 2)
    write_embedding(path, [3, 4], MEAN[:, ::-1])
    assert parquet.read_table(path)["id"].to_pylist() == [3, 4]
    assert parquet.read_table(path)["mean"].to_pylist()[0] == MEAN[0, ::-1].tolist()


def test_embedding_to_csv(tmp_path: Path) -> None:
    import pandas

    write_embedding(tmp_path / "z.csv", ['a,"b"', "b"], MEAN, MEAN * 2)
    table = pandas.read_csv(tmp_path / "z.csv", index_col="id")
    assert list(table.index) == ['a,"b"', "b"]
    assert list(table.columns) == [f"{part}_{k}" for part in ("mean", "std") for k in range(3)]
    assert np.array_equal(table.iloc[:, :3].to_numpy(dtype=np.float32), MEAN)


def test_embedding_to_npy(tmp_path: Path) -> None:
    write_embedding(tmp_path / "z.npy", ["a", "b"], MEAN)
    assert np.array_equal(np.load(tmp_path / "z.npy"), MEAN)
    write_embedding(tmp_path / "z.npy", ["a", "b"], MEAN, MEAN * 2)
    assert np.array_equal(np.load(tmp_path / "z.npy"), np.stack([MEAN, MEAN * 2]))


def test_a_full_disk_is_reported_for_npy(tmp_path: Path) -> None:
    """`np.save` itself loses the last block without an error."""
    resource = pytest.importorskip("resource")
    mean = np.ones((10, 100), dtype=np.float32)  # 4,000 bytes after a header of 128
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(VHEError, match=r"z\.npy cannot be written: File too large"):
            write_embedding(tmp_path / "z.npy", range(10), mean)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []


def test_embedding_to_word2vec(tmp_path: Path) -> None:
    path = tmp_path / "z.txt"
    write_embedding(path, ['a "b', 7], MEAN)
    first, *lines = path.read_text().splitlines()
    assert first == "2 3"
    assert [line.split(" ")[0] for line in lines] == ['a_"b', "7"]
    values = np.array([line.split(" ")[1:] for line in lines], dtype=np.float32)
    assert np.array_equal(values, MEAN)
    for ids, std, sentence in (
        (["a b", "a_b"], None, "are equal or empty"),
        (["a", "b"], MEAN, "cannot store standard deviations"),
    ):
        with pytest.raises(VHEError, match=sentence):
            write_embedding(path, ids, MEAN, std)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "z.txt"
    write_embedding(path, ["a", "b"], MEAN)
    before = path.read_bytes()
    with pytest.raises(VHEError, match="equal or empty"):
        write_embedding(path, ["", "b"], MEAN)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    (tmp_path / "z.npy").mkdir()
    with pytest.raises(VHEError, match="is a folder; name a file"):
        write_embedding(tmp_path / "z.npy", ["a", "b"], MEAN)
    with pytest.raises(VHEError, match="cannot be written"):
        write_embedding(path / "z.npy", ["a", "b"], MEAN)
    with pytest.raises(VHEError, match=r"extension '\.bin'"):
        write_embedding(tmp_path / "z.bin", ["a", "b"], MEAN)
    with pytest.raises(VHEError, match=r"3 vertices cannot have the shape \(2, 3\)"):
        write_embedding(tmp_path / "y.npy", ["a", "b", "c"], MEAN)
