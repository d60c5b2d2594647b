"""Splits are partitions without leaks, and negatives are not links."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from vhe.data.network import TextNetwork
from vhe.data.splits import (
    NEGATIVES,
    LinkTest,
    NonNeighbourSampler,
    assert_no_leak,
    count_leaks,
    split_edges,
    split_vertices,
    validation_links,
)
from vhe.errors import VHEError


def network_of(edges, vertices: int, **more) -> TextNetwork:
    ids = [f"v{k}" for k in range(vertices)]
    texts = [f"text of {k}" for k in range(vertices)]
    return TextNetwork(ids, texts, np.array(edges, dtype=np.int64).reshape(-1, 2), **more)


def random_network(vertices: int, lines: int, seed: int = 0) -> TextNetwork:
    return network_of(np.random.default_rng(seed).integers(vertices, size=(lines, 2)), vertices)


def linked_pairs(network: TextNetwork) -> set[tuple[int, int]]:
    return {tuple(sorted(pair)) for pair in network.edges.tolist() if pair[0] != pair[1]}


def with_a_ring(network: TextNetwork) -> TextNetwork:
    number = np.arange(len(network))
    ring = np.stack([number, np.roll(number, 1)], axis=1)
    return network.with_edges(np.concatenate([network.edges, ring]))


@st.composite
def networks(draw) -> TextNetwork:
    vertices = draw(st.integers(2, 9))
    number = st.integers(0, vertices - 1)
    return network_of(draw(st.lists(st.tuples(number, number), min_size=2)), vertices)


ratios = st.floats(0.01, 0.99)
seeds = st.integers(0, 2**32)
protocols = st.sampled_from(["clean", "lines"])


# Edges


@settings(deadline=None)
@given(networks(), ratios, seeds, protocols)
def test_a_split_is_a_partition_of_the_edges(network, ratio, seed, protocol):
    whole = network.links if protocol == "clean" else network.edges
    assume(len(whole) >= 2)
    train, test = split_edges(network, ratio, seed, protocol)
    union = np.concatenate([train.edges, test.pairs])
    assert sorted(map(tuple, union.tolist())) == sorted(map(tuple, whole.tolist()))
    assert min(len(train.edges), len(test)) >= 1
    assert abs(len(train.edges) - ratio * len(whole)) <= 1
    assert train.ids == network.ids
    assert train.texts == network.texts


@settings(deadline=None)
@given(networks(), ratios, seeds)
def test_a_clean_split_holds_edges_out_in_both_directions(network, ratio, seed):
    assume(len(network.links) >= 2)
    train, test = split_edges(network, ratio, seed)
    held_out = {tuple(sorted(pair)) for pair in test.pairs.tolist()}
    assert held_out.isdisjoint(linked_pairs(train))
    assert (test.pairs[:, 0] != test.pairs[:, 1]).all()
    assert test.leak == {"repeated": 0, "reversed": 0, "loops": 0}


@pytest.mark.parametrize("protocol", ["clean", "lines"])
def test_split_and_negatives_depend_on_the_seed(protocol):
    network = random_network(50, 200)
    first, again, other = (split_edges(network, 0.5, seed, protocol)[1] for seed in (3, 3, 4))
    assert np.array_equal(first.pairs, again.pairs)
    assert np.array_equal(first.negatives(), again.negatives())
    assert np.array_equal(first.negatives(), first.negatives())
    assert not np.array_equal(first.pairs, other.pairs)
    assert not np.array_equal(first.negatives(), other.negatives())


def test_a_clean_split_of_a_directed_network_is_undirected():
    network = network_of([(3, 0), (2, 1), (1, 0)], 4, directed=True)
    assert not split_edges(network, 0.5)[0].directed
    assert split_edges(network, 0.5, protocol="lines")[0].directed


def test_repr():
    _, test = split_edges(random_network(20, 40), 0.5, seed=7, protocol="lines")
    assert repr(test) == (
        "LinkTest(20 held-out edges of network, protocol='lines', ratio=0.5, seed=7)"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"ratio": 1.0}, "ratio is 1.0"),
        ({"ratio": 0}, "ratio is 0"),
        ({"ratio": float("nan")}, "ratio is nan"),
        ({"ratio": 0.5, "protocol": "cane"}, "'cane'"),
        ({"ratio": "0.5"}, "ratio is 0.5"),
        ({"ratio": None}, "ratio is None"),
        ({"ratio": 0.5, "seed": -1}, "seed is -1"),
        ({"ratio": 0.5, "seed": 1.5}, "seed is 1.5"),
        ({"ratio": 0.5, "seed": None}, "seed is None"),
    ],
)
@pytest.mark.parametrize("split", [split_edges, split_vertices])
def test_invalid_arguments_are_refused(split, arguments, words):
    with pytest.raises(VHEError, match=words):
        split(random_network(10, 20), **arguments)


@pytest.mark.parametrize("protocol", ["clean", "lines"])
def test_too_few_edges_are_refused(protocol):
    with pytest.raises(VHEError, match="1 edge; splitting needs"):
        split_edges(network_of([(0, 1)], 3), 0.5, protocol=protocol)
    with pytest.raises(VHEError, match="0 edges; splitting needs"):
        split_edges(network_of([], 3), 0.5, protocol=protocol)


def test_one_vertex_cannot_be_split():
    with pytest.raises(VHEError, match="one vertex"):
        split_edges(network_of([(0, 0), (0, 0)], 1), 0.5, protocol="lines")


# Leaks


def test_a_training_network_with_a_held_out_edge_is_refused():
    network = random_network(30, 90)
    train, test = split_edges(network, 0.6)
    assert assert_no_leak(train, test) == test.leak
    for leaked in (test.pairs[:1], test.pairs[:1, ::-1]):
        with pytest.raises(VHEError, match="contains held-out edges"):
            assert_no_leak(train.with_edges(np.concatenate([train.edges, leaked])), test)
    with pytest.raises(VHEError, match="contains held-out edges"):
        assert_no_leak(network, test)


def test_leaks_are_found_by_vertex_id():
    network = random_network(30, 90)
    train, test = split_edges(network, 0.6)
    backwards = np.arange(30)[::-1].copy()
    assert_no_leak(train.subnetwork(backwards), test)
    with pytest.raises(VHEError, match="contains held-out edges"):
        assert_no_leak(network.subnetwork(backwards), test)


def test_leaks_of_lines_are_counted():
    network = network_of([(0, 1), (1, 0), (2, 3), (2, 3), (4, 4), (0, 4), (4, 4)], 5)
    train = network.with_edges(network.edges[[1, 3, 6]])
    test = LinkTest(train, network, network.edges[[0, 2, 4, 5]], "lines", 0.4, 0)
    assert test.leak == {"repeated": 0.5, "reversed": 0.25, "loops": 0.25}
    assert assert_no_leak(train, test) == test.leak


# Negatives


@settings(deadline=None)
@given(networks(), ratios, seeds)
def test_clean_negatives_are_never_links_nor_loops(network, ratio, seed):
    vertices = len(network)
    assume(2 <= len(network.links) < vertices * (vertices - 1) // 2)
    _, test = split_edges(network, ratio, seed)
    negatives = test.negatives()
    assert negatives.shape == (len(test), NEGATIVES, 2)
    assert negatives.min() >= 0
    assert negatives.max() < vertices
    drawn = {tuple(sorted(pair)) for pair in negatives.reshape(-1, 2).tolist()}
    assert drawn.isdisjoint(linked_pairs(network))
    assert all(i != j for i, j in drawn)


def test_half_of_the_clean_negatives_replace_each_end():
    _, test = split_edges(random_network(60, 150), 0.5)
    negatives = test.negatives()
    half = NEGATIVES // 2
    assert (negatives[:, :half, 0] == test.pairs[:, :1]).all()
    assert (negatives[:, half:, 1] == test.pairs[:, 1:]).all()


def test_negatives_of_several_blocks():
    _, test = split_edges(random_network(300, 4000), 0.3)
    sizes = [len(block) for block in test.negative_blocks()]
    assert len(sizes) > 1
    assert sum(sizes) == len(test)
    assert (test.negatives()[:, 0, 0] == test.pairs[:, 0]).all()


def test_the_other_end_is_kept_if_one_is_linked_with_all_vertices():
    spokes = [(0, k) for k in range(1, 6)]
    _, test = split_edges(network_of(spokes, 6), 0.5)
    negatives = test.negatives()
    assert (negatives[..., 1] == test.pairs[:, 1:]).all()
    assert (negatives[..., 0] > 0).all()


def test_any_unlinked_pair_is_drawn_if_both_ends_are_linked_with_all_vertices():
    hubs = [(0, 1), *((hub, k) for hub in (0, 1) for k in range(2, 5))]
    network = network_of(hubs, 5)
    test = LinkTest(network, network, np.array([[0, 1]]), "clean", 0.5, 0)
    assert set(np.unique(test.negatives())) == {2, 3, 4}


def test_a_clique_has_no_negatives():
    clique = [(i, j) for i in range(5) for j in range(i)]
    _, test = split_edges(network_of(clique, 5), 0.5)
    with pytest.raises(VHEError, match="no negatives exist"):
        test.negatives()


@settings(deadline=None)
@given(networks(), st.integers(0, 2**20))
def test_non_neighbours_are_exactly_the_unlinked_vertices(network, seed):
    vertices = len(network)
    sampler = NonNeighbourSampler(network.links, vertices)
    linked = linked_pairs(network)
    expected = [
        {
            other
            for other in range(vertices)
            if other != v and tuple(sorted((v, other))) not in linked
        }
        for v in range(vertices)
    ]
    assert sampler.count.tolist() == [len(found) for found in expected]
    some = np.flatnonzero(sampler.count)
    assume(len(some))
    drawn = sampler.draw(np.repeat(some, 200), np.random.default_rng(seed)).reshape(-1, 200)
    for v, found in zip(some, drawn, strict=True):
        assert (
            set(found.tolist()) == expected[v]
        )  # the probability of missing one of 8 is below 1e-10


def test_non_neighbours_are_drawn_uniformly():
    sampler = NonNeighbourSampler(np.array([[0, 2], [0, 3], [0, 7], [1, 2]]), 10)
    drawn = sampler.draw(np.zeros(60_000, dtype=np.int64), np.random.default_rng(0))
    counts = np.bincount(drawn, minlength=10)
    assert np.flatnonzero(counts).tolist() == [1, 4, 5, 6, 8, 9]
    assert np.abs(counts[counts > 0] - 10_000).max() < 5 * np.sqrt(10_000)


@settings(deadline=None)
@given(networks(), ratios, seeds)
def test_line_negatives_are_vertices_of_the_test_other_than_the_target(network, ratio, seed):
    _, test = split_edges(network, ratio, seed, "lines")
    found = set(test.pairs.ravel().tolist())
    allowed = found if len(found) > 1 else set(range(len(network)))
    assert set(test.candidates.tolist()) == allowed
    negatives = test.negatives()
    assert (negatives[..., 0] == test.pairs[:, :1]).all()
    assert (negatives[..., 1] != test.pairs[:, 1:]).all()
    assert set(negatives[..., 1].ravel().tolist()) <= allowed


def test_line_negatives_may_be_the_source_and_its_neighbours():
    network = network_of([(0, 1), (0, 2), (3, 4)], 5)
    test = LinkTest(network, network, network.edges[:2], "lines", 0.5, 0)
    assert set(test.negatives()[0, :, 1].tolist()) == {0, 2}


# Vertices


@settings(deadline=None)
@given(networks(), ratios, seeds, protocols)
def test_edges_of_unseen_vertices_are_tested_and_not_in_training(network, ratio, seed, protocol):
    network = with_a_ring(network)  # so that every vertex has an edge
    train, test = split_vertices(network, ratio, seed, protocol)
    seen = len(train)
    assert 1 <= seen < len(network)
    assert test.network.ids == train.ids + test.unseen.ids
    assert test.network.texts == train.texts + test.unseen.texts
    assert set(test.network.ids) == set(network.ids)
    assert not len(test.unseen.edges)
    assert (test.pairs.max(axis=1) >= seen).all()
    assert count_leaks(train, test)["repeated"] == 0

    def by_id(edges, ids):
        return {frozenset((ids[i], ids[j])) for i, j in edges.tolist() if i != j}

    seen_edges, tested = by_id(train.edges, train.ids), by_id(test.pairs, test.network.ids)
    assert seen_edges.isdisjoint(tested)
    assert seen_edges | tested == by_id(network.edges, network.ids)


def test_unseen_vertices_without_edges_are_refused():
    with pytest.raises(VHEError, match="none of the 5 unseen vertices"):
        split_vertices(network_of([], 10), 0.5)


def test_unseen_texts_match_their_ids():
    network = random_network(40, 120)
    _, test = split_vertices(network, 0.55, seed=2)
    assert len(test.unseen) == 18
    for name, text in zip(test.unseen.ids, test.unseen.texts, strict=True):
        assert network.texts[network.index(name)] == text


def test_unseen_negatives_are_not_links_of_the_whole_network():
    _, test = split_vertices(random_network(40, 200), 0.55, seed=2)
    drawn = {tuple(sorted(pair)) for pair in test.negatives().reshape(-1, 2).tolist()}
    assert drawn.isdisjoint(linked_pairs(test.network))


# Validation


@settings(deadline=None)
@given(st.integers(0, 60), st.floats(0, 0.99), st.integers(0, 40), seeds)
def test_validation_links_are_removed_from_training(count, share, at_most, seed):
    links = np.arange(2 * count).reshape(-1, 2)
    train, validation = validation_links(links, share, seed, at_most)
    union = np.concatenate([train, validation])
    assert np.array_equal(union[np.argsort(union[:, 0])], links)
    assert len(validation) <= at_most
    assert len(train) >= min(count, 1)
    if share and at_most and count >= 2:
        assert len(validation) >= 1


def test_validation_links_depend_on_share_and_seed():
    links = np.arange(400).reshape(-1, 2)
    first, again, other = (validation_links(links, 0.1, seed, 1000)[1] for seed in (1, 1, 2))
    assert len(first) == 20
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    with pytest.raises(VHEError, match=r"share of validation links is 1"):
        validation_links(links, 1, 0, 10)


# Cora


@pytest.mark.skipif("VHE_DATA_DIR" not in os.environ, reason="VHE_DATA_DIR is not set")
def test_the_known_leak_of_cora():
    network = TextNetwork.from_folder(Path(os.environ["VHE_DATA_DIR"]) / "cora")
    leaks = [split_edges(network, 0.95, seed, "lines")[1].leak for seed in range(20)]
    # 426 of 5,214 lines have their reverse among the lines, 230 are loops, none is repeated.
    assert np.mean([leak["reversed"] for leak in leaks]) == pytest.approx(0.95 * 0.0817, abs=0.012)
    assert np.mean([leak["loops"] for leak in leaks]) == pytest.approx(0.0441, abs=0.01)
    assert all(leak["repeated"] == 0 for leak in leaks)
