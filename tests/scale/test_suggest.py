"""Centroids, lists of embeddings and the search for likely partners, without a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from vhe.predict.link_posterior import LinkPosterior
from vhe.runtime.arrays import unit_rows
from vhe.scale import centroids, lists, suggest
from vhe.scale.shards import Sharded, read_array, shard, write_array, write_ragged

VOCABULARY, DENSITY = 40, 0.01


class Here:
    """The interface of `Engine`, in this process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def map(self, task: str, function: Callable[..., Any], items: Iterable[Any], *args: Any) -> Any:
        return [function(item, *args) for item in items]

    def reduce(
        self,
        task: str,
        function: Callable[..., Any],
        items: Iterable[Any],
        *args: Any,
        combine: Callable[[list[Any]], Any],
    ) -> Any:
        return combine(self.map(task, function, items, *args))


def around(directions: int, n: int, noise: float) -> Any:
    """Unit rows around some directions, and the direction of each."""
    rng = np.random.default_rng(0)
    group = rng.integers(directions, size=n)
    axes = unit_rows(rng.standard_normal((directions, 16)))
    rows = unit_rows(axes[group] + noise * rng.standard_normal((n, 16)))
    return rows.astype(np.float32), group


@pytest.mark.parametrize("sizes", [[600], [100, 0, 380, 120]])
def test_centroids_are_those_of_separate_groups(tmp_path: Path, sizes: list[int]) -> None:
    rows, group = around(24, 600, 0.05)
    for part, some in enumerate(np.split(rows, np.cumsum(sizes)[:-1])):
        write_array(shard(tmp_path, "rows", part), some)
    centroids.find_centroids(Here(tmp_path), "rows", sizes, 8)  # type: ignore[arg-type]
    table = np.asarray(read_array(centroids.centroids_path(tmp_path, "rows")))
    assert table.shape == (75, 16)
    np.testing.assert_allclose(np.linalg.norm(table, axis=1), 1, rtol=1e-5)
    own = centroids.nearest_centroids(rows, table)
    assert np.array_equal(own, (rows @ table.T).argmax(axis=1))
    for number in np.unique(own):  # no cluster has rows of two groups
        assert len(np.unique(group[own == number])) == 1
    order = np.array([np.bincount(group[own == k], minlength=24).argmax() for k in np.unique(own)])
    assert (np.diff(order) != 0).sum() < 24 + 12  # similar clusters follow each other


def test_centroids_without_any_filled_row(tmp_path: Path) -> None:
    for part in range(2):
        write_array(shard(tmp_path, "rows", part), np.zeros((5, 4), np.float32))
    centroids.find_centroids(Here(tmp_path), "rows", [5, 5], 8)  # type: ignore[arg-type]
    table = read_array(centroids.centroids_path(tmp_path, "rows"))
    assert np.isfinite(table).all()
    assert len(table) == 1


@pytest.fixture
def tables(tmp_path: Path) -> SimpleNamespace:
    """The tables of 900 vertices in blocks, some of them isolated, and their links."""
    rng, sizes, n = np.random.default_rng(1), [300, 400, 200], 900
    unit, _ = around(30, n, 0.3)
    links = [np.zeros(0, np.int64) for _ in range(n)]
    near = np.argsort(-(unit @ unit.T), axis=1)
    for i in range(0, n, 2):  # with the vertex that would be suggested first
        links[i] = near[i, 1:3]
    words: Any = sparse.random_array((n, VOCABULARY), density=0.1, format="csr", rng=rng)
    words = sparse.csr_array(unit_rows(words.toarray()).astype(np.float32))
    parts = np.split(np.arange(n), np.cumsum(sizes)[:-1])
    for block, some in enumerate(parts):
        write_array(shard(tmp_path, "mean-embedding", block), 3 * unit[some])
        write_array(shard(tmp_path, "rows", block), n - 1 - some)
        write_array(shard(tmp_path, "degree", block), np.array([len(links[i]) for i in some]))
        ends = np.append(0, np.cumsum([len(links[i]) for i in some]))
        write_ragged(tmp_path, "links", block, np.concatenate([links[i] for i in some]), ends)
        own = words[some]
        write_ragged(tmp_path, "tfidf", block, own.data, own.indptr.astype(np.int64))
        write_ragged(tmp_path, "tfidf-words", block, own.indices, own.indptr.astype(np.int64))
    weights = {"embedding": 3.0, "words": 0.3, "degree": 0.2, "isolated": 1.0}
    other = {"embedding": 2.0, "words": 0.1, "degree": 0.1}
    return SimpleNamespace(
        work=tmp_path,
        sizes=sizes,
        links=links,
        posterior=LinkPosterior(weights, -2.0, other, -1.0),
    )


