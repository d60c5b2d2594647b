"""The prior of the whole graph against dense linear algebra, and that it forgets what it must."""

import numpy as np
import pytest
import torch

from vhe.config import VHEConfig
from vhe.data.network import TextNetwork
from vhe.data.text import Corpus, tokenize
from vhe.estimators import VHE
from vhe.graph import prior as graph_prior
from vhe.graph.posterior import JointStructure
from vhe.graph.prior import (
    ROUNDS,
    STRENGTH,
    Coupling,
    GraphPrior,
    TextCodes,
    near_texts,
)
from vhe.pair.model import PairVAE

N = 9
LINKS = np.array([[0, 1], [0, 2], [0, 3], [1, 2], [4, 5], [5, 6], [2, 6]])  # 7 and 8 have none
LENGTHS = np.array([3, 0, 10, 5, 1, 40, 7, 2, 300])
NEAR = (np.array([[0, 1], [3, 7], [4, 6], [6, 7]]), np.array([0.9, 0.2, 0.5, 0.7], np.float32))


def dense(links, left_out=(), near=None, text_knn_weight=0.0):
    """Λ (n,) and the weights of all pairs (n, n), entry by entry."""
    degree = [sum(v in link for link in links.tolist()) for v in range(N)]
    weights = np.zeros((N, N))
    for number, (i, j) in enumerate(links):
        if number not in left_out:
            weights[i, j] += STRENGTH / ((degree[i] + 1) * (degree[j] + 1)) ** 0.25
    if near is not None:
        soft = [sum(v in pair for pair in near[0].tolist()) for v in range(N)]
        for (i, j), cosine in zip(*near, strict=True):
            weights[i, j] += text_knn_weight * cosine / ((soft[i] + 1) * (soft[j] + 1)) ** 0.5
    weights += weights.T
    certainty = np.sqrt(1 + LENGTHS)
    return certainty / np.exp(np.log(certainty).mean()), weights


def posterior_mean(certainty, weights, codes):
    a = np.diag(certainty) + np.diag(weights.sum(axis=1)) - weights
    return np.linalg.solve(a, certainty[:, None] * codes)


def some_codes(d=4, seed=0):
    return np.random.default_rng(seed).normal(size=(N, d))


@pytest.mark.parametrize("text_knn_weight", [0.0, 2.0])
@pytest.mark.parametrize("left_out", [[], [0], [4, 1, 6]])
def test_the_posterior_mean_is_the_solution_of_the_dense_system(left_out, text_knn_weight):
    codes = some_codes()
    prior = GraphPrior(LINKS, LENGTHS, NEAR, text_knn_weight)
    coupling = prior.coupling(np.array(left_out, dtype=np.int64))
    found = coupling.posterior_mean(torch.from_numpy(codes).float(), ROUNDS).numpy()
    expected = posterior_mean(*dense(LINKS, left_out, NEAR, text_knn_weight), codes)
    assert found == pytest.approx(expected, abs=2e-6)


def test_leaving_links_out_leaves_the_prior_as_it_was():
    prior = GraphPrior(LINKS, LENGTHS)
    before = prior.coupling().matrix.to_dense()
    prior.coupling(np.array([0, 3]))
    assert torch.equal(prior.coupling().matrix.to_dense(), before)


def test_the_posterior_does_not_know_which_of_the_links_left_out_there_were():
    """Links 0-3 and 4-5 are in training now; 0-5 and 4-3 leave the same number at each vertex."""
    rest, now = LINKS[[0, 1, 3, 5, 6]], np.array([5, 6])
    codes = torch.from_numpy(some_codes()).float()
    means = [
        GraphPrior(np.concatenate([rest, step]), LENGTHS)
        .coupling(now)
        .posterior_mean(codes, ROUNDS)
        for step in (np.array([[0, 3], [4, 5]]), np.array([[0, 5], [3, 4]]))
    ]
    assert torch.equal(means[0], means[1])
    with_them = [
        GraphPrior(np.concatenate([rest, step]), LENGTHS).coupling().posterior_mean(codes, ROUNDS)
        for step in (np.array([[0, 3], [4, 5]]), np.array([[0, 5], [3, 4]]))
    ]
    assert not torch.allclose(with_them[0], with_them[1], atol=0.01)


