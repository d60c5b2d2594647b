"""Suggestions for one vertex of a large network: those of all pairs, from a few candidates."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vhe.errors import VHEError
from vhe.fitted import open_model
from vhe.predict import predictor, scan
from vhe.predict.pair_features import paired
from vhe.runtime import arrays

New = Callable[..., Any]


@pytest.fixture(params=["graph", "pair"])
def model(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue("fitted" if request.param == "graph" else "fitted_pair")


def test_candidates_lead_to_the_likeliest_links(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = model.network_.ids
    exact = [model.suggest_links(vertex, 5) for vertex in ids]
    monkeypatch.setattr(predictor, "EXACT_UP_TO", 10)
    monkeypatch.setattr(scan, "NEAREST", 20)
    found = [model.suggest_links(vertex, 5) for vertex in ids]
    same = [len({s.id for s in a} & {s.id for s in b}) for a, b in zip(exact, found, strict=True)]
    assert np.mean(same) >= 4.75
    linked = {frozenset((ids[i], ids[j])) for i, j in model.network_.links.tolist()}
    for vertex, suggestions in zip(ids, found, strict=True):
        assert len(suggestions) == 5
        assert vertex not in {s.id for s in suggestions}
        assert not any(frozenset((vertex, s.id)) in linked for s in suggestions)
    probability = {s.id: s.probability for s in exact[0]}
    shared = [s for s in found[0] if s.id in probability]
    np.testing.assert_allclose(
        [s.probability for s in shared], [probability[s.id] for s in shared], rtol=1e-5
    )


def test_rows_of_a_few_vertices_are_those_of_the_whole_table(model: Any, tmp_path: Path) -> None:
    few = np.array([3, 17, 41])
    model.__dict__.pop("_rows", None)
    alone = model._rows_of(few)
    assert "_rows" not in model.__dict__
    table = model._rows.take(few)
    names = ("embedding", *model._scales, "words", "degree", "isolated", "structure", "neighbours")
    for (name, one), (_, other) in zip(
        paired(alone, alone.take(np.array([1, 2, 0])), names),
        paired(table, table.take(np.array([1, 2, 0])), names),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-6, err_msg=name)


def test_cosines_of_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(0).normal(size=(50, 6)).astype(np.float32)
    rows[7] = 0
    monkeypatch.setattr(arrays, "BLOCK", 4 * 6 * 8)
    cosines = scan.scanned_cosines(rows, rows[3])
    length = np.linalg.norm(rows, axis=1) * np.linalg.norm(rows[3])
    np.testing.assert_allclose(cosines, rows @ rows[3] / np.where(length, length, 1), atol=1e-6)


def test_a_scan_releases_the_memory_that_it_maps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = Path("/proc/self/smaps_rollup")
    if not status.exists():
        pytest.skip("memory is measured on Linux only")
    table = np.lib.format.open_memmap(
        tmp_path / "table.npy", mode="w+", dtype=np.float32, shape=(40_000, 200)
    )
    table[:] = 1.0
    table.flush()
    del table
    table = np.load(tmp_path / "table.npy", mmap_mode="r")
    monkeypatch.setattr(arrays, "BLOCK", 1 << 20)

    def resident() -> int:
        lines = status.read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("Rss"))

    before, most = resident(), 0
    for _, block in arrays.blocks(table):
        assert block.sum() == block.size
        most = max(most, resident() - before)
    assert most < table.nbytes / 4


@pytest.mark.parametrize("table", ["embedding_", "_corpus"])
def test_a_damaged_table_is_reported_when_it_is_read(
    fitted: Any, tmp_path: Path, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted.save(tmp_path / "model")
    model = open_model(tmp_path / "model")
    assert model is not None
    if table == "embedding_":
        model.embedding_ = model.embedding_.copy()
        model.embedding_[5] = np.nan
    else:
        tokens = model._corpus.tokens.copy()
        tokens[:] = len(model.vocabulary_) + 1
        model._corpus = type(model._corpus)(tokens, model._corpus.offsets, model.vocabulary_)
    monkeypatch.setattr(predictor, "EXACT_UP_TO", 10)
    ids = model.network_.ids
    with pytest.raises(VHEError, match="damaged"):
        model.suggest_links(ids[5])
    with pytest.raises(VHEError, match="damaged"):
        model.score([(ids[5], ids[6])])
