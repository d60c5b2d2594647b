"""Nearest texts against a loop, in blocks, by clusters, and without empty texts."""

import numpy as np
import pytest

from vhe.graph import neighbours
from vhe.graph.neighbours import nearest_texts, text_neighbours


def some_codes(n: int = 9, d: int = 3, seed: int = 2) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


def centred_cosines(codes: np.ndarray) -> np.ndarray:
    centred = codes - codes.mean(axis=0)
    unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    return unit @ unit.T


@pytest.mark.parametrize("count", [1, 3, 20])
def test_nearest_texts_are_those_of_the_largest_centred_cosine(count):
    codes = some_codes()
    table = centred_cosines(codes)
    expected = set()
    for i in range(9):
        others = sorted((j for j in range(9) if j != i), key=lambda j: -table[i, j])
        near = [j for j in others[:count] if table[i, j] > 0]
        expected |= {(min(i, j), max(i, j)) for j in near}
    pairs, cosines = nearest_texts(codes, count)
    assert sorted(map(tuple, pairs.tolist())) == sorted(expected)
    assert cosines == pytest.approx(table[pairs[:, 0], pairs[:, 1]], abs=1e-6)


def test_many_texts_are_compared_in_blocks():
    n = 4300  # more rows than one block has
    codes = some_codes(n, seed=3)
    pairs, _ = nearest_texts(codes, 1)
    centred = codes - codes.mean(axis=0)
    unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    found = set(map(tuple, pairs.tolist()))
    for i in (0, 1, 2000, n - 2, n - 1):
        cosine = unit @ unit[i]
        cosine[i] = -2
        j = int(cosine.argmax())
        assert (min(i, j), max(i, j)) in found
    assert n / 2 <= len(found) <= n


def test_clusters_find_nearly_all_of_the_nearest(monkeypatch):
    rng = np.random.default_rng(4)
    topics = rng.normal(size=(40, 8))
    codes = (topics[rng.integers(40, size=3000)] + 0.5 * rng.normal(size=(3000, 8))).astype("f")
    pairs, cosines = nearest_texts(codes, 5)
    exact = dict(zip(map(tuple, pairs.tolist()), cosines, strict=True))
    monkeypatch.setattr(neighbours, "EXACT_UP_TO", 100)
    pairs, cosines = nearest_texts(codes, 5)
    found = dict(zip(map(tuple, pairs.tolist()), cosines, strict=True))
    assert len(found) == len(pairs)  # each pair once
    assert (pairs[:, 0] < pairs[:, 1]).all()
    shared = found.keys() & exact.keys()
    assert len(shared) > 0.95 * len(exact)
    assert all(found[pair] == pytest.approx(exact[pair], abs=1e-6) for pair in shared)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_very_few_texts(n):
    pairs, cosines = nearest_texts(np.ones((n, 3), np.float32).reshape(n, 3))
    assert pairs.shape == (0, 2)
    assert cosines.shape == (0,)


def test_empty_texts_are_near_to_none():
    codes, empty = some_codes(12), np.zeros(12, dtype=bool)
    empty[[0, 5, 11]] = True
    found = text_neighbours(codes, empty)
    filled = np.flatnonzero(~empty)
    pairs, cosines = nearest_texts(codes[filled])
    assert len(pairs)
    np.testing.assert_array_equal(found.pairs, filled[pairs])
    np.testing.assert_array_equal(found.cosines, cosines)
    assert not np.isin(found.pairs, [0, 5, 11]).any()


def test_all_texts_empty():
    found = text_neighbours(some_codes(4), np.ones(4, dtype=bool))
    assert found.pairs.shape == (0, 2)
    assert found.cosines.shape == (0,)