def in_double(coupling):
    matrix = coupling.matrix.double()
    total = matrix.to_dense().sum(dim=1, keepdim=True)
    return Coupling(matrix, coupling.precision.double(), total)


def test_gradients_are_those_of_the_dense_solution():
    coupling = in_double(GraphPrior(LINKS, LENGTHS, NEAR, 1.0).coupling())
    codes = torch.from_numpy(some_codes()).requires_grad_()
    a = torch.diag(coupling.diagonal[:, 0]) - coupling.matrix.to_dense()
    expected = torch.linalg.solve(a, coupling.precision * codes)
    found = coupling.posterior_mean(codes, ROUNDS)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
    direction = torch.from_numpy(some_codes(seed=1))
    gradients = [torch.autograd.grad(v, codes, direction)[0] for v in (found, expected)]
    torch.testing.assert_close(*gradients, rtol=1e-9, atol=1e-9)


def test_the_system_is_symmetric_and_keeps_what_all_share():
    coupling = in_double(GraphPrior(LINKS, LENGTHS, NEAR, 1.0).coupling())
    identity = torch.eye(N, dtype=torch.float64)
    a = coupling.times(identity)
    torch.testing.assert_close(a, a.T)
    assert torch.linalg.eigvalsh(a).min() > 0
    same = torch.full((N, 1), 2.5, dtype=torch.float64)  # where all texts agree nothing moves
    torch.testing.assert_close(coupling.posterior_mean(same, ROUNDS), same)


def test_more_rounds_come_nearer():
    coupling = in_double(GraphPrior(LINKS, LENGTHS).coupling())
    b = torch.from_numpy(some_codes())
    rest = [(b - coupling.times(coupling.solve(b, r))).norm().item() for r in (0, 2, 4, 9, 25)]
    assert rest[0] > rest[1] > rest[2] > rest[3]
    assert rest[4] < 1e-9  # and too many do no harm


def test_two_vertices_with_one_link_are_the_pair_of_the_paper():
    coupling = in_double(GraphPrior(np.array([[0, 1]]), np.array([4, 4])).coupling())
    covariance = coupling.solve(torch.eye(2, dtype=torch.float64), 5)
    assert coupling.precision.flatten().tolist() == [1, 1]
    s = STRENGTH / 2**0.5
    correlation = covariance[0, 1] / (covariance[0, 0] * covariance[1, 1]).sqrt()
    assert correlation.item() == pytest.approx(s / (s + 1), abs=1e-6)


def test_a_vertex_without_links_keeps_its_text():
    codes = torch.from_numpy(some_codes()).float()
    mean = GraphPrior(LINKS, LENGTHS).coupling().posterior_mean(codes, ROUNDS)
    torch.testing.assert_close(mean[7:], codes[7:])
    assert not torch.allclose(mean[:7], codes[:7], atol=0.01)


def test_no_links_at_all():
    none = np.zeros((0, 2), dtype=np.int64)
    codes = torch.from_numpy(some_codes()).float()
    mean = GraphPrior(none, LENGTHS).coupling().posterior_mean(codes, ROUNDS)
    torch.testing.assert_close(mean, codes)


@pytest.mark.parametrize("neighbours", [1, 3, 20])
def test_near_texts_are_the_nearest_by_centred_cosine(neighbours):
    codes = some_codes(d=3, seed=2).astype(np.float32)
    pairs, cosines = near_texts(codes, neighbours)
    centred = codes - codes.mean(axis=0)
    unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    table = unit @ unit.T
    expected = set()
    for i in range(N):
        others = sorted((j for j in range(N) if j != i), key=lambda j: -table[i, j])
        near = [j for j in others[:neighbours] if table[i, j] > 0]
        expected |= {(min(i, j), max(i, j)) for j in near}
    assert sorted(map(tuple, pairs.tolist())) == sorted(expected)
    assert cosines == pytest.approx(table[pairs[:, 0], pairs[:, 1]], abs=1e-6)


