"""What is gathered from tables in shards."""

from pathlib import Path

import numpy as np
import pytest

from vhe.scale.shards import Ragged, Sharded, shard, write_array, write_ragged

STATM = Path("/proc/self/statm")
MEGABYTE = 1 << 20


def resident_megabytes() -> float:
    return int(STATM.read_text().split()[1]) * 4096 / MEGABYTE


def test_rows_of_several_shards_in_the_given_order(tmp_path: Path) -> None:
    table = np.arange(30).reshape(10, 3)
    for number, part in enumerate(np.split(table, [4, 7])):
        write_array(shard(tmp_path, "table", number), part)
    rows = np.array([9, 0, 5, 5, 3])
    assert np.array_equal(Sharded(tmp_path, "table", [4, 3, 3]).take(rows), table[rows])


@pytest.mark.skipif(not STATM.exists(), reason="no /proc")
@pytest.mark.parametrize("kind", [Sharded, Ragged])
def test_gathered_rows_leave_no_pages_of_the_file_in_memory(
    kind: type[Sharded], tmp_path: Path
) -> None:
    rows, width = 16 * 1024, 1024
    values = np.ones((rows, width), np.float32)
    if kind is Ragged:
        write_ragged(tmp_path, "table", 0, values.ravel(), np.arange(rows + 1) * width)
    else:
        write_array(shard(tmp_path, "table", 0), values)
    del values
    table, some = kind(tmp_path, "table", [rows]), np.arange(0, rows, 16)
    before = resident_megabytes()
    taken = table.take_ragged(some)[0] if isinstance(table, Ragged) else table.take(some)
    assert taken.nbytes == 4 * MEGABYTE
    assert resident_megabytes() - before < 20  # the file has 64
