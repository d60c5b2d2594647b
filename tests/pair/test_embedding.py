"""Local and global embeddings against loops over one pair at a time."""

from collections import Counter

import numpy as np
import pytest

from vhe.config import PairVHEConfig
from vhe.data.network import TextNetwork
from vhe.data.sampling import LinkSet
from vhe.data.text import Corpus
from vhe.pair import embedding as embed
from vhe.pair.embedding import (
    context_pairs,
    context_pieces,
    embedding_of,
    global_embedding,
    local_embedding,
)
from vhe.pair.model import PairVAE

Pair = tuple[int, int]

N = 9
CLOSE = {"rtol": 1e-4, "atol": 1e-5}

SHAPES = {
    "default": {},
    "link MLP": {"link_posterior": "mlp"},
    "unshared": {"structure": "none", "shared_posterior": False, "link_posterior": "mlp"},
}


class Small:
    """A few vertices, one of them with an empty text, and an untrained model."""

    def __init__(self, config: PairVHEConfig, n: int = N, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        lengths = [0, 1, 3, 3, 7, 2, 3, 12, 5, 4, 6, 8][:n]
        self.texts = [" ".join(f"w{k}" for k in rng.integers(15, size=size)) for size in lengths]
        self.corpus = Corpus.build(self.texts, min_count=1, max_words=config.max_words)
        links = rng.integers(n, size=(2 * n, 2))
        self.network = TextNetwork(range(n), self.texts, links)
        self.links = LinkSet(self.network.links, n)
        self.model = PairVAE(config, len(self.corpus.vocabulary), n, pi0=0.1).eval()
        self.model.initialise(self.corpus, seed)
        for parameter in self.model.parameters():  # every weight affects the result
            noise = rng.normal(0, 0.3, parameter.shape)
            parameter.data += parameter.new_tensor(noise) * (parameter.shape != ())
        self.model.words.weight.data[0] = 0

    def local(self, i, j):
        return local_embedding(self.model, self.corpus, self.links, np.asarray(i), np.asarray(j))

    def overall(self, contexts, seed=0, progress=None):
        return global_embedding(
            self.model, self.corpus, self.links, contexts=contexts, seed=seed, progress=progress
        )

    def by_hand(self, pairs: list[list[Pair]]) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the mixture over the pairs of each vertex, in float64."""
        means, variances = [], []
        for vertex, own in enumerate(pairs):
            found = []
            for i, j in own:
                local = self.local([i], [j])
                first = local.mean_i[0], local.variance_i[0]
                found.append(first if i == vertex else (local.mean_j[0], local.variance_j[0]))
            mean, variance = np.array(found, dtype=np.float64).transpose(1, 0, 2)
            means.append(mean.mean(axis=0))
            variances.append(variance.mean(axis=0) + mean.var(axis=0))
        return np.array(means), np.array(variances)


@pytest.fixture(params=SHAPES)
def small(request: pytest.FixtureRequest, pair_config: PairVHEConfig) -> Small:
    return Small(pair_config.replace(**SHAPES[request.param]))


# --- contexts


def pairs_of(n: int, contexts: int | None, seed: int = 0) -> list[list[Pair]]:
    """The pairs (i, j) of each vertex; one vertex alone is paired with itself."""
    found: list[list[Pair]] = [[] for _ in range(n)]
    for i, j in context_pairs(n, contexts, seed):
        for pair in zip(i.tolist(), j.tolist(), strict=True):
            for vertex in pair:
                found[vertex].append(pair)
    return found if n > 1 else [[(0, 0)]]


def contexts_of(n: int, contexts: int | None, seed: int = 0) -> list[list[int]]:
    pairs = pairs_of(n, contexts, seed) if n > 1 else [[]]
    return [[sum(pair) - vertex for pair in own] for vertex, own in enumerate(pairs)]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 10, 11])
def test_all_others_are_contexts_once(n: int) -> None:
    for i, others in enumerate(contexts_of(n, None)):
        assert sorted(others) == [j for j in range(n) if j != i]


@pytest.mark.parametrize("n", [2, 3, 4, 7, 8, 20])
@pytest.mark.parametrize("contexts", [1, 2, 3, 4, 6, 7, 100])
def test_each_vertex_has_as_many_distinct_contexts(n: int, contexts: int) -> None:
    even = contexts + contexts % 2  # a pair is a context for both of its ends
    for i, others in enumerate(contexts_of(n, contexts)):
        assert len(others) == min(even, n - 1)
        assert len(set(others)) == len(others)
        assert i not in others


@pytest.mark.parametrize("contexts", [2, 4, 8])
def test_each_vertex_is_as_often_first_as_second(contexts: int) -> None:
    for vertex, own in enumerate(pairs_of(20, contexts)):
        assert sum(i == vertex for i, _ in own) == len(own) / 2


@pytest.mark.parametrize("contexts", [1, 4, 7, None])
@pytest.mark.parametrize("n", [2, 3, 10, 11])
def test_the_number_of_pieces_is_known(
    n: int, contexts: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at_once in (3, 4, 100):
        monkeypatch.setattr(embed, "PAIRS_AT_ONCE", at_once)
        assert len(context_pieces(n, contexts)) == len(list(context_pairs(n, contexts, 0)))


def test_the_seed_determines_the_contexts() -> None:
    assert pairs_of(30, 4, seed=1) == pairs_of(30, 4, seed=1)
    assert pairs_of(30, 4, seed=1) != pairs_of(30, 4, seed=2)


def test_contexts_are_uniform_over_many_seeds() -> None:
    counted = Counter(j for seed in range(400) for j in contexts_of(9, 2, seed)[0])
    assert 0 not in counted
    # 800 contexts of 8 others: 100 each, standard deviation 9
    assert all(60 < counted[j] < 140 for j in range(1, 9))


def test_large_networks_are_divided_into_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = contexts_of(11, 4)
    monkeypatch.setattr(embed, "PAIRS_AT_ONCE", 3)
    pieces = list(context_pairs(11, 4, 0))
    assert max(len(i) for i, _ in pieces) == 3
    assert [sorted(c) for c in contexts_of(11, 4)] == [sorted(c) for c in whole]


# --- local embeddings


def test_local_embeddings_do_not_depend_on_other_pairs(small: Small) -> None:
    i, j = (side.ravel() for side in np.indices((N, N)))
    whole = small.local(i, j)
    order = np.random.default_rng(0).permutation(len(i))
    shuffled = small.local(i[order], j[order])
    for name in ("mean_i", "mean_j", "variance_i", "variance_j"):
        found = getattr(whole, name)
        assert found.shape == (N * N, 16)
        assert found.dtype == np.float32
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found[order], getattr(shuffled, name), **CLOSE)
        for row in range(0, N * N, 7):
            alone = small.local(i[[row]], j[[row]])
            np.testing.assert_allclose(found[[row]], getattr(alone, name), **CLOSE)


def test_local_embeddings_in_many_buckets(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    i, j = (side.ravel() for side in np.indices((N, N)))
    whole = small.local(i, j)
    monkeypatch.setattr("vhe.pair.model.BUCKET_AREA", 20)
    apart = small.local(i, j)
    np.testing.assert_allclose(whole.mean_i, apart.mean_i, **CLOSE)
    np.testing.assert_allclose(whole.variance_j, apart.variance_j, **CLOSE)


def test_swapping_a_pair_and_the_kernels_swaps_its_embeddings(small: Small) -> None:
    i, j = (side.ravel() for side in np.indices((N, N)))
    forward, unswapped = small.local(i, j), small.local(j, i)
    kernels = small.model.alignment.kernels
    kernels.data = kernels.data.flip(0)
    back = small.local(j, i)
    assert np.abs(forward.mean_i - unswapped.mean_j).max() > 1e-3
    np.testing.assert_allclose(forward.mean_i, back.mean_j, **CLOSE)
    np.testing.assert_allclose(forward.mean_j, back.mean_i, **CLOSE)
    np.testing.assert_allclose(forward.variance_i, back.variance_j, **CLOSE)
    np.testing.assert_allclose(forward.variance_j, back.variance_i, **CLOSE)


def test_the_context_matters(small: Small) -> None:
    found = small.local(np.full(N - 1, 4), [j for j in range(N) if j != 4])
    assert found.mean_i.std(axis=0).max() > 1e-3


def test_variances_are_positive(small: Small) -> None:
    found = small.local(*(side.ravel() for side in np.indices((N, N))))
    assert min(found.variance_i.min(), found.variance_j.min()) > 0


def test_no_pairs(small: Small) -> None:
    none = np.zeros(0, dtype=np.int64)
    assert small.local(none, none).mean_i.shape == (0, 16)


def test_a_known_link_has_the_mean_of_q1(pair_config: PairVHEConfig) -> None:
    """If q1 and q0 differ, a linked pair has the mean of q1, any other pair a mixture."""
    small = Small(pair_config.replace(**SHAPES["unshared"]))
    linked = LinkSet(np.array([[3, 4]]), N)
    pair = np.array([3]), np.array([4])
    known = local_embedding(small.model, small.corpus, linked, *pair)
    unknown = local_embedding(small.model, small.corpus, LinkSet(np.zeros((0, 2), int), N), *pair)
    assert np.abs(known.mean_i - unknown.mean_i).max() > 1e-3

    import torch

    from vhe.data.sampling import Pairs
    from vhe.pair.model import TextPairs

    columns = np.array([3]), np.array([4]), np.ones(1, np.float32), np.ones(1, bool)
    batch = TextPairs.of(Pairs(*columns), small.corpus, torch.device("cpu"))
    with torch.no_grad():
        q = small.model.infer([batch])
    one, none = (side.mean_i[0].numpy() for side in (q.linked, q.unlinked))
    np.testing.assert_allclose(known.mean_i[0], one, **CLOSE)
    pi = float(torch.sigmoid(q.link_logit))
    np.testing.assert_allclose(unknown.mean_i[0], pi * one + (1 - pi) * none, **CLOSE)
    # by sampling: first the branch, then the code
    rng = np.random.default_rng(0)
    which = rng.random((200_000, 1)) < pi
    spread = [np.exp(side.log_variance_i[0].numpy() / 2) for side in (q.linked, q.unlinked)]
    drawn = np.where(which, one, none) + np.where(which, *spread) * rng.normal(size=(200_000, 16))
    np.testing.assert_allclose(unknown.variance_i[0], drawn.var(axis=0), rtol=0.02)


# --- global embeddings


def test_the_exact_embedding_is_the_mean_over_all_others(small: Small) -> None:
    found = small.overall(None)
    mean, variance = small.by_hand(pairs_of(N, None))
    assert found.mean.shape == found.variance.shape == (N, 16)
    assert found.mean.dtype == found.variance.dtype == np.float32
    np.testing.assert_allclose(found.mean, mean, **CLOSE)
    np.testing.assert_allclose(found.variance, variance, **CLOSE)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 12])
def test_the_exact_embedding_of_small_networks(pair_config: PairVHEConfig, n: int) -> None:
    small = Small(pair_config, n=n, seed=n)
    for seed in (0, 5):
        mean, variance = small.by_hand(pairs_of(n, None, seed))
        found = small.overall(None, seed)
        np.testing.assert_allclose(found.mean, mean, **CLOSE)
        np.testing.assert_allclose(found.variance, variance, **CLOSE)


@pytest.mark.parametrize("contexts", [2, 4, 5])
def test_some_contexts_are_averaged(small: Small, contexts: int) -> None:
    found = small.overall(contexts, seed=3)
    mean, variance = small.by_hand(pairs_of(N, contexts, seed=3))
    np.testing.assert_allclose(found.mean, mean, **CLOSE)
    np.testing.assert_allclose(found.variance, variance, **CLOSE)


def test_monte_carlo_converges_to_the_exact_embedding(small: Small) -> None:
    # a seed also determines which side of a pair a vertex is on
    exact = np.mean([small.overall(None, seed).mean for seed in range(100, 130)], axis=0)
    seeds = range(60)
    drawn = np.array([small.overall(2, seed).mean for seed in seeds])
    error = [np.abs(drawn[:count].mean(axis=0) - exact).mean() for count in (1, 8, 60)]
    assert error[0] > error[1] > error[2]
    assert error[2] < error[0] / 4  # about 1/√60 of it


def test_pairs_are_generated_lazily(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    """All pairs of a large network do not fit into memory."""
    made: list[int] = []
    used: list[int] = []

    def pairs(n: int, contexts: int | None, seed: int):
        for number, pair in enumerate(context_pairs(n, contexts, seed)):
            made.append(number)
            yield pair

    def local(*arguments):
        used.append(len(made))
        return local_embedding(*arguments)

    monkeypatch.setattr(embed, "context_pairs", pairs)
    monkeypatch.setattr(embed, "local_embedding", local)
    reported: list[tuple[int, int]] = []
    small.overall(None, progress=lambda *report: reported.append(report))
    assert len(made) == N // 2
    assert used == [1, 2, 3, 4]
    assert reported == [(1, 4), (2, 4), (3, 4), (4, 4)]


# --- some vertices of a large network


def test_the_embedding_of_some_vertices_is_a_mean_over_contexts(small: Small) -> None:
    vertices = np.array([7, 0, 3])
    arguments = small.model, small.corpus, small.links, vertices
    one = embedding_of(*arguments, contexts=1, seed=2)
    assert one.shape == (3, 16)
    for row, vertex in enumerate(vertices):
        others = [j for j in range(N) if j != vertex]
        local = small.local(np.full(N - 1, vertex), others).mean_i
        distance = np.abs(local - one[row]).max(axis=1)
        assert distance.min() < 1e-4  # in the context of one of the others


def test_the_embedding_of_some_vertices_converges_to_the_exact_one(small: Small) -> None:
    vertices = np.arange(N)
    arguments = small.model, small.corpus, small.links, vertices
    exact = small.overall(None).mean
    few, many = (embedding_of(*arguments, contexts=c, seed=1) for c in (1, 64))
    assert np.abs(many - exact).mean() < np.abs(few - exact).mean() / 3
    again = embedding_of(*arguments, contexts=1, seed=1)
    np.testing.assert_array_equal(few, again)
    other = embedding_of(*arguments, contexts=1, seed=2)
    assert np.abs(few - other).max() > 1e-3


def test_the_embedding_of_no_vertices(small: Small) -> None:
    none = np.zeros(0, dtype=np.int64)
    arguments = small.model, small.corpus, small.links, none
    assert embedding_of(*arguments, contexts=4, seed=0).shape == (0, 16)


def test_a_vertex_is_in_turn_the_first_and_the_second_of_a_pair(small: Small) -> None:
    vertex, pair = np.array([4]), []
    for contexts in (1, 2):
        arguments = small.model, small.corpus, small.links, vertex
        pair.append(contexts * embedding_of(*arguments, contexts=contexts, seed=2)[0])
    others = [j for j in range(N) if j != 4]
    second = small.local(others, np.full(N - 1, 4)).mean_j
    assert np.abs(second - (pair[1] - pair[0])).max(axis=1).min() < 1e-4


def test_two_vertices_are_contexts_of_each_other(pair_config: PairVHEConfig) -> None:
    small = Small(pair_config, n=2)
    found = embedding_of(small.model, small.corpus, small.links, np.arange(2), contexts=2, seed=0)
    first, second = small.local([0], [1]), small.local([1], [0])
    expected = [
        (first.mean_i[0] + second.mean_j[0]) / 2,
        (second.mean_i[0] + first.mean_j[0]) / 2,
    ]
    np.testing.assert_allclose(found, expected, **CLOSE)