def test_near_texts_of_many_are_found_in_pieces():
    n = 4300  # more rows than are compared at a time
    codes = np.random.default_rng(3).normal(size=(n, 3)).astype(np.float32)
    pairs, _ = near_texts(codes, 1)
    centred = codes - codes.mean(axis=0)
    unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    found = set(map(tuple, pairs.tolist()))
    for i in (0, 1, 2000, n - 2, n - 1):
        cosine = unit @ unit[i]
        cosine[i] = -2
        j = int(cosine.argmax())
        assert (min(i, j), max(i, j)) in found
    assert n / 2 <= len(found) <= n


def test_near_texts_by_clusters_are_nearly_those_of_all_against_all(monkeypatch):
    rng = np.random.default_rng(4)
    topics = rng.normal(size=(40, 8))
    codes = (topics[rng.integers(40, size=3000)] + 0.5 * rng.normal(size=(3000, 8))).astype("f")
    exact, cosines = near_texts(codes, 5)
    monkeypatch.setattr(graph_prior, "EXACT_NEAR", 100)
    found, theirs = near_texts(codes, 5)
    pairs = dict(zip(map(tuple, exact.tolist()), cosines, strict=True))
    shared = [pair for pair in map(tuple, found.tolist()) if pair in pairs]
    assert len(shared) > 0.95 * len(pairs)
    known = dict(zip(map(tuple, found.tolist()), theirs, strict=True))
    assert all(known[pair] == pytest.approx(pairs[pair], abs=1e-6) for pair in shared)
    assert (found[:, 0] < found[:, 1]).all()


@pytest.mark.parametrize("n", [1, 2])
def test_near_texts_of_hardly_any(n):
    pairs, cosines = near_texts(np.ones((n, 3), np.float32))
    assert pairs.shape == (0, 2)
    assert cosines.shape == (0,)


TEXTS = ["cats purr and cats sleep", "dogs bark", "", "cats", "stars and planets", "dogs and cats"]
CORPUS = Corpus.build(TEXTS, min_count=1)


def test_text_codes_add_damped_words_at_the_length_of_the_prior_half_centred():
    rng = np.random.default_rng(0)
    vectors = torch.from_numpy(rng.normal(size=(1 + len(CORPUS.vocabulary), 5)).astype(np.float32))
    vectors.requires_grad_()
    found = TextCodes(CORPUS, torch.device("cpu"))(vectors)
    number = {word: k for k, word in enumerate(CORPUS.vocabulary, 1)}
    rows = []
    for text in TEXTS:
        words = tokenize(text)
        total = sum(
            ((1 + np.log(words.count(w))) * vectors[number[w]] for w in set(words)),
            torch.zeros(5),
        )
        rows.append(total * 5**0.5 / total.norm() if words else total)
    speaking = [0, 1, 3, 4, 5]
    expected = torch.stack(rows) - torch.stack(rows)[speaking].mean(dim=0) / 2
    torch.testing.assert_close(found[speaking], expected[speaking], rtol=1e-5, atol=1e-5)
    direction = torch.from_numpy(rng.normal(size=found.shape).astype(np.float32))
    direction[2] = 0
    gradients = [torch.autograd.grad(v, vectors, direction)[0] for v in (found, expected)]
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-4)


def test_a_text_without_a_word_has_a_short_code_of_its_own():
    texts = ["", "cats purr", "", "dogs bark", "cats bark", ""]
    corpus = Corpus.build(texts, min_count=1)
    vectors = torch.randn(
        1 + len(corpus.vocabulary), 50, generator=torch.Generator().manual_seed(1)
    )
    codes = TextCodes(corpus, torch.device("cpu"))
    found, silent = codes(vectors), [0, 2, 5]
    center = 2 * (codes._scaled(vectors, codes.all) - found)[1]
    own = found[silent] - center / 4
    length = own.norm(dim=1) / 50**0.5
    assert ((length > 0.05) & (length < 0.15)).all()
    cosine = torch.corrcoef(own) - torch.eye(3)
    assert cosine.abs().max() < 0.5
    some = np.array([5, 1, 0])
    torch.testing.assert_close(codes.of(some, vectors), found[some])  # all texts are the sample


