"""Tables in temporary files that are mapped into memory."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from vhe.graph.prior import GraphPrior
from vhe.runtime import tables
from vhe.runtime.arrays import release
from vhe.runtime.tables import new_table, take_rows


def file_pages() -> int:
    """Bytes of mapped files that are resident."""
    return 1024 * int(re.findall(r"RssFile:\s+(\d+)", Path("/proc/self/status").read_text())[0])


def test_rows_of_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "SCATTERED_AT_ONCE", 3)
    rows = np.array([5, 0, 5, 39, 7, 8, 1])
    for in_memory in (0, 1 << 20):
        monkeypatch.setattr(tables, "IN_MEMORY", in_memory)
        table = new_table(40, 2)
        table[:] = np.arange(80).reshape(40, 2)
        assert np.array_equal(take_rows(table, rows), table[rows])
        assert take_rows(table, rows[:0]).shape == (0, 2)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_region_of_a_large_graph_does_not_read_the_whole_table() -> None:
    n, size = 200_000, 4 * 200_000 * 200
    table = new_table(n, 200)
    assert isinstance(table, np.memmap)
    for start in range(0, n, 10_000):
        table[start : start + 10_000] = 1
        release(table)
    far = np.random.default_rng(0).permutation(n)
    links = np.stack([far[::2], far[1::2]], axis=1)
    prior = GraphPrior(links, np.full(n, 9), link_strength=1.0)
    before = file_pages()
    _, inflow = prior.restricted_posterior(np.arange(20_000), table)
    assert inflow.shape == (20_000, 200)
    assert file_pages() - before < size / 4
