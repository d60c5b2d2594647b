"""Layouts: reproducible, and with similar vertices near each other."""

import sys

import numpy as np
import pytest

from vhe.predict.layout import layout


def clusters(seed: int, each: int = 40, dimensions: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Three clusters of directions; the lengths of the rows differ greatly."""
    rng = np.random.default_rng(seed)
    centres = 4 * np.eye(3, dimensions)
    group = np.repeat(np.arange(3), each)
    rows = centres[group] + rng.normal(scale=0.4, size=(3 * each, dimensions))
    return rows * rng.uniform(0.01, 100, size=(len(rows), 1)), group


@pytest.fixture(params=["openTSNE", "scikit-learn"])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a test with openTSNE, and without it."""
    if request.param == "openTSNE":
        pytest.importorskip("openTSNE")
    else:
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        monkeypatch.setitem(sys.modules, "openTSNE", None)
    return str(request.param)


def test_similar_vertices_are_near_each_other(either: str) -> None:
    rows, group = clusters(0)
    points = layout(rows, seed=0)
    apart = np.linalg.norm(points[:, None] - points[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    assert points.shape == (120, 2)
    assert (group[apart.argmin(axis=1)] == group).all()
    assert apart[group[:, None] == group].min() < apart[group[:, None] != group].min()


def test_the_same_seed_gives_the_same_layout(either: str) -> None:
    rows, _ = clusters(1)
    first = layout(rows, seed=3)
    np.random.default_rng().random(5)
    np.testing.assert_array_equal(layout(rows, seed=3), first)


def test_centred_with_the_longer_axis_first(either: str) -> None:
    points = layout(clusters(2)[0], seed=0)
    np.testing.assert_allclose(points.mean(axis=0), 0, atol=1e-9)
    assert points[:, 0].std() >= points[:, 1].std()


@pytest.mark.parametrize("n", range(9))
@pytest.mark.parametrize("dimensions", [1, 2, 7])
def test_few_vertices(n: int, dimensions: int) -> None:
    points = layout(np.random.default_rng(n).normal(size=(n, dimensions)), seed=0)
    assert points.shape == (n, 2)
    assert np.isfinite(points).all()


@pytest.mark.parametrize("n", [2, 4, 30])
def test_equal_rows_and_rows_of_zeros(n: int, either: str) -> None:
    for rows in (np.zeros((n, 5)), np.ones((n, 5)), np.ones((n, 5), dtype=np.float32)):
        assert np.isfinite(layout(rows, seed=0)).all()


def test_the_length_of_a_row_does_not_matter() -> None:
    rows, _ = clusters(3)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    assert np.abs(layout(4 * unit, seed=0) - layout(unit, seed=0)).max() == 0


@pytest.mark.slow
def test_sixty_thousand_vertices() -> None:
    pytest.importorskip("openTSNE")
    rows, group = clusters(4, each=20_000, dimensions=30)
    points = layout(rows, seed=0)
    centres = np.stack([np.median(points[group == k], axis=0) for k in range(3)])
    nearest = np.linalg.norm(points[:, None] - centres[None], axis=2).argmin(axis=1)
    assert (nearest == group).mean() > 0.95