def test_where_no_text_has_a_word_links_tell_vertices_apart():
    links = [(i, j) for part in (range(10), range(10, 20)) for i in part for j in part if i < j]
    model = VHE(random_state=0, steps=0, verbose=False)
    with pytest.warns(UserWarning, match="no text has a word"):
        model.fit(TextNetwork(range(20), [""] * 20, links))
    scores = model.score_matrix(np.arange(20), np.arange(20))
    same = np.arange(20) // 10 == np.arange(20)[:, None] // 10
    assert scores[same].min() > scores[~same].max()


def test_a_text_without_a_word_is_near_to_none(joint):
    assert 2 not in joint.near[0]


@pytest.fixture
def joint():
    sizes = {"word_dim": 5, "latent_dim": 5, "structure_dim": 5, "hidden_dim": 4, "kernels": 3}
    model = PairVAE(VHEConfig(**sizes, max_words=8), len(CORPUS.vocabulary), len(TEXTS), 0.2)
    model.start(CORPUS, 0)
    return JointStructure(model, CORPUS)


SOME_LINKS = np.array([[0, 3], [0, 5], [1, 5], [2, 4]])


def test_joint_structure_is_the_posterior_of_the_models_texts(joint):
    joint.use(SOME_LINKS, 1.0)
    joint.store()
    codes = joint.codes(joint.model.words.weight)
    speaking = np.array([0, 1, 3, 4, 5])
    pairs, cosine = near_texts(codes.detach().numpy()[speaking])
    prior = GraphPrior(SOME_LINKS, CORPUS.lengths, (speaking[pairs], cosine), 1.0)
    expected = prior.coupling().posterior_mean(codes, ROUNDS).detach()
    torch.testing.assert_close(joint.model.structure.weight.detach(), expected)
    joint.use(SOME_LINKS, 0.0)
    assert not torch.allclose(joint.mean(), expected, atol=0.01)


def test_the_variance_is_the_diagonal_of_the_inverse(joint):
    joint.use(SOME_LINKS, 1.0)
    coupling = joint.prior.coupling()
    dense = coupling.times(torch.eye(len(TEXTS)))
    exact = torch.linalg.inv(dense.double()).diagonal().float()
    torch.testing.assert_close(coupling.variance(0, probes=20000), exact, rtol=0.03, atol=0)
    few = torch.from_numpy(joint.variance(0))
    assert torch.corrcoef(torch.stack([few, exact]))[0, 1] > 0.9
    assert (few >= 1 / coupling.diagonal.squeeze(1)).all()
    assert (few <= 1 / coupling.precision.squeeze(1)).all()
    assert torch.equal(few, torch.from_numpy(joint.variance(0)))


def test_what_is_left_out_is_told(joint):
    joint.use(SOME_LINKS, 0.5)
    found = joint.leaving_out(np.array([2, 0]))
    assert found.links.tolist() == [[1, 5], [0, 3]]
    assert torch.equal(found.mean, joint.mean(np.array([2, 0])))


def test_joint_structure_without_the_links_of_a_step_does_not_read_them(joint):
    """Two steps with other links but the same number at each vertex make the same structure."""
    means = []
    for step in ([[1, 4], [3, 5]], [[1, 5], [3, 4]]):
        joint.use(np.concatenate([SOME_LINKS, step]), 0.5)
        means.append((joint.mean(np.array([4, 5])), joint.mean()))
    assert torch.equal(means[0][0], means[1][0])
    assert not torch.allclose(means[0][1], means[1][1], atol=0.01)


def test_joint_structure_passes_its_gradient_to_the_words(joint):
    joint.use(SOME_LINKS, 0.5)
    joint.mean(np.array([1])).square().sum().backward()
    gradient = joint.model.words.weight.grad
    assert gradient.isfinite().all()
    assert (gradient[1:].abs().sum(dim=1) > 0).all()
