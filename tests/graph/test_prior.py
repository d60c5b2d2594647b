"""The couplings of the prior, masked links, and the posterior of a part of the graph."""

import numpy as np
import pytest
import torch

from vhe.graph.model import effective_lengths, text_precision
from vhe.graph.prior import LARGEST_WEIGHT, GraphPrior, mean_log_length

N = 9


def some_codes(d: int = 4, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(N, d))).float()


@pytest.mark.parametrize("text_knn_weight", [0.0, 2.0])
@pytest.mark.parametrize("masked", [[], [0], [4, 1, 6]])
def test_the_system_is_that_of_the_formulas(small, masked, text_knn_weight):
    posterior = small.prior(text_knn_weight).posterior(np.array(masked, dtype=np.int64))
    precision, a = small.dense(text_knn_weight, masked)
    np.testing.assert_allclose(posterior.precision[:, 0], precision, rtol=1e-6)
    np.testing.assert_allclose(posterior.diagonal[:, 0], np.diag(a), rtol=1e-6)
    found = torch.diag(posterior.diagonal[:, 0]) - posterior.weights.to_dense()
    np.testing.assert_allclose(found, a, atol=1e-6)


def test_a_link_between_nearest_texts_has_both_weights(small):
    """Link 0 and the first pair of near texts join the same two vertices."""
    weights = small.prior(2.0).posterior().weights.to_dense()
    alone = small.prior(0.0).posterior().weights.to_dense()
    near = small.prior(2.0).posterior(np.array([0])).weights.to_dense()
    assert weights[0, 1] == pytest.approx(float(alone[0, 1] + near[0, 1]))
    assert near[0, 1] > 0


def test_without_near_texts_only_links_are_coupled(small):
    prior = GraphPrior(small.links, small.lengths, None, link_strength=1.5, text_knn_weight=2.0)
    expected = small.prior(0.0).posterior().weights.to_dense()
    assert torch.equal(prior.posterior().weights.to_dense(), expected)


def test_masking_links_does_not_change_the_prior(small):
    prior = small.prior()
    before = prior.posterior().weights.to_dense()
    prior.posterior(np.array([0, 3]))
    prior.restricted_posterior(np.arange(N), some_codes().numpy(), np.array([0, 3]))
    assert torch.equal(prior.posterior().weights.to_dense(), before)


@pytest.mark.parametrize("restricted", [False, True])
def test_the_posterior_does_not_depend_on_where_masked_links_lead(small, restricted):
    """Masked are 0-3 and 4-5, or 0-5 and 3-4: the degrees are the same."""
    rest, masked = small.links[[0, 1, 3, 5, 6]], np.array([5, 6])
    codes = some_codes()

    def means(step: list[list[int]], masked: np.ndarray | None) -> torch.Tensor:
        prior = small.prior(links=np.concatenate([rest, step]))
        if not restricted:
            return prior.posterior(masked).mean(codes)
        posterior, inflow = prior.restricted_posterior(np.arange(N), codes.numpy(), masked)
        return posterior.solve(posterior.precision * codes + inflow)

    one, other = [[0, 3], [4, 5]], [[0, 5], [3, 4]]
    assert torch.equal(means(one, masked), means(other, masked))
    assert not torch.allclose(means(one, None), means(other, None), atol=0.01)


def test_a_vertex_without_couplings_has_its_text_code(small):
    mean = small.prior().posterior().mean(some_codes())
    torch.testing.assert_close(mean[7:], some_codes()[7:])
    assert not torch.allclose(mean[:7], some_codes()[:7], atol=0.01)


def test_no_links_at_all(small):
    prior = small.prior(links=np.zeros((0, 2), dtype=np.int64))
    torch.testing.assert_close(prior.posterior().mean(some_codes()), some_codes())


def test_a_huge_strength_is_limited(small):
    prior = GraphPrior(small.links, small.lengths, link_strength=1e30)
    assert prior.weights.max() == LARGEST_WEIGHT
    assert prior.posterior().mean(some_codes()).isfinite().all()


def test_longer_texts_have_a_larger_precision():
    lengths = np.array([0, 3, 8, 99])
    found = text_precision(lengths, mean_log_length(lengths))
    assert found**2 == pytest.approx((1 + lengths) / np.exp(np.log1p(lengths).mean()), rel=1e-5)
    assert np.log(found).mean() == pytest.approx(0, abs=1e-6)  # the geometric mean is 1


# --- a part of the graph


@pytest.mark.parametrize("halo", [0, 1, 2, 3, 20])
@pytest.mark.parametrize("vertices", [[0], [3, 6], [8], [0, 1, 2, 4]])
def test_a_region_has_the_strongest_neighbours(small, vertices, halo):
    prior = small.prior(1.0)
    weights = prior.posterior().weights.to_dense().numpy()
    total = {v: weights[vertices, v].sum() for v in range(N) if v not in vertices}
    others = sorted((v for v in total if total[v] > 0), key=lambda v: -total[v])[:halo]
    found = prior.region(np.array(vertices), halo)
    assert found.tolist() == sorted([*vertices, *others])


@pytest.mark.parametrize("masked", [None, np.array([0, 5])])
def test_the_region_of_all_vertices_has_the_whole_posterior(small, masked, path):
    prior, codes = small.prior(1.0), some_codes()
    whole = prior.posterior(masked)
    posterior, inflow = prior.restricted_posterior(np.arange(N), codes.numpy(), masked)
    assert torch.equal(posterior.weights.to_dense(), whole.weights.to_dense())
    torch.testing.assert_close(posterior.diagonal, whole.diagonal)
    assert torch.equal(posterior.precision, whole.precision)
    assert not inflow.any()


@pytest.mark.parametrize("region", [[0, 1, 2], [3], [2, 5, 8], [0, 2, 4, 6, 7]])
@pytest.mark.parametrize("masked", [None, np.array([1, 4])])
def test_with_exact_codes_outside_a_region_has_its_exact_posterior(small, region, masked, path):
    prior, codes = small.prior(1.0), some_codes()
    exact = prior.posterior(masked).mean(codes)
    posterior, inflow = prior.restricted_posterior(np.array(region), exact.numpy(), masked)
    found = posterior.solve(posterior.precision * codes[region] + inflow)
    torch.testing.assert_close(found, exact[region], rtol=1e-4, atol=1e-5)


def test_a_vector_without_words_has_the_average_length_of_the_texts_with_words():
    lengths, vectors = np.array([0, 3, 15, 0]), np.array([[1.0], [0.0], [2.0], [0.0]], dtype="f")
    np.testing.assert_allclose(effective_lengths(lengths, vectors), [7, 3, 15, 0])
    np.testing.assert_allclose(effective_lengths(lengths, vectors, np.log(5)), [4, 3, 15, 0])
    np.testing.assert_allclose(effective_lengths(lengths * 0, vectors), 0)
