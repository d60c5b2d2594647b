"""The parts of the pipeline on their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from vhe.data.network import TextNetwork
from vhe.data.text import Corpus, tokenize
from vhe.graph.neighbours import nearest_texts
from vhe.predict.link_posterior import LinkPosterior
from vhe.predict.pair_features import VertexRows
from vhe.runtime.arrays import unit_rows
from vhe.scale import ids, lists, solver, suggest, words
from vhe.scale.shards import Ragged, Sharded, collect, shard, write_array, write_ragged


def test_gathering_from_shards(tmp_path: Path) -> None:
    table = np.arange(30).reshape(10, 3)
    sizes = [4, 0, 5, 1]
    for number, part in enumerate(np.split(table, np.cumsum(sizes)[:-1])):
        write_array(shard(tmp_path, "table", number), part)
        lengths = part[:, 0] % 4
        values = np.repeat(part[:, 0], lengths)
        write_ragged(tmp_path, "ragged", number, values, np.append(0, np.cumsum(lengths)))
    rows = np.array([9, 0, 4, 4, 8, 3])
    sharded = Sharded(tmp_path, "table", sizes)
    assert np.array_equal(sharded.take(rows), table[rows])
    assert sharded.take(rows[:0]).shape == (0, 3)
    assert np.array_equal(sharded.range(4, 8), table[4:8])
    values, offsets = Ragged(tmp_path, "ragged", sizes).take_ragged(rows)
    found = [part.tolist() for part in np.split(values, offsets[1:-1])]
    assert found == [[v] * (v % 4) for v in table[rows, 0].tolist()]


def test_collect(tmp_path: Path) -> None:
    kind = np.dtype([("key", "<i8"), ("value", "<i8")])
    for number, keys in enumerate(([1, 3, 5], [], [2, 3, 9])):
        write_array(shard(tmp_path, "t", number), np.array([(k, number) for k in keys], dtype=kind))
    assert collect(tmp_path, "t", 3, "key", 2, 5)["key"].tolist() == [3, 2, 3]
    assert collect(tmp_path, "t", 3, "key", 4, None)["value"].tolist() == [0, 2]


def test_vocabulary_is_that_of_a_corpus(textual: TextNetwork) -> None:
    counts = []
    for texts in np.array_split(np.array(textual.texts, dtype=object), 7):
        part: dict[str, int] = {}
        for word in (w for text in texts for w in tokenize(text)):
            part[word] = part.get(word, 0) + 1
        counts.append(part)
    merged = words.merge_counts([words.merge_counts(counts[:3], 10**6), *counts[3:]], 10**6)
    expected = Corpus.build(textual.texts, min_count=2).vocabulary
    assert tuple(words.vocabulary_of(merged, 2, 10**6)) == expected
    assert words.vocabulary_of({"a": 1, "b": 3, "c": 1, "d": 3}, 1, 3) == ["a", "b", "d"]
    assert words.vocabulary_of({"a": 1}, 2, 3) == ["a"]


def test_ids_with_the_same_first_hash(tmp_path: Path) -> None:
    names = [f"v{i}" for i in range(50)] + ["图", ""]
    entries = ids.hashed(names, "string")
    entries["row"] = np.arange(len(names))
    entries["hash"][10:14] = entries["hash"][10]
    asked = entries.copy()
    for number, start in enumerate(ids.bucket_starts(3)):
        last = number == 2
        end = np.uint64(2**64 - 1) if last else ids.bucket_starts(3)[number + 1]
        inside = (entries["hash"] >= start) & ((entries["hash"] < end) | last)
        own = entries[inside]
        own = own[np.lexsort((own["check"], own["hash"]))]
        write_array(shard(tmp_path, "index", number), own)
    assert ids.find_rows(tmp_path, 3, asked[::-1]).tolist() == list(range(len(names)))[::-1]
    asked["check"][12] += np.uint64(1)
    assert ids.find_rows(tmp_path, 3, asked[11:14]).tolist() == [11, -1, 13]


@pytest.fixture
def clustered(tmp_path: Path) -> tuple[Sharded, np.ndarray, np.ndarray]:
    """600 unit rows in lists of different sizes (two of them empty), in two shards."""
    rng = np.random.default_rng(0)
    sizes = np.array([0, 200, 10, 90, 0, 1, 299])
    centres = unit_rows(rng.normal(size=(len(sizes), 8)).astype(np.float32))
    number = np.repeat(np.arange(len(sizes)), sizes)
    rows = unit_rows(centres[number] + 0.3 * rng.normal(size=(600, 8)).astype(np.float32))
    for k, part in enumerate((rows[:210], rows[210:])):
        write_array(shard(tmp_path, "rows", k), part)
    for k, part in enumerate((np.arange(210), np.arange(210, 600))):
        write_array(shard(tmp_path, "numbers", k), part)
    return Sharded(tmp_path, "rows", [210, 390]), centres, np.append(0, np.cumsum(sizes))


def found_by_block(
    table: Sharded, numbers: Sharded, centres: np.ndarray, starts: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    blocks = range(len(table.starts) - 1)
    found = [lists.nearest(k, table, numbers, centres, starts, count) for k in blocks]
    i, j, cosine = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return i, j, cosine


def test_nearest(clustered: tuple[Sharded, np.ndarray, np.ndarray], monkeypatch: object) -> None:
    table, centres, starts = clustered
    rows = table.take(np.arange(600))
    exact = rows @ rows.T
    np.fill_diagonal(exact, -2)
    expected = np.argsort(-exact, axis=1)[:, :5]
    assert exact[np.arange(600), expected[:, 4]].min() > 0
    numbers = Sharded(table.folder, "numbers", [210, 390])
    i, j, cosine = found_by_block(table, numbers, centres, starts, 5)
    assert sorted(zip(i, j, strict=True)) == sorted(
        zip(np.repeat(np.arange(600), 5), expected.ravel(), strict=True)
    )
    assert np.allclose(cosine, exact[i, j], atol=1e-5)
    monkeypatch.setattr(lists, "EXACT_UP_TO", 0)  # type: ignore[attr-defined]
    monkeypatch.setattr(lists, "PROBES", 3)  # type: ignore[attr-defined]
    near = {*zip(*found_by_block(table, numbers, centres, starts, 5)[:2], strict=True)}
    assert 0.9 < len(near & {*zip(i, j, strict=True)}) / len(i) < 1


def test_nearest_texts_are_those_of_one_process(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    codes = rng.normal(size=(200, 6)).astype(np.float32)
    codes[100:160] = codes[rng.integers(5, size=60)]  # more equal texts than neighbours
    pairs, _ = nearest_texts(codes)
    unit = unit_rows(codes - codes.mean(axis=0))
    order = np.argsort(np.arange(200) % 7, kind="stable")  # lists of rows in their order
    starts = np.append(0, np.cumsum(np.bincount(np.arange(200) % 7)))
    write_array(shard(tmp_path, "rows", 0), unit[order])
    write_array(shard(tmp_path, "numbers", 0), order)
    table, numbers = (Sharded(tmp_path, name, [200]) for name in ("rows", "numbers"))
    i, j, _ = lists.nearest(0, table, numbers, unit[:7], starts, 10)
    ours = np.sort(np.stack([order[i], order[j]], axis=1), axis=1)
    assert np.array_equal(np.unique(ours, axis=0), pairs)


def test_blocks_end_with_lists() -> None:
    starts, sizes = lists.make_blocks(np.array([5, 0, 7, 1, 1, 30, 2]), 10)
    assert sum(sizes) == 46
    assert {*np.cumsum(sizes).tolist()} <= {*starts.tolist()}
    assert min(sizes) > 0


def test_random_signs_depend_on_seed_row_and_column() -> None:
    rows = np.arange(5000)
    signs = solver.random_signs(rows, (0, 64), 7)
    assert np.array_equal(np.unique(signs), [-1, 1])
    assert np.abs(signs.T @ signs / 5000 - np.eye(64)).max() < 0.08
    assert np.abs(signs.mean()) < 0.01
    assert np.array_equal(signs[[4, 9], 10:20], solver.random_signs(rows[[4, 9]], (10, 20), 7))
    assert (signs != solver.random_signs(rows, (0, 64), 8)).mean() > 0.4


def test_iterations_grow_with_the_radius() -> None:
    counts = [solver.iterations_for(radius) for radius in (1e-3, 0.3, 0.9, 0.99, 1 - 1e-6)]
    assert counts == sorted(counts)
    assert counts[-1] == solver.MOST_ITERATIONS


def test_log_odds_of_candidates() -> None:
    rng, n = np.random.default_rng(0), 30
    words = sparse.random_array((n, 12), density=0.4, format="csr", rng=rng, dtype=np.float32)
    names = ("embedding", "weak links")
    rows = VertexRows(
        scales={k: unit_rows(rng.standard_normal((n, 4))).astype(np.float32) for k in names},
        words=words,
        degree=rng.integers(0, 3, n),
        structure=np.zeros((n, 0), np.float32),
        signs=np.zeros(0, np.float32),
        adjacency=sparse.csr_array((n, 1), dtype=np.float32),
        neighbour_weight=np.ones(1, np.float32),
    )
    weights = {"embedding": 2.0, "weak links": 0.5, "words": 0.7, "degree": -0.3, "isolated": 1.0}
    other = {name: 2 * weight for name, weight in weights.items()}
    places = np.array([3, 0, 17, 29, 8])
    for posterior in (LinkPosterior(weights, -1.0), LinkPosterior(weights, -1.0, other, 0.5)):
        expected = posterior.log_odds_matrix(rows.take(places), rows)
        found = suggest._log_odds(posterior, rows, places, slice(0, n))
        part = suggest._log_odds(posterior, rows, places, slice(7, 19))
        np.testing.assert_allclose(part, found[:, 7:19], rtol=1e-6)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
