"""What a fit of a large network does in blocks, against the same as a whole."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from vhe.data.text import Corpus
from vhe.errors import VHEError
from vhe.graph import blocks, neighbours, selection
from vhe.graph.blocks import Blocks
from vhe.graph.memory import COLUMNS, Size, columns_within, phase_memory
from vhe.graph.neighbours import largest, nearest_texts, text_neighbours
from vhe.graph.prior import GraphPrior
from vhe.runtime import native, tables
from vhe.text import codes as text_codes
from vhe.text import lsa
from vhe.text.codes import TextCodes

RNG = np.random.default_rng(0)
TEXTS = [" ".join(f"w{k}" for k in RNG.integers(40, size=RNG.integers(0, 12))) for _ in range(90)]
CORPUS = Corpus.build(TEXTS, min_count=1)
LINKS = np.unique(np.sort(RNG.integers(90, size=(150, 2)), axis=1), axis=0)
LINKS = LINKS[LINKS[:, 0] != LINKS[:, 1]]


@pytest.fixture(params=["memory", "file"])
def small_blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (text_codes, lsa):
        monkeypatch.setattr(module, "TEXTS_AT_ONCE", 7)
    monkeypatch.setattr(tables, "ROWS_AT_ONCE", 11)
    monkeypatch.setattr(neighbours, "BLOCK", 13)
    if request.param == "file":
        monkeypatch.setattr(tables, "IN_MEMORY", 0)


def word_vectors() -> torch.Tensor:
    words = torch.randn(len(CORPUS.vocabulary) + 1, 10, generator=torch.Generator().manual_seed(0))
    words[0] = 0
    return words


def assert_same(found: np.ndarray, expected: np.ndarray) -> None:
    """The same bits; the rounding of torch alone depends on how many columns are solved for."""
    error = 0 if native.is_available(torch.zeros(1)) else 1e-6
    np.testing.assert_allclose(found, expected, rtol=error, atol=error)


@pytest.mark.usefixtures("small_blocks")
def test_codes_and_means_of_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    words, codes = word_vectors(), TextCodes(CORPUS)
    whole = codes(words)
    table, centre = codes.table(words)
    np.testing.assert_allclose(table, whole.numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(centre, codes.centre(words).numpy(), rtol=1e-4, atol=1e-5)
    prior = GraphPrior(LINKS, CORPUS.lengths, link_strength=1.0)
    expected = prior.posterior().mean(torch.from_numpy(table.copy())).numpy()
    for columns in (3, 8, 64):
        assert_same(prior.posterior().mean_table(table, width=columns), expected)
    monkeypatch.setattr(blocks, "WHOLE_GRAPH", 10)
    own = Blocks(codes, 4, show=False)
    own.use(words)
    assert_same(own.table("embedding", lambda: prior), expected)
    last = np.flatnonzero(np.isin(LINKS, LINKS.max()).any(axis=1))
    masked, vertices = np.array([0, 5, 9, *last]), np.arange(90)
    exact = prior.posterior(masked).mean(torch.from_numpy(table.copy())).numpy()
    found = own.means("embedding", prior, masked, vertices)
    assert np.abs(found - exact).max() < 0.02 * np.abs(exact - expected).max()
    assert_same(own.means("embedding", prior, masked[:0], vertices), expected)


def test_a_small_graph_is_solved_for_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "REGION", 8)
    words, masked, vertices = word_vectors(), np.array([0, 5, 9]), np.arange(90)
    prior = GraphPrior(LINKS, CORPUS.lengths, link_strength=1.0)
    own = Blocks(TextCodes(CORPUS), 4, show=False)
    codes = torch.from_numpy(own.use(words))
    exact = prior.posterior(masked).mean(codes).numpy()
    assert np.array_equal(own.means("embedding", prior, masked, vertices), exact)


@pytest.mark.usefixtures("small_blocks")
def test_nearest_texts_of_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    table, _ = TextCodes(CORPUS).table(word_vectors())
    empty = CORPUS.lengths == 0
    exact = text_neighbours(np.array(table), empty)
    monkeypatch.setattr(neighbours, "EXACT_UP_TO", 10)
    monkeypatch.setattr(neighbours, "NEAREST_CLUSTERS", 50)  # all of them
    found = text_neighbours(table, empty)
    assert np.array_equal(found.pairs, exact.pairs)
    np.testing.assert_allclose(found.cosines, exact.cosines, rtol=1e-4, atol=1e-5)


def test_of_equally_near_texts_the_first_are_taken() -> None:
    codes = np.array([[1, 0], [1, 1], [1, 1], [1, 1], [1, 1], [-4, -4]], dtype=np.float32)
    pairs, _ = nearest_texts(codes, 2)
    assert {tuple(pair) for pair in pairs.tolist()} >= {(1, 2), (1, 3), (2, 3), (1, 4), (2, 4)}
    assert (3, 4) not in {tuple(pair) for pair in pairs.tolist()}
    rows = torch.tensor([[0.5, 0.7, 0.7 + 1e-7, 0.9, 0.7], [0.1, 0.2, 0.3, 0.4, 0.5]])
    value, index = largest(rows, 2)
    assert index.sort(dim=1).values.tolist() == [[1, 3], [3, 4]]
    assert torch.allclose(value.sort(dim=1).values, torch.tensor([[0.7, 0.9], [0.4, 0.5]]))


def unweighted(links: np.ndarray) -> None:
    """Links without weights."""


def test_strengths_chosen_in_a_region(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = RNG.normal(size=(90, 8)).astype(np.float32)
    near = text_neighbours(codes, np.zeros(90, bool))
    given = (codes, None, CORPUS.lengths, near, unweighted, LINKS[20:], LINKS[:20])
    whole = selection._fold(*given)
    with monkeypatch.context() as patch:
        patch.setattr(selection, "REGION", 8)  # a small graph is solved for as a whole
        assert np.array_equal(selection._fold(*given)(1.0, 2.0), whole(1.0, 2.0))
    monkeypatch.setattr(selection, "WHOLE_GRAPH", 10)
    region = selection._fold(*given)
    for strengths in ((1.0, 2.0), (4.0, 0.0)):
        assert np.abs(whole(*strengths) - region(*strengths)).mean() < 0.03


@pytest.mark.usefixtures("small_blocks")
def test_word_vectors_refined_by_all_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = lsa.lsa_word_vectors(CORPUS, 40, 0)
    monkeypatch.setattr(lsa, "LSA_TEXTS", 60)
    found = lsa.lsa_word_vectors(CORPUS, 40, 0)
    # in 40 dimensions the vocabulary has full rank: both span everything, up to a rotation
    np.testing.assert_allclose(found @ found.T, exact @ exact.T, rtol=1e-3, atol=1e-3)


def size(n: int) -> Size:
    return Size(n, 2 * n, 500 * n, 88, 8700, 200, 2)


def test_less_memory_means_fewer_columns() -> None:
    unlimited = max(phase_memory(size(10**6)).values())
    assert columns_within(size(10**6), None) == COLUMNS
    assert columns_within(size(10**6), unlimited) == COLUMNS
    needs = [phase_memory(size(10**6), columns)["posterior"] for columns in (8, 16, 32, 64)]
    tables = 2 * 4 * 10**6  # right sides and solutions, of a column
    assert np.diff(needs[:3]).tolist() == [8 * tables, 16 * tables]
    assert needs[3] > needs[2]
    with pytest.raises(VHEError, match=r"needs about .* GB, more than the limit of 0.5 GB"):
        columns_within(size(10**6), 5 * 10**8)
    assert columns_within(size(1000), 10**9) == COLUMNS
    threads = [dataclasses.replace(size(10**6), threads=count) for count in (1, 2)]
    one, two = (phase_memory(own, 32)["posterior"] for own in threads)
    assert one == two  # one block of columns: a second thread has nothing to solve


def test_memory_has_room_for_the_rows_of_near_clusters() -> None:
    n, narrow, wide = 10**6, 100, 200

    def rows(dimensions: int) -> int:  # structure has no rows of texts, and the same base
        phases = phase_memory(dataclasses.replace(size(n), dimensions=dimensions))
        return phases["text neighbours"] - phases["structure"]

    near = neighbours.NEAREST_CLUSTERS * n**0.5 / neighbours.CLUSTERS
    assert rows(wide) - rows(narrow) >= 4 * near * (wide - narrow)


def test_a_table_that_does_not_fit_on_the_disk() -> None:
    with pytest.raises(VHEError, match="cannot be written to the temporary folder"):
        tables.new_table(2**40, 2**10)
