"""The posterior against dense linear algebra, with and without the native kernels."""

import numpy as np
import pytest
import torch

from vhe.graph.posterior import ITERATIONS, Posterior
from vhe.graph.prior import GraphPrior

N = 9


def some_codes(d: int = 4, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(N, d))


def in_double(posterior: Posterior) -> Posterior:
    weights = posterior.weights.double()
    precision = posterior.precision.double()
    return Posterior(weights, precision, precision + weights.to_dense().sum(dim=1, keepdim=True))


def dense_system(posterior: Posterior) -> torch.Tensor:
    return torch.diag(posterior.diagonal[:, 0]) - posterior.weights.to_dense()


@pytest.mark.parametrize("text_knn_weight", [0.0, 2.0])
@pytest.mark.parametrize("masked", [[], [0], [4, 1, 6]])
def test_the_mean_is_the_solution_of_the_dense_system(small, path, masked, text_knn_weight):
    codes = some_codes()
    posterior = small.prior(text_knn_weight).posterior(np.array(masked, dtype=np.int64))
    precision, a = small.dense(text_knn_weight, masked)
    expected = np.linalg.solve(a, precision[:, None] * codes)
    found = posterior.mean(torch.from_numpy(codes).float()).numpy()
    assert found == pytest.approx(expected, abs=5e-6)


def test_the_product_is_that_of_the_dense_system(small, path):
    z = torch.from_numpy(some_codes()).float()
    _, a = small.dense(1.0)
    found = small.prior(1.0).posterior().multiply(z)
    np.testing.assert_allclose(found, a @ z.double().numpy(), rtol=1e-4, atol=1e-5)


def test_the_solution_of_a_larger_system(path):
    """Conjugate gradients need far fewer iterations than there are vertices."""
    rng = np.random.default_rng(1)
    n = 400
    links = rng.integers(n, size=(1000, 2))
    links = np.unique(np.sort(links[links[:, 0] != links[:, 1]], axis=1), axis=0)
    posterior = GraphPrior(links, rng.integers(50, size=n), link_strength=1.0).posterior()
    b = torch.from_numpy(rng.normal(size=(n, 5))).float()
    expected = torch.linalg.solve(dense_system(posterior).double(), b.double()).float()
    found = posterior.solve(b)
    assert (found - expected).norm() < 1e-3 * expected.norm()
    few = posterior.solve(b, 3)
    assert 2 * (found - expected).norm() < (few - expected).norm() < 0.05 * expected.norm()


def test_gradients_are_those_of_the_dense_solution(small):
    posterior = in_double(small.prior(1.0).posterior())
    codes = torch.from_numpy(some_codes()).requires_grad_()
    expected = torch.linalg.solve(dense_system(posterior), posterior.precision * codes)
    found = posterior.mean(codes)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
    direction = torch.from_numpy(some_codes(seed=1))
    gradients = [torch.autograd.grad(v, codes, direction)[0] for v in (found, expected)]
    torch.testing.assert_close(*gradients, rtol=1e-9, atol=1e-9)


def test_gradients_in_single_precision(small, path):
    posterior = small.prior(1.0).posterior()
    codes = torch.from_numpy(some_codes()).float().requires_grad_()
    expected = torch.linalg.solve(dense_system(posterior), posterior.precision * codes)
    direction = torch.from_numpy(some_codes(seed=1)).float()
    gradients = [
        torch.autograd.grad(v, codes, direction)[0] for v in (posterior.mean(codes), expected)
    ]
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-5)


def test_the_system_is_symmetric_and_positive_and_preserves_a_constant(small):
    posterior = in_double(small.prior(1.0).posterior())
    a = posterior.multiply(torch.eye(N, dtype=torch.float64))
    torch.testing.assert_close(a, a.T)
    assert torch.linalg.eigvalsh(a).min() > 0
    constant = torch.full((N, 1), 2.5, dtype=torch.float64)  # equal texts have equal posteriors
    torch.testing.assert_close(posterior.mean(constant), constant)


def test_more_iterations_reduce_the_residual(small, path):
    posterior = small.prior().posterior()
    b = torch.from_numpy(some_codes()).float()
    residual = [
        (b - posterior.multiply(posterior.solve(b, k))).norm().item() for k in (0, 2, 4, 9, 25)
    ]
    assert residual[0] > residual[1] > residual[2] > residual[3]
    assert residual[4] < 1e-5  # more than needed do no harm


def test_zero_columns_have_a_zero_solution(small, path):
    b = torch.zeros(N, 3)
    assert torch.equal(small.prior().posterior().solve(b), b)


def test_two_linked_vertices_are_the_pair_of_the_paper():
    posterior = in_double(
        GraphPrior(np.array([[0, 1]]), np.array([4, 4]), link_strength=1.5).posterior()
    )
    covariance = posterior.solve(torch.eye(2, dtype=torch.float64))
    assert posterior.precision.flatten().tolist() == [1, 1]
    s = 1.5 / 2**0.5
    correlation = covariance[0, 1] / (covariance[0, 0] * covariance[1, 1]).sqrt()
    assert correlation.item() == pytest.approx(s / (s + 1), abs=1e-6)


def test_the_variance_is_the_diagonal_of_the_inverse(small, path):
    posterior = small.prior(1.0).posterior()
    _, a = small.dense(1.0)
    exact = np.diag(np.linalg.inv(a))
    np.testing.assert_allclose(posterior.variance(0, probes=20000), exact, rtol=0.03)
    few = posterior.variance(0)
    assert np.corrcoef(few, exact)[0, 1] > 0.9
    for estimate in (few, posterior.variance(0, probes=1)):  # one probe alone exceeds the limits
        assert (estimate >= 1 / posterior.diagonal[:, 0]).all()
        assert (estimate <= 1 / posterior.precision[:, 0]).all()
    assert torch.equal(few, posterior.variance(0))
    assert not torch.equal(few, posterior.variance(1))


def test_both_paths_agree(small, monkeypatch):
    from vhe.runtime import native

    if native.library() is None:
        pytest.skip("the native kernels are not built")
    posterior, b = small.prior(1.0).posterior(), torch.from_numpy(some_codes()).float()
    compiled = [posterior.solve(b, k) for k in (0, 1, 3, ITERATIONS)]
    monkeypatch.setattr(native, "is_available", lambda tensor: False)
    for k, found in zip((0, 1, 3, ITERATIONS), compiled, strict=True):
        torch.testing.assert_close(found, posterior.solve(b, k), rtol=1e-4, atol=1e-5)
