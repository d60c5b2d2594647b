"""AUC by degree against a direct computation."""

import numpy as np
import pytest

from vhe.data.network import TextNetwork
from vhe.data.splits import split_edges
from vhe.evaluation.degree import auc_by_degree
from vhe.predict.scoring import CosineMethod


class Table(CosineMethod):
    """Scores by a fixed random embedding."""

    def __init__(self, n: int) -> None:
        self.embedding_ = np.random.default_rng(2).normal(size=(n, 3))


@pytest.fixture
def star() -> TextNetwork:
    """A hub with 20 links, a ring of 10 vertices and five pairs."""
    edges = [(0, k) for k in range(1, 21)] + [(21 + k, 21 + (k + 1) % 10) for k in range(10)]
    edges += [(31 + 2 * k, 32 + 2 * k) for k in range(5)]
    return TextNetwork(range(42), [""] * 42, np.array(edges))


@pytest.mark.parametrize("protocol", ["clean", "lines"])
def test_groups_against_a_loop(star: TextNetwork, protocol) -> None:
    _, test = split_edges(star, 0.5, 0, protocol)
    method = Table(42)
    bounds = {(1, 1): [], (2, 2): [], (3, 20): []}
    negatives = test.negatives()
    for row, (i, j) in enumerate(test.pairs):
        score = method.score_indices(np.array([i]), np.array([j]))
        if protocol == "clean":
            others = method.score_indices(negatives[row, :, 0], negatives[row, :, 1])
        else:
            ends = np.setdiff1d(test.candidates, [j])
            others = method.score_indices(np.full(len(ends), i), ends)
        points = (others < score).mean() + (others == score).mean() / 2
        for end in (i, j):
            for (least, most), values in bounds.items():
                if least <= star.degrees[end] <= most:
                    values.append(points)
    # Quartiles of 41 vertices: degree 1 to the median, 2, and the hub alone above.
    found = {(g.least, g.most): g for g in auc_by_degree(method, test)}
    assert set(found) == set(bounds)
    for key, values in bounds.items():
        assert found[key].edges == len(values)
        assert found[key].auc == pytest.approx(np.mean(values))


def test_a_group_without_held_out_edges_has_no_auc(star: TextNetwork) -> None:
    for seed in range(50):
        _, test = split_edges(star, 0.97, seed)
        groups = auc_by_degree(Table(42), test)
        if any(g.edges == 0 for g in groups):
            assert all((g.auc is None) == (g.edges == 0) for g in groups)
            return
    pytest.fail("no split has an empty group")