def suggestions(tables: SimpleNamespace, rows: int, k: int) -> Any:
    """What the phase of the pipeline does."""
    work, sizes, blocks = tables.work, tables.sizes, range(len(tables.sizes))
    here: Any = Here(work)
    here.map("", suggest.write_unit, blocks, work)
    centroids.find_centroids(here, suggest.UNIT, sizes, 20)
    counts = here.map("", suggest.assign, blocks, work, sizes)
    starts, ranges = lists.make_blocks(np.stack(counts).sum(axis=0), rows)
    numbers = range(len(ranges))
    here.map("", suggest.gather_members, numbers, work, len(sizes), starts, ranges)
    posterior = tables.posterior, VOCABULARY, DENSITY
    here.map("", suggest.suggest_range, numbers, work, sizes, ranges, starts, k, *posterior)
    here.map("", suggest.write_suggestions, blocks, work, sizes, len(ranges))
    return Sharded(work, "suggestions", sizes).take(np.arange(sum(sizes)))


def exact(tables: SimpleNamespace) -> Any:
    """The log odds of all pairs that are not linked."""
    n = sum(tables.sizes)
    read = suggest._Tables(tables.work, tables.sizes, tables.posterior, VOCABULARY)
    every = read(np.arange(n))
    scores = tables.posterior.log_odds_matrix(every, every)
    np.fill_diagonal(scores, -np.inf)
    for i, linked in enumerate(tables.links):
        scores[i, linked] = -np.inf
    return scores


@pytest.mark.parametrize("rows", [80, 2000])
def test_small_networks_are_searched_exactly(tables: SimpleNamespace, rows: int) -> None:
    found = suggestions(tables, rows, 5)
    scores = exact(tables)
    expected = np.sort(scores, axis=1)[:, ::-1][:, :5]
    value = np.take_along_axis(scores, found["row"], axis=1)
    np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-5)
    balanced = 1 / (1 + np.exp(-value))
    odds = balanced / (1 - balanced) * DENSITY / (1 - DENSITY)
    np.testing.assert_allclose(found["probability"], odds / (1 + odds), rtol=1e-4)


def test_large_networks_are_searched_in_the_nearest_lists(
    tables: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suggest, "EXACT_UP_TO", 100)
    scores = exact(tables)
    best = np.argsort(-scores, axis=1)[:, :10]
    shares = {}
    for probes in (1, 4, 12):
        monkeypatch.setattr(suggest, "LISTS", probes)
        found = suggestions(tables, 200, 10)["row"]
        assert not any(set(row) & set(own) for row, own in zip(found, tables.links, strict=True))
        assert not (found == np.arange(len(found))[:, None]).any()
        shares[probes] = np.mean([len({*a} & {*b}) / 10 for a, b in zip(found, best, strict=True)])
    assert shares[1] < shares[4] < shares[12]
    assert shares[1] > 0.2
    assert shares[12] > 0.9


def test_words_lift_partners_without_links_above_others(tables: SimpleNamespace) -> None:
    other = {"embedding": 3.0, "words": 0.5}
    tables.posterior = LinkPosterior({"embedding": 3.0, "words": 0.0}, 0.0, other, -1.5)
    best = np.argsort(-exact(tables), axis=1)[:, :5]
    alone = np.array([not len(own) for own in tables.links])
    assert alone[best[~alone]].mean() > 0.2
    found = suggestions(tables, 200, 5)["row"]
    assert np.mean([len({*a} & {*b}) / 5 for a, b in zip(found, best, strict=True)]) > 0.95


def test_fewer_partners_than_wanted(tables: SimpleNamespace) -> None:
    found = suggestions(tables, 200, 895)
    n = len(found)
    available = n - 1 - np.array([len(np.unique(own)) for own in tables.links])
    assert ((found["row"] >= 0).sum(axis=1) == np.minimum(available, 895)).all()
    assert (found["probability"][found["row"] < 0] == 0).all()
