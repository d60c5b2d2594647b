"""The bound of the joint model against torch.distributions, the pair and the exact evidence."""

import numpy as np
import pytest
import torch
from torch.distributions import MultivariateNormal, Normal, kl_divergence

from vhe.graph import bound as module
from vhe.graph.bound import (
    graph_bound,
    lanczos_log_determinant,
    log_determinant,
    prior_of,
    variances,
)
from vhe.graph.prior import Coupling, GraphPrior, TextCodes
from vhe.pair.homophily import PairGaussian, kl_to_prior

N, D = 7, 3
LINKS = [(0, 1), (0, 2), (1, 2), (3, 4), (2, 3)]  # 5 and 6 have none
SHARES = [0.1, 0.5, 0.9]


def coupling(precision, links=LINKS, link_strength=1.5):
    """diag(Λ) + Laplacian, in double precision."""
    precision = torch.as_tensor(precision, dtype=torch.float64).unsqueeze(1)
    weights = torch.zeros(len(precision), len(precision), dtype=torch.float64)
    for k, (i, j) in enumerate(links):
        weights[i, j] = weights[j, i] = link_strength / (1 + k)
    return Coupling(weights.to_sparse_csr(), precision, weights.sum(dim=1, keepdim=True))


def dense(of):
    return of.times(torch.eye(len(of.diagonal)).to(of.diagonal)).double()


