"""The ranking of held-out links against a loop."""

import numpy as np
import pytest

from vhe.graph.validation import (
    ENOUGH_LINKS,
    MOST_FOLDS,
    ranking_auc,
    validation_folds,
    win_rates,
)


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    length = np.linalg.norm(a) * np.linalg.norm(b)
    return float(a @ b / length) if length else 0.0


@pytest.mark.parametrize("ties", [False, True])
def test_win_rates_against_a_loop(ties):
    rng = np.random.default_rng(0)
    axes = np.array([[1, 0], [0, 1], [-1, 0], [0, -1], [0, 0]])  # cosines without rounding
    codes = axes[rng.integers(5, size=12)] if ties else rng.normal(size=(12, 4))
    links = np.array([[0, 1], [0, 2], [3, 4], [5, 6], [6, 0], [7, 8], [9, 10], [10, 11]])
    linked = {frozenset(link) for link in links.tolist()}
    expected = []
    for link in links.tolist():
        for i, j in (link, link[::-1]):
            reached = cosine(codes[i], codes[j])
            others = [k for k in range(12) if k != i and frozenset((i, k)) not in linked]
            scores = [cosine(codes[i], codes[k]) for k in others]
            expected.append(np.mean([0.5 * (s == reached) + (s < reached) for s in scores]))
    found = win_rates(codes.astype(np.float32), links)
    np.testing.assert_allclose(found, expected)
    assert ranking_auc(codes.astype(np.float32), links) == pytest.approx(np.mean(expected))


def test_equal_codes_win_half():
    links = np.array([[0, 1], [2, 3]])
    assert win_rates(np.ones((4, 2), np.float32), links) == pytest.approx([0.5] * 4)
    assert ranking_auc(np.ones((4, 2), np.float32), links) == 0.5


def test_nothing_to_compare_with():
    codes = np.ones((2, 3), np.float32)
    assert np.isnan(win_rates(codes, np.array([[0, 1]]))).all()
    assert ranking_auc(codes, np.array([[0, 1]])) is None


def numbered_links(count: int, start: int = 0) -> np.ndarray:
    return np.arange(start, start + 2 * count).reshape(-1, 2)


def as_set(links: np.ndarray) -> set[tuple[int, ...]]:
    return {tuple(link) for link in links.tolist()}


@pytest.mark.parametrize(("links", "validation"), [(100, 10), (30, 9), (5, 4), (3, 8)])
def test_held_out_links_of_a_fold_are_not_read(links: int, validation: int) -> None:
    train, held = numbered_links(links), numbered_links(validation, start=1000)
    folds = validation_folds(train, held, seed=0)
    assert folds[0].links is train
    assert folds[0].held_out is held
    assert len(folds) == 1 + min(MOST_FOLDS - 1, links // validation)
    everything = as_set(train) | as_set(held)
    seen: list[tuple[int, ...]] = []
    for fold in folds:
        assert not as_set(fold.links) & as_set(fold.held_out)
        assert as_set(fold.links) | as_set(fold.held_out) == everything
        assert len(fold.held_out) == validation
        seen += as_set(fold.held_out)
    assert len(seen) == len(set(seen))  # each link is held out at most once


def test_enough_validation_links_need_no_further_fold() -> None:
    train = numbered_links(2000)
    assert len(validation_folds(train, numbered_links(ENOUGH_LINKS, 9000), 0)) == 1
    assert len(validation_folds(train, numbered_links(ENOUGH_LINKS // 2, 9000), 0)) == 2
    (fold,) = validation_folds(train, train[:0], 0)
    assert fold.links is train
    assert not len(fold.held_out)
