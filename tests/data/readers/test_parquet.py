"""Parquet files are read from memory of Arrow."""

import io
import sys

from vhe.data.readers.parquet import open_parquet


def test_arrow_holds_no_memory_of_python() -> None:
    """A thread of Arrow that releases such memory while the process ends would abort it."""
    import pyarrow
    from pyarrow import parquet

    written = io.BytesIO()
    parquet.write_table(pyarrow.table({"id": ["a", "b"]}), written)
    raw = written.getvalue()
    before = sys.getrefcount(raw)
    file = open_parquet(raw)
    assert sys.getrefcount(raw) == before
    assert file.read()["id"].to_pylist() == ["a", "b"]