def some(seed, *shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


CODES, PRECISION = some(0, N, D), some(1, N).exp()


def evidence(codes, posterior, share):
    """log N(m; 0, (1-τ)² Q⁻¹ + (1-τ) Λ⁻¹) over all dimensions, a vertex."""
    covariance = (1 - share) ** 2 * dense(prior_of(posterior, share)).inverse()
    covariance += torch.diag((1 - share) / posterior.precision.squeeze(1))
    normal = MultivariateNormal(torch.zeros(len(codes), dtype=torch.float64), covariance)
    return normal.log_prob(codes.T).sum().item() / len(codes)


@pytest.mark.parametrize("links", [LINKS, []], ids=["links", "none"])
@pytest.mark.parametrize("share", SHARES)
def test_the_kl_is_that_of_two_gaussians(links, share):
    posterior, q = coupling(PRECISION, links), coupling(some(2, N).exp() + 2, links)
    mean = some(3, N, D)
    found = graph_bound(CODES, mean, posterior, 0, q=q, share=share)
    p = MultivariateNormal(
        torch.zeros(N, dtype=torch.float64), precision_matrix=dense(prior_of(posterior, share))
    )
    expected = sum(
        kl_divergence(MultivariateNormal(column, precision_matrix=dense(q)), p) for column in mean.T
    )
    assert found.kl == pytest.approx(expected.item() / N, rel=1e-10)


@pytest.mark.parametrize("lam", [0.1, 0.5, 0.99])
def test_two_linked_vertices_are_the_pair_of_the_paper(lam):
    share, link_strength = 0.4, lam / (1 - lam**2)
    posterior = coupling([1 / (1 + lam) / share] * 2, [(0, 1)], link_strength)
    p1 = torch.tensor([[1, lam], [lam, 1]], dtype=torch.float64)
    torch.testing.assert_close(dense(prior_of(posterior, share)).inverse(), p1)

    q, mean = coupling([1.3, 4.0], [(0, 1)], link_strength), some(4, 2, D)
    covariance = dense(q).inverse()
    (var_i, cross), (_, var_j) = covariance.unbind()
    pair = PairGaussian(
        *mean.unsqueeze(1),
        *(v.log().expand(1, D) for v in (var_i, var_j)),
        (cross / (var_i * var_j).sqrt()).expand(1, D),
    )
    found = graph_bound(CODES[:2], mean, posterior, 0, q=q, share=share)
    assert 2 * found.kl == pytest.approx(kl_to_prior(pair, lam).item(), rel=1e-9)


@pytest.mark.parametrize("links", [LINKS, []], ids=["links", "none"])
@pytest.mark.parametrize("share", SHARES)
def test_at_the_posterior_the_bound_is_the_evidence_and_elsewhere_below_it(links, share):
    posterior = coupling(PRECISION, links)
    mean = torch.linalg.solve(dense(posterior), posterior.precision * CODES)
    exact = evidence(CODES, posterior, share)
    best = graph_bound(CODES, mean, posterior, 0, share=share)
    assert best.total == pytest.approx(exact, rel=1e-10)
    assert best.kl > 0
    for seed in range(5, 10):
        moved = graph_bound(CODES, mean + 0.01 * some(seed, N, D), posterior, 0, share=share)
        wider = coupling(PRECISION * (0.1 * some(seed, N)).exp(), links)
        other = graph_bound(CODES, mean, posterior, 0, q=wider, share=share)
        assert max(moved.total, other.total) < exact - 1e-6


def test_the_bound_is_below_the_evidence_by_the_kl_to_the_posterior():
    posterior, q, mean = coupling(PRECISION), coupling(PRECISION + 1), some(5, N, D)
    best = torch.linalg.solve(dense(posterior), posterior.precision * CODES)
    gap = sum(
        kl_divergence(
            MultivariateNormal(mean[:, k], precision_matrix=dense(q)),
            MultivariateNormal(best[:, k], precision_matrix=dense(posterior)),
        )
        for k in range(D)
    )
    found = graph_bound(CODES, mean, posterior, 0, q=q).total
    expected = evidence(CODES, posterior, module.SHARE) - gap.item() / N
    assert found == pytest.approx(expected, rel=1e-10)


def random_graph(n, links, seed=0):
    rng = np.random.default_rng(seed)
    pairs = np.unique(np.sort(rng.integers(n, size=(links, 2)), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] < pairs[:, 1]].astype(np.int64)
    return GraphPrior(pairs, rng.integers(0, 100, size=n)).coupling()


def probe_deviation(of):
    """Of n vᵀ log(S) v for one probe v of random signs: √(2 Σ_(i≠j) log(S)_ij²)."""
    scale = of.diagonal.double().rsqrt()
    nodes, vectors = torch.linalg.eigh(scale * dense(of) * scale.T)
    log = vectors * nodes.log() @ vectors.T
    return float((log - torch.diag(log.diagonal())).square().sum().mul(2).sqrt())


@pytest.mark.parametrize("links", [1200, 60, 0])
@pytest.mark.parametrize("probes", [32, 1000])
def test_lanczos_finds_the_determinant(links, probes):
    """To four standard errors of its probes, which are at most .05 a vertex for 32 and .008 for
    1,000; 1e-5 is what single precision leaves where there is no such error."""
    n = 400
    for of in (random_graph(n, links), prior_of(random_graph(n, links), 0.1)):
        error = 4 * probe_deviation(of) / probes**0.5 / n
        assert error < {32: 0.05, 1000: 0.008}[probes]
        found = lanczos_log_determinant(of, 0, probes=probes) / n
        exact = log_determinant(of, 0) / n
        assert found.item() == pytest.approx(exact.item(), abs=error + 1e-5)


def test_without_links_lanczos_is_exact():
    found = lanczos_log_determinant(coupling(PRECISION, []), 0, probes=1)
    assert found.item() == pytest.approx(PRECISION.log().sum().item(), abs=1e-12)


def test_a_large_graph_has_nearly_the_same_bound(monkeypatch):
    of, codes = random_graph(600, 1500), some(6, 600, 20).float()
    mean = of.posterior_mean(codes, 30)
    exact = graph_bound(codes, mean, of, 0)
    monkeypatch.setattr(module, "EXACT", 0)
    found = graph_bound(codes, mean, of, 0)
    assert found.total == pytest.approx(exact.total, rel=5e-3)
    assert found.kl == pytest.approx(exact.kl, rel=5e-2)
    assert found == graph_bound(codes, mean, of, 0)


def test_a_vertex_without_links_adds_its_own_evidence():
    """Its code is N(0, (1-τ) / (τ Λ)) on its own; any mean will do for the others."""
    linked = [(0, 1), (1, 2)]
    codes, mean, share = CODES[:4], some(7, 4, D), 0.3
    mean[3] = codes[3]  # the posterior of a text that is alone is the text
    whole = graph_bound(codes, mean, coupling(PRECISION[:4], linked), 0, share=share)
    rest = graph_bound(codes[:3], mean[:3], coupling(PRECISION[:3], linked), 0, share=share)
    own = Normal(0.0, ((1 - share) / share / PRECISION[3]).sqrt()).log_prob(codes[3]).sum()
    assert 4 * whole.total - 3 * rest.total == pytest.approx(own.item(), rel=1e-10)


def test_the_variances_are_exact_where_vertices_are_few():
    of = coupling(PRECISION)
    torch.testing.assert_close(variances(of, 0).squeeze(1), dense(of).inverse().diagonal())


def test_a_fit_tells_the_evidence_of_its_texts(hasty, network):
    model = hasty(text_knn_weight=0.0, link_strength=2.0).fit(network)
    told = model.result_["graph_bound"]
    assert told["total"] == told["reconstruction"] - told["kl"]
    words = model._model.words.weight.detach()
    codes = TextCodes(model._corpus, words.device)(words).double()
    a = GraphPrior(network.links, model._corpus.lengths).coupling()
    exact = Coupling(a.matrix.double(), a.precision.double(), (a.diagonal - a.precision).double())
    assert told["total"] == pytest.approx(evidence(codes, exact, module.SHARE), rel=1e-5)
    assert hasty(structure="learned").fit(network).result_["graph_bound"] is None
