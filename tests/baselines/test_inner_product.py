"""Scores by inner products are the same in one block and in several."""

import numpy as np
import pytest

from vhe.baselines.inner_product import InnerProductMethod, in_blocks


@pytest.mark.parametrize("count", [0, 1, 3, 4, 10])
def test_blocks(monkeypatch, count):
    monkeypatch.setattr("vhe.baselines.inner_product.PAIRS_AT_ONCE", 3)
    method = InnerProductMethod()
    method.embedding_ = np.arange(20, dtype=np.float32).reshape(10, 2)
    sources, targets = np.arange(count), np.arange(count)[::-1]
    scores = method.score_indices(sources, targets)
    assert scores.dtype == np.float32
    np.testing.assert_array_equal(scores, method.score_matrix(sources, targets).diagonal())
    sizes = []
    in_blocks(lambda i, j: sizes.append(len(i)) or i, sources, targets)
    assert max(sizes) <= 3
    assert sum(sizes) == count
