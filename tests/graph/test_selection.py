"""The choice of the coupling strengths: folds without leaks, regularised by a standard error."""

import numpy as np
import pytest
import torch

from vhe.graph import selection
from vhe.graph.model import TextNeighbours
from vhe.graph.neighbours import text_neighbours
from vhe.graph.prior import GraphPrior
from vhe.graph.selection import (
    LINK_STRENGTHS,
    TEXT_KNN_WEIGHTS,
    _best,
    choose_encoder_weight,
    choose_weights,
)
from vhe.graph.validation import ENOUGH_LINKS, validation_folds


def as_set(links: np.ndarray) -> set[tuple[int, ...]]:
    return {tuple(link) for link in links.tolist()}


def test_a_candidate_must_be_better_by_more_than_a_standard_error() -> None:
    rng = np.random.default_rng(0)
    noise = rng.normal(size=100)
    noise -= noise.mean()
    error = noise.std() / 10

    def scores(gain: float) -> dict[float, np.ndarray]:
        return {1.0: np.zeros(100), 2.0: noise + gain}

    assert _best((1.0, 2.0), scores(0.9 * error).__getitem__) == 1.0
    assert _best((1.0, 2.0), scores(1.1 * error).__getitem__) == 2.0
    assert _best((1.0, 2.0), scores(-5.0).__getitem__) == 1.0


def test_the_best_of_several_candidates() -> None:
    gains = {1.0: 0.0, 2.0: 0.5, 4.0: 0.7, 8.0: -1.0}
    assert _best((1.0, 2.0, 4.0, 8.0), lambda c: np.full(9, gains[c])) == 4.0
    undefined = np.full(9, np.nan)  # no vertex to compare with
    assert _best((1.0, 2.0), lambda c: undefined) == 1.0


NO_NEIGHBOURS = TextNeighbours(np.zeros((0, 2), np.int64), np.zeros(0, np.float32))


def choose(
    codes: np.ndarray,
    links: np.ndarray,
    validation: np.ndarray,
    neighbours: TextNeighbours | None = None,
    **given: float | None,
) -> tuple[float, float]:
    near = text_neighbours(codes, np.zeros(len(codes), bool)) if neighbours is None else neighbours
    weights = {"link_strength": None, "text_knn_weight": None, **given}
    lengths = np.full(len(codes), 9)
    return choose_weights(codes, lengths, near, validation_folds(links, validation, 0), **weights)


def clusters(n: int = 80, groups: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Groups of vertices, and links inside of them."""
    rng = np.random.default_rng(0)
    group = np.arange(n) % groups
    i, j = np.triu_indices(n, 1)
    inside = np.column_stack([i, j])[group[i] == group[j]]
    return group, rng.permutation(inside)


def test_links_count_more_where_the_texts_say_nothing() -> None:
    group, links = clusters()
    codes = np.random.default_rng(1).normal(size=(len(group), 8)).astype(np.float32)
    strength, weight = choose(codes, links[60:], links[:60])
    assert strength > LINK_STRENGTHS[0]
    assert weight < TEXT_KNN_WEIGHTS[0]


def test_links_count_less_where_they_say_nothing() -> None:
    group, links = clusters()
    rng = np.random.default_rng(1)
    codes = (np.eye(8)[group] + 0.3 * rng.normal(size=(len(group), 8))).astype(np.float32)
    unrelated = rng.integers(len(group), size=(200, 2))
    unrelated = unrelated[unrelated[:, 0] != unrelated[:, 1]]
    # folds of the unrelated links would count as well: enough validation links need none
    held_out = np.concatenate([links] * 2)[:ENOUGH_LINKS]
    strength, _ = choose(codes, unrelated, held_out)
    assert strength == min(LINK_STRENGTHS)


def test_given_values_are_returned_without_a_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    group, links = clusters()
    codes = np.random.default_rng(1).normal(size=(len(group), 8)).astype(np.float32)
    free = choose(codes, links[60:], links[:60])
    given = choose(codes, links[60:], links[:60], link_strength=free[0])
    assert given[0] == free[0]
    assert choose(codes, links[60:], links[:60], text_knn_weight=0.3)[1] == 0.3
    monkeypatch.setattr(selection, "_fold", None)  # not called
    both = choose(codes, links[60:], links[:60], link_strength=0.0, text_knn_weight=7.0)
    assert both == (0.0, 7.0)


def test_without_validation_links_the_defaults_are_taken() -> None:
    group, links = clusters()
    codes = np.random.default_rng(1).normal(size=(len(group), 8)).astype(np.float32)
    assert choose(codes, links, links[:0]) == (LINK_STRENGTHS[0], TEXT_KNN_WEIGHTS[0])
    assert choose(codes, links, links[:0], link_strength=3.0) == (3.0, TEXT_KNN_WEIGHTS[0])


def test_few_validation_links_stay_at_the_defaults() -> None:
    """Two vertices: no other vertex to compare with, so that nothing can be chosen."""
    codes, links = np.eye(2, dtype=np.float32), np.array([[0, 1]])
    found = choose(codes, links[:0], links, NO_NEIGHBOURS)
    assert found == (LINK_STRENGTHS[0], TEXT_KNN_WEIGHTS[0])


def test_candidates_are_scored_on_priors_without_the_held_out_links(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    group, links = clusters()
    codes = np.random.default_rng(1).normal(size=(len(group), 8)).astype(np.float32)
    folds = [as_set(fold.links) for fold in validation_folds(links[60:], links[:60], 0)]
    read: list[set[tuple[int, ...]]] = []

    class Spy(GraphPrior):
        def __init__(self, links: np.ndarray, *rest: object, **more: object) -> None:
            read.append(as_set(links))
            super().__init__(links, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(selection, "GraphPrior", Spy)
    choose(codes, links[60:], links[:60])
    assert read
    assert all(links in folds for links in read)


def test_the_range_of_candidates() -> None:
    assert min(LINK_STRENGTHS) <= 0.25
    assert max(LINK_STRENGTHS) >= 8
    assert 0.0 in TEXT_KNN_WEIGHTS


def test_the_weights_of_the_encoder_0_and_1_read_one_part_each() -> None:
    group, links = clusters()
    rng = np.random.default_rng(1)
    first, second, third = torch.from_numpy(rng.normal(size=(3, len(group), 8)).astype("f"))

    def auc(text: torch.Tensor, vectors: torch.Tensor, weight: float) -> float | None:
        lengths = np.full(len(group), 9)
        return choose_encoder_weight(
            text, vectors, lengths, validation_folds(links[60:], links[:60], 0), given=weight
        ).auc

    assert auc(first, third, 1.0) == auc(second, third, 1.0)
    assert auc(third, first, 0.0) == auc(third, second, 0.0)
    assert len({auc(first, third, weight) for weight in (0.0, 0.5, 1.0)}) == 3
