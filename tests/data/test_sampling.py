"""Training pairs: negatives, dependence of a batch on seed and step, length buckets."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from vhe.data.sampling import (
    LinkBatches,
    LinkSet,
    Pairs,
    PairSampler,
    length_buckets,
    random_stream,
)

VERTICES = 12


def graph(vertices=VERTICES, edges=18, seed=0):
    """Distinct links i < j; the last vertex has no links."""
    rng = np.random.default_rng(seed)
    every = np.array([(i, j) for i in range(vertices - 1) for j in range(i + 1, vertices - 1)])
    return every[np.sort(rng.choice(len(every), edges, replace=False))]


def complete(vertices):
    return np.array([(i, j) for i in range(vertices) for j in range(i + 1, vertices)])


def sampler(links, vertices=VERTICES, **changes):
    settings = {"batch_size": 8, "negatives": 1, "alpha": 0.2, "seed": 0} | changes
    return PairSampler(links, vertices, **settings)


def as_set(i, j):
    return {(min(p), max(p)) for p in zip(i.tolist(), j.tolist(), strict=True)}


def equal(one, other):
    return all(
        np.array_equal(a, b) for a, b in zip(*(vars(p).values() for p in (one, other)), strict=True)
    )


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=10))
def test_a_link_set_agrees_with_a_set(links):
    found = LinkSet(np.array(links, dtype=np.int64).reshape(-1, 2), 6)
    i, j = (a.ravel() for a in np.mgrid[:6, :6])
    known = {frozenset(p) for p in links}
    assert found.linked(i, j).tolist() == [
        frozenset(p) in known for p in zip(i.tolist(), j.tolist(), strict=True)
    ]


def test_a_link_set_of_a_large_network_has_no_key_collisions():
    n = 3_000_000_000  # n² just fits in 63 bits
    links = np.array([[0, n - 1], [1, 2], [n - 2, n - 1]])
    found = LinkSet(links, n)
    assert found.linked(links[:, 1], links[:, 0]).all()
    assert not found.linked(links[:, 0], links[:, 0]).any()


@pytest.mark.parametrize("negatives", [1, 3])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_batch_holds_links_and_their_negatives(negatives, seed):
    links = graph(vertices=60, seed=seed)  # so sparse that a negative is always found
    drawn = sampler(links, 60, batch_size=12, negatives=negatives, seed=seed)
    linked_pairs = set(map(tuple, links.tolist()))
    for step in range(30):
        batch = drawn.batch(step)
        linked = batch.links == 1
        assert set(np.unique(batch.links)) == {0, 1}
        assert linked.sum() == 12 // (1 + negatives)
        assert len(batch) == 12
        assert as_set(batch.i[linked], batch.j[linked]) <= linked_pairs
        assert not as_set(batch.i[~linked], batch.j[~linked]) & linked_pairs
        assert (batch.i != batch.j).all()
        # a negative shares one end with its link
        assert np.array_equal(batch.i[~linked], np.tile(batch.i[linked], negatives))


def test_types_of_a_batch():
    batch = sampler(graph()).batch(0)
    assert [v.dtype for v in (batch.i, batch.j, batch.links, batch.known)] == [
        np.int64,
        np.int64,
        np.float32,
        np.bool_,
    ]
    assert len({len(v) for v in vars(batch).values()}) == 1


def test_negatives_are_drawn_by_degree_among_unlinked_vertices():
    links = graph()
    degree = np.bincount(links.ravel(), minlength=VERTICES)
    drawn = sampler(links, batch_size=2 * len(links), seed=3)
    counts = np.zeros((VERTICES, VERTICES))
    for step in range(600):
        batch = drawn.batch(step)
        negative = batch.links == 0
        np.add.at(counts, (batch.i[negative], batch.j[negative]), 1)
    allowed = ~np.eye(VERTICES, dtype=bool)
    allowed[links[:, 0], links[:, 1]] = allowed[links[:, 1], links[:, 0]] = False
    assert degree.max() - degree.min() >= 4  # otherwise the test could not fail
    for i in np.flatnonzero(degree):
        weight = (1 + degree[allowed[i]]) ** 0.75
        expected = counts[i].sum() * weight / weight.sum()
        assert counts[i, ~allowed[i]].sum() == 0
        assert chisquare(counts[i, allowed[i]], expected).pvalue > 1e-4
        uniform = np.full(len(weight), counts[i].sum() / len(weight))
        assert chisquare(counts[i, allowed[i]], uniform).pvalue < 1e-4
    assert counts[:, -1].sum() > 0  # vertices without links are drawn, too


def test_either_end_of_a_link_may_come_first():
    links = graph()
    drawn = sampler(links, batch_size=2 * len(links))
    first = [drawn.batch(step) for step in range(100)]
    flipped = np.concatenate([b.i[b.links == 1] > b.j[b.links == 1] for b in first])
    assert flipped.mean() == pytest.approx(0.5, abs=0.04)


@pytest.mark.parametrize("alpha", [0.0, 0.2, 0.7, 1.0])
def test_a_share_alpha_of_the_edges_is_hidden(alpha):
    drawn = sampler(graph(), batch_size=30, alpha=alpha)
    batches = [drawn.batch(step) for step in range(200)]
    known = np.concatenate([b.known for b in batches])
    linked = np.concatenate([b.links for b in batches]) == 1
    for part in (known[linked], known[~linked]):  # for links and negatives
        assert (~part).mean() == pytest.approx(alpha, abs=0.03 if 0 < alpha < 1 else 0)


def test_a_batch_depends_on_seed_and_step_only():
    links = graph()
    one, other = sampler(links, seed=5), sampler(links, seed=5)
    forwards = [one.batch(step) for step in range(20)]
    backwards = [other.batch(step) for step in reversed(range(20))][::-1]
    assert all(equal(a, b) for a, b in zip(forwards, backwards, strict=True))
    assert not equal(forwards[0], sampler(links, seed=6).batch(0))
    assert not any(equal(forwards[0], b) for b in forwards[1:])


def test_another_seed_gives_another_order_and_other_negatives():
    links = graph()
    orders = [sampler(links, batch_size=36, seed=s).batches.numbers(0).tolist() for s in (0, 1)]
    assert sorted(orders[0]) == sorted(orders[1])
    assert orders[0] != orders[1]
    of_one_link = [sampler(links[:1], seed=s) for s in (0, 1)]
    drawn = [[(b.i.tolist(), b.j.tolist()) for b in map(s.batch, range(20))] for s in of_one_link]
    assert drawn[0] != drawn[1]


@pytest.mark.parametrize(("edges", "batch_size"), [(18, 8), (17, 10), (5, 4), (3, 100), (1, 1)])
def test_each_epoch_visits_each_link_once(edges, batch_size):
    links = graph(edges=edges)
    drawn = sampler(links, batch_size=batch_size)
    in_batch = drawn.batches.step_links
    assert drawn.steps_in_epoch == edges / in_batch
    numbers = np.concatenate([drawn.batches.numbers(step) for step in range(3 * edges)])
    epochs = numbers.reshape(-1, edges)  # 3 · edges steps are an integer number of epochs
    assert len(epochs) == 3 * in_batch
    assert np.array_equal(np.sort(epochs, axis=1), np.tile(np.arange(edges), (len(epochs), 1)))
    if edges > 4:
        assert len({tuple(p) for p in epochs.tolist()}) > 1  # in different orders


def test_a_batch_consists_of_the_links_of_its_step():
    links = graph()
    drawn = sampler(links)
    for step in range(10):
        batch = drawn.batch(step)
        linked = batch.links == 1
        pairs = np.sort(np.stack([batch.i[linked], batch.j[linked]], axis=1), axis=1)
        assert np.array_equal(pairs, links[drawn.batches.numbers(step)])


@pytest.mark.parametrize(("requested", "taken"), [(1, 1), (5, 5), (18, 18), (100, 18)])
def test_link_batches_pass_over_all_links(requested, taken):
    batches = LinkBatches(graph(edges=18), requested, seed=0)
    assert batches.step_links == taken
    assert batches.steps_in_epoch == 18 / taken
    numbers = np.concatenate([batches.numbers(step) for step in range(36)])
    epochs = numbers[: len(numbers) // 18 * 18].reshape(-1, 18)
    assert np.array_equal(np.sort(epochs, axis=1), np.tile(np.arange(18), (len(epochs), 1)))
    assert not np.array_equal(epochs[0], epochs[1])


def test_link_batches_depend_on_seed_and_step_only():
    batches, other = (LinkBatches(graph(), 5, seed=seed) for seed in (3, 4))
    forward = [batches.numbers(step).tolist() for step in range(20)]
    assert [batches.numbers(step).tolist() for step in reversed(range(20))] == forward[::-1]
    assert other.numbers(0).tolist() != forward[0]


def test_the_batches_of_a_seed_do_not_change_between_versions():
    batch = sampler(graph(), seed=7).batch(3)
    assert batch.i.tolist() == [2, 7, 4, 8, 2, 7, 4, 8]
    assert batch.j.tolist() == [9, 3, 0, 3, 11, 5, 3, 1]


def test_a_batch_larger_than_the_network_takes_each_link_once():
    links = graph(edges=5)
    batch = sampler(links, batch_size=100).batch(7)
    assert as_set(batch.i[:5], batch.j[:5]) == set(map(tuple, links.tolist()))
    assert batch.links[:5].all()


@pytest.mark.parametrize("vertices", [2, 6])
def test_a_complete_graph_has_links_but_no_negatives(vertices):
    batch = sampler(complete(vertices), vertices, batch_size=6, negatives=2).batch(0)
    assert len(batch) > 0
    assert (batch.links == 1).all()


def test_a_nearly_complete_graph_has_only_unlinked_negatives():
    links = complete(6)[1:]  # only 0 and 1 are not linked
    batches = [sampler(links, 6, batch_size=40).batch(step) for step in range(20)]
    negatives = [as_set(b.i[b.links == 0], b.j[b.links == 0]) for b in batches]
    assert set().union(*negatives) == {(0, 1)}
    assert any(b.links.mean() > 0.5 for b in batches)  # negatives that were not found are omitted


def test_random_streams_differ_by_seed_and_key():
    draws = [
        random_stream(*key).random(4).tolist()
        for key in [(0, 1), (0, 2), (1, 1), (0, 1, 1), (0, 1)]
    ]
    assert draws[0] == draws[-1]
    assert len({tuple(d) for d in draws}) == 4


def some_pairs(lengths, count, seed=0):
    rng = np.random.default_rng(seed)
    i, j = rng.integers(len(lengths), size=(2, count))
    return Pairs(i, j, rng.integers(2, size=count).astype(np.float32), rng.random(count) < 0.5)


def longer_first(pairs, lengths):
    ends = np.stack([pairs.i, pairs.j])
    order = np.argsort(-lengths[ends], axis=0, kind="stable")
    i, j = np.take_along_axis(ends, order, axis=0)
    return replace(pairs, i=i, j=j)


def padded_area(pairs, lengths, buckets):
    return sum(
        len(rows) * max(1, lengths[pairs.i[rows]].max()) * max(1, lengths[pairs.j[rows]].max())
        for rows in buckets
    )


@settings(max_examples=60)
@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=20),
    st.integers(1, 60),
    st.sampled_from([1, 100, 2000, 10**9]),
)
def test_buckets_are_a_partition_and_never_increase_padding(lengths, count, area):
    lengths = np.array(lengths)
    pairs = longer_first(some_pairs(lengths, count), lengths)
    buckets = list(length_buckets(pairs, lengths, area))
    assert sorted(np.concatenate(buckets).tolist()) == list(range(count))
    assert all(len(rows) for rows in buckets)
    whole = padded_area(pairs, lengths, [np.arange(count)])
    assert padded_area(pairs, lengths, buckets) <= whole


@pytest.mark.parametrize(("area", "waste"), [(10_000, 1.3), (20_000, 1.5), (50_000, 2.0)])
def test_buckets_of_similar_lengths_have_little_padding(area, waste):
    rng = np.random.default_rng(1)
    lengths = rng.lognormal(3.5, 0.8, size=300).astype(np.int64) + 1
    pairs = longer_first(some_pairs(lengths, 512), lengths)
    buckets = list(length_buckets(pairs, lengths, area))
    used = int((lengths[pairs.i] * lengths[pairs.j]).sum())
    computed = padded_area(pairs, lengths, buckets)
    at_random = np.array_split(np.arange(512), len(buckets))
    assert len(buckets) == pytest.approx(used / area, rel=0.3)
    assert used <= computed < waste * used
    assert computed < padded_area(pairs, lengths, at_random) / 2
    assert computed < padded_area(pairs, lengths, [np.arange(512)]) / 10


def test_buckets_have_about_the_requested_area():
    lengths = np.full(30, 10)
    pairs = some_pairs(lengths, 200)
    sizes = [len(rows) for rows in length_buckets(pairs, lengths, 2_000)]  # 100 entries per pair
    assert sizes == [20] * 10


def test_one_bucket_if_everything_fits():
    lengths = np.array([0, 2, 30])
    pairs = some_pairs(lengths, 20)
    (only,) = length_buckets(pairs, lengths, 10**9)
    assert sorted(only.tolist()) == list(range(20))


def test_pairs_are_indexed_by_rows():
    pairs = some_pairs(np.arange(5), 8)
    rows = np.array([6, 1])
    assert len(pairs[rows]) == 2
    for name, values in vars(pairs[rows]).items():
        assert np.array_equal(values, getattr(pairs, name)[rows])
