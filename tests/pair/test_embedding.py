"""Embeddings are the averages they say they are: checked against loops over one pair at a time."""

from collections import Counter

import numpy as np
import pytest

from vhe.config import VHEConfig
from vhe.data.network import TextNetwork
from vhe.data.sampling import LinkSet
from vhe.data.text import Corpus
from vhe.pair import embedding as embed
from vhe.pair.embedding import context_pairs, embedding_of, global_embedding, local_embedding
from vhe.pair.model import PairVAE

N = 9
CLOSE = {"rtol": 1e-4, "atol": 1e-5}

SHAPES = {
    "default": {"embedding": "average"},
    "learned": {"structure": "learned"},
    "unshared": {"structure": "none", "shared_posterior": False, "link_posterior": "mlp"},
}


class Small:
    """A few vertices, some with equal and one with no words, and a model nobody trained."""

    def __init__(self, config: VHEConfig, n: int = N, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        lengths = [0, 1, 3, 3, 7, 2, 3, 12, 5, 4, 6, 8][:n]
        self.texts = [" ".join(f"w{k}" for k in rng.integers(15, size=size)) for size in lengths]
        self.corpus = Corpus.build(self.texts, min_count=1, max_words=config.max_words)
        links = rng.integers(n, size=(2 * n, 2))
        self.network = TextNetwork(range(n), self.texts, links)
        self.links = LinkSet(self.network.links, n)
        self.model = PairVAE(config, len(self.corpus.vocabulary), n, pi0=0.1).eval()
        self.model.start(self.corpus, seed)
        for parameter in self.model.parameters():  # everything has a part in the result
            noise = rng.normal(0, 0.3, parameter.shape)
            parameter.data += parameter.new_tensor(noise) * (parameter.shape != ())
        self.model.words.weight.data[0] = 0

    def local(self, i, j):
        return local_embedding(self.model, self.corpus, self.links, np.asarray(i), np.asarray(j))

    def overall(self, contexts, seed=0, progress=None):
        return global_embedding(
            self.model, self.corpus, self.links, contexts=contexts, seed=seed, progress=progress
        )

    def by_hand(self, meetings: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the mixture over the contexts of each vertex, in float64."""
        means, variances = [], []
        for i, contexts in enumerate(meetings):
            found = [self.local([i], [j]) for j in contexts]
            mean = np.array([one.mean_i[0] for one in found], dtype=np.float64)
            variance = np.array([one.variance_i[0] for one in found], dtype=np.float64)
            means.append(mean.mean(axis=0))
            variances.append(variance.mean(axis=0) + mean.var(axis=0))
        return np.array(means), np.array(variances)


@pytest.fixture(params=SHAPES)
def small(request: pytest.FixtureRequest, config: VHEConfig) -> Small:
    return Small(config.replace(**SHAPES[request.param]))


# --- who meets whom


def meetings(n: int, contexts: int | None, seed: int = 0) -> list[list[int]]:
    met: list[list[int]] = [[] for _ in range(n)]
    for i, j in context_pairs(n, contexts, seed):
        for a, b in zip(i.tolist(), j.tolist(), strict=True):
            met[a].append(b)
            met[b].append(a)
    return met


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 10, 11])
def test_everyone_meets_everyone_once(n: int) -> None:
    for i, met in enumerate(meetings(n, None)):
        assert sorted(met) == [j for j in range(n) if j != i]


@pytest.mark.parametrize("n", [2, 3, 4, 7, 8, 20])
@pytest.mark.parametrize("contexts", [1, 2, 3, 4, 6, 7, 100])
def test_everyone_meets_as_many_different_others(n: int, contexts: int) -> None:
    even = contexts + contexts % 2  # a pair is_available both of its ends
    for i, met in enumerate(meetings(n, contexts)):
        assert len(met) == min(even, n - 1)
        assert len(set(met)) == len(met)
        assert i not in met


def test_the_seed_decides_whom_one_meets() -> None:
    assert meetings(30, 4, seed=1) == meetings(30, 4, seed=1)
    assert meetings(30, 4, seed=1) != meetings(30, 4, seed=2)


def test_over_many_seeds_everyone_is_met_alike() -> None:
    counted = Counter(j for seed in range(400) for j in meetings(9, 2, seed)[0])
    assert 0 not in counted
    # 800 meetings with 8 others: 100 each, deviation 9
    assert all(60 < counted[j] < 140 for j in range(1, 9))


def test_large_networks_come_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = meetings(11, 4)
    monkeypatch.setattr(embed, "PAIRS_AT_A_TIME", 3)
    pieces = list(context_pairs(11, 4, 0))
    assert max(len(i) for i, _ in pieces) == 3
    assert [sorted(met) for met in meetings(11, 4)] == [sorted(met) for met in whole]


# --- local embeddings


def test_local_embeddings_do_not_depend_on_their_company(small: Small) -> None:
    i, j = (side.ravel() for side in np.indices((N, N)))
    together = small.local(i, j)
    order = np.random.default_rng(0).permutation(len(i))
    shuffled = small.local(i[order], j[order])
    for name in ("mean_i", "mean_j", "variance_i", "variance_j"):
        found = getattr(together, name)
        assert found.shape == (N * N, 16)
        assert found.dtype == np.float32
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found[order], getattr(shuffled, name), **CLOSE)
        for row in range(0, N * N, 7):
            alone = small.local(i[[row]], j[[row]])
            np.testing.assert_allclose(found[[row]], getattr(alone, name), **CLOSE)


def test_local_embeddings_in_many_buckets(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    i, j = (side.ravel() for side in np.indices((N, N)))
    together = small.local(i, j)
    monkeypatch.setattr(embed, "AREA", 20)
    apart = small.local(i, j)
    np.testing.assert_allclose(together.mean_i, apart.mean_i, **CLOSE)
    np.testing.assert_allclose(together.variance_j, apart.variance_j, **CLOSE)


def test_swapping_a_pair_swaps_its_embeddings(small: Small) -> None:
    i, j = (side.ravel() for side in np.indices((N, N)))
    forth, back = small.local(i, j), small.local(j, i)
    np.testing.assert_allclose(forth.mean_i, back.mean_j, **CLOSE)
    np.testing.assert_allclose(forth.mean_j, back.mean_i, **CLOSE)
    np.testing.assert_allclose(forth.variance_i, back.variance_j, **CLOSE)
    np.testing.assert_allclose(forth.variance_j, back.variance_i, **CLOSE)


def test_the_context_matters(small: Small) -> None:
    found = small.local(np.full(N - 1, 4), [j for j in range(N) if j != 4])
    assert found.mean_i.std(axis=0).max() > 1e-3


def test_variances_are_positive(small: Small) -> None:
    found = small.local(*(side.ravel() for side in np.indices((N, N))))
    assert min(found.variance_i.min(), found.variance_j.min()) > 0


def test_no_pairs(small: Small) -> None:
    none = np.zeros(0, dtype=np.int64)
    assert small.local(none, none).mean_i.shape == (0, 16)


def test_a_known_link_counts_as_one(config: VHEConfig) -> None:
    """Where q1 and q0 differ, a linked pair has the mean of q1, any other a mixture."""
    small = Small(config.replace(**SHAPES["unshared"]))
    linked = LinkSet(np.array([[3, 4]]), N)
    pair = np.array([3]), np.array([4])
    sure = local_embedding(small.model, small.corpus, linked, *pair)
    unsure = local_embedding(small.model, small.corpus, LinkSet(np.zeros((0, 2), int), N), *pair)
    assert np.abs(sure.mean_i - unsure.mean_i).max() > 1e-3

    import torch

    from vhe.data.sampling import Pairs
    from vhe.pair.model import TextPairs

    i, j = (4, 3) if small.corpus.lengths[4] > small.corpus.lengths[3] else (3, 4)
    columns = np.array([i]), np.array([j]), np.ones(1, np.float32), np.ones(1, bool)
    batch = TextPairs.of(Pairs(*columns), small.corpus, torch.device("cpu"))
    with torch.no_grad():
        q = small.model.infer([batch]).posterior
    ends = {i: (q.linked.mean_i, q.unlinked.mean_i), j: (q.linked.mean_j, q.unlinked.mean_j)}
    one, none = (side[0].numpy() for side in ends[3])
    np.testing.assert_allclose(sure.mean_i[0], one, **CLOSE)
    pi = float(torch.sigmoid(q.link_logit))
    np.testing.assert_allclose(unsure.mean_i[0], pi * one + (1 - pi) * none, **CLOSE)
    deviations = {
        i: (q.linked.log_variance_i, q.unlinked.log_variance_i),
        j: (q.linked.log_variance_j, q.unlinked.log_variance_j),
    }
    # by drawing: first which of the two, then from it
    rng = np.random.default_rng(0)
    which = rng.random((200_000, 1)) < pi
    spread = [np.exp(side[0].numpy() / 2) for side in deviations[3]]
    drawn = np.where(which, one, none) + np.where(which, *spread) * rng.normal(size=(200_000, 16))
    np.testing.assert_allclose(unsure.variance_i[0], drawn.var(axis=0), rtol=0.02)


# --- global embeddings


def test_the_exact_embedding_is_the_mean_over_all_others(small: Small) -> None:
    found = small.overall(None)
    mean, variance = small.by_hand([[j for j in range(N) if j != i] for i in range(N)])
    assert found.mean.shape == found.variance.shape == (N, 16)
    assert found.mean.dtype == found.variance.dtype == np.float32
    np.testing.assert_allclose(found.mean, mean, **CLOSE)
    np.testing.assert_allclose(found.variance, variance, **CLOSE)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 12])
def test_the_exact_embedding_of_any_number(config: VHEConfig, n: int) -> None:
    small = Small(config.replace(structure="learned"), n=n, seed=n)
    others = [[j for j in range(n) if j != i] or [i] for i in range(n)]  # alone: beside itself
    mean, variance = small.by_hand(others)
    for seed in (0, 5):
        found = small.overall(None, seed)
        np.testing.assert_allclose(found.mean, mean, **CLOSE)
        np.testing.assert_allclose(found.variance, variance, **CLOSE)


@pytest.mark.parametrize("contexts", [2, 4, 5])
def test_some_contexts_are_averaged(small: Small, contexts: int) -> None:
    found = small.overall(contexts, seed=3)
    mean, variance = small.by_hand(meetings(N, contexts, seed=3))
    np.testing.assert_allclose(found.mean, mean, **CLOSE)
    np.testing.assert_allclose(found.variance, variance, **CLOSE)


def test_monte_carlo_comes_to_the_exact_embedding(small: Small) -> None:
    exact = small.overall(None)
    seeds = range(60)
    drawn = np.array([small.overall(2, seed).mean for seed in seeds])
    error = [np.abs(drawn[:count].mean(axis=0) - exact.mean).mean() for count in (1, 8, 60)]
    assert error[0] > error[1] > error[2]
    assert error[2] < error[0] / 4  # 1/√60 of it, but for luck
    np.testing.assert_allclose(small.overall(N).mean, exact.mean, **CLOSE)


def test_pairs_are_made_when_they_are_needed(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
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
    told: list[int] = []
    small.overall(None, progress=lambda done, *of: told.append(done))
    assert len(made) == N // 2
    assert used == told == [1, 2, 3, 4]


# --- some vertices of many


def test_the_embedding_of_some_is_a_mean_over_contexts(small: Small) -> None:
    vertices = np.array([7, 0, 3])
    arguments = small.model, small.corpus, small.links, vertices
    one = embedding_of(*arguments, contexts=1, seed=2)
    assert one.shape == (3, 16)
    for row, vertex in enumerate(vertices):
        others = [j for j in range(N) if j != vertex]
        local = small.local(np.full(N - 1, vertex), others).mean_i
        distance = np.abs(local - one[row]).max(axis=1)
        assert distance.min() < 1e-4  # beside one of the others


def test_the_embedding_of_some_comes_to_the_exact_one(small: Small) -> None:
    vertices = np.arange(N)
    arguments = small.model, small.corpus, small.links, vertices
    exact = small.overall(None).mean
    few, many = (embedding_of(*arguments, contexts=c, seed=1) for c in (1, 64))
    assert np.abs(many - exact).mean() < np.abs(few - exact).mean() / 3
    again = embedding_of(*arguments, contexts=1, seed=1)
    np.testing.assert_array_equal(few, again)
    other = embedding_of(*arguments, contexts=1, seed=2)
    assert np.abs(few - other).max() > 1e-3


def test_the_joint_posterior_is_the_embedding_where_it_is_asked_for(config: VHEConfig) -> None:
    small, vertices = Small(config), np.array([7, 0, 3])
    found = embedding_of(small.model, small.corpus, small.links, vertices, contexts=1, seed=2)
    np.testing.assert_array_equal(found, small.model.structure.weight.detach().numpy()[vertices])


def test_the_embedding_of_none(small: Small) -> None:
    none = np.zeros(0, dtype=np.int64)
    arguments = small.model, small.corpus, small.links, none
    assert embedding_of(*arguments, contexts=4, seed=0).shape == (0, 16)


def test_two_vertices_meet_each_other(config: VHEConfig) -> None:
    small = Small(config.replace(structure="learned"), n=2)
    found = embedding_of(small.model, small.corpus, small.links, np.arange(2), contexts=3, seed=0)
    np.testing.assert_allclose(found, small.overall(None).mean, **CLOSE)
