"""Scores by inner products are the same in one block and in several."""

import numpy as np
import pytest

from vhe.baselines.inner_product import InnerProductMethod


@pytest.mark.parametrize("count", [0, 1, 3, 4, 10])
def test_blocks(monkeypatch, count):
    monkeypatch.setattr("vhe.baselines.inner_product.PAIRS_AT_ONCE", 3)
    sizes = []

    class Recorded(InnerProductMethod):
        def _products(self, sources, targets):
            sizes.append(len(sources))
            return super()._products(sources, targets)

    method = Recorded()
    method.embedding_ = np.arange(20, dtype=np.float32).reshape(10, 2)
    sources, targets = np.arange(count), np.arange(count)[::-1]
    scores = method.score_indices(sources, targets)
    assert scores.dtype == np.float32
    np.testing.assert_array_equal(scores, method.score_matrix(sources, targets).diagonal())
    assert max(sizes) <= 3
    assert sum(sizes) == count
