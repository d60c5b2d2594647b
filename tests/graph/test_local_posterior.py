"""A few rows of the joint posterior against the whole of it, and what they must not know."""

import numpy as np
import pytest
import torch

from vhe.data.text import Corpus
from vhe.graph import local_posterior
from vhe.graph import posterior as joint_structure
from vhe.graph.local_posterior import LocalPosterior
from vhe.graph.prior import GraphPrior, TextCodes, near_texts

N, D = 40, 6
NONE = np.zeros(0, dtype=np.int64)


@pytest.fixture
def graph(monkeypatch):
    """A prior over 40 texts, their codes and word vectors, and its posterior mean."""
    monkeypatch.setattr(local_posterior, "ROUNDS_LOCAL", 40)
    rng = np.random.default_rng(0)
    texts = [
        " ".join(f"w{k}" for k in rng.integers(30, size=rng.integers(1, 20))) for _ in range(N)
    ]
    corpus = Corpus.build(texts, min_count=1)
    links = np.unique(np.sort(rng.integers(N, size=(50, 2)), axis=1), axis=0)
    links = links[links[:, 0] < links[:, 1]]
    vectors = torch.from_numpy(rng.normal(size=(1 + len(corpus.vocabulary), D)).astype(np.float32))
    codes = TextCodes(corpus, torch.device("cpu"))
    prior = GraphPrior(links, corpus.lengths, near_texts(codes(vectors).numpy(), 3), 1.0)
    return prior, codes, vectors, whole(prior, codes(vectors))


def whole(prior, codes, without=NONE):
    return prior.coupling(without).posterior_mean(codes, 60)


def close(found, expected, atol=1e-4):
    torch.testing.assert_close(found, expected, rtol=0, atol=atol)


@pytest.mark.parametrize("halo", [0, 4, 100])
def test_where_everything_is_known_it_stays(graph, monkeypatch, halo):
    prior, codes, vectors, expected = graph
    monkeypatch.setattr(local_posterior, "HALO", halo)
    table = expected.clone()
    asked = np.array([0, 3, 17, 39])
    close(LocalPosterior(prior, codes, table).mean(asked, vectors, NONE), expected[asked])
    close(table, expected)


def test_all_vertices_without_some_links_are_the_whole_solution(graph):
    prior, codes, vectors, _ = graph
    without = np.array([1, 7, 8])
    local = LocalPosterior(prior, codes, torch.randn(N, D))  # what was known counts for nothing
    close(local.mean(np.arange(N), vectors, without), whole(prior, codes(vectors), without))


def test_a_link_left_out_is_hardly_heard_of_by_way_of_the_halo(graph):
    prior, codes, vectors, expected = graph
    number = np.array([5])
    ends = np.sort(prior.links[5])
    right = whole(prior, codes(vectors), number)[ends]
    found = LocalPosterior(prior, codes, expected.clone()).mean(ends, vectors, number)
    assert (found - right).norm() < 0.1 * (expected[ends] - right).norm()


def test_relaxing_a_few_rows_at_a_time_leads_to_the_whole_solution(graph, monkeypatch):
    prior, codes, vectors, expected = graph
    monkeypatch.setattr(local_posterior, "HALO", 5)
    table = torch.zeros(N, D)
    local, rng = LocalPosterior(prior, codes, table), np.random.default_rng(1)
    for _ in range(120):
        local.mean(np.sort(rng.permutation(N)[:6]), vectors, NONE)
    close(table, expected, atol=1e-3)


def test_gradients_go_by_the_texts_asked_for_and_their_halo(graph, monkeypatch):
    """Against the same equations with dense matrices."""
    prior, codes, vectors, expected = graph
    asked, without = np.array([2, 9, 30]), np.array([4])
    local = LocalPosterior(prior, codes, expected.clone())
    vectors.requires_grad_()
    found = local.mean(asked, vectors, without)
    w = prior.coupling().matrix.to_dense()
    diagonal = prior.precision + w.sum(dim=1)
    halo = [v for v in range(N) if w[asked, v].any() and v not in asked]
    b = prior.precision.unsqueeze(1) * codes.of(np.arange(N), vectors)
    frozen = [v for v in range(N) if v not in asked]
    b_h = b[halo] + w[halo][:, frozen] @ expected[frozen]
    outside = [v for v in frozen if v not in halo]
    b_r = b[asked] + w[asked][:, outside] @ expected[outside]
    kept = prior.coupling(without).matrix.to_dense()
    own = torch.diag(prior.precision + kept.sum(dim=1))[asked][:, asked] - kept[asked][:, asked]
    answer = w[asked][:, halo] / diagonal[halo]
    dense = torch.linalg.solve(own - answer @ w[halo][:, asked], b_r + answer @ b_h)
    close(found, dense)
    direction = torch.randn(found.shape, generator=torch.Generator().manual_seed(0))
    close(*(torch.autograd.grad(v, vectors, direction)[0] for v in (found, dense)))


def test_the_halo_is_what_is_coupled_most():
    vertices, weights = np.array([4, 9, 4, 2, 7]), np.array([0.2, 0.5, 0.4, 0.1, 0.3], np.float32)
    place = np.full(10, -1)
    for most, expected in ((2, [4, 9]), (9, [2, 4, 7, 9])):
        assert local_posterior._strongest(vertices, weights, most, place).tolist() == expected
        assert (place == -1).all()


def test_a_large_network_learns_by_local_solutions(new, network, monkeypatch):
    exact = new().fit(network)
    monkeypatch.setattr(joint_structure, "WHOLE", 0)
    local = new().fit(network)
    assert local.result_["best_step"] > 0
    assert not np.array_equal(local.embedding_, exact.embedding_)
    assert abs(local.result_["validation_auc"] - exact.result_["validation_auc"]) < 0.03
