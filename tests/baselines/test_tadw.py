"""Both steps of TADW's alternating least squares are exact, and M = (P + P²)/2."""

import numpy as np
import pytest

from vhe.baselines.matrices import transition_matrix
from vhe.baselines.tadw import multiply_m, solve_h, solve_w

N, F, K, PENALTY = 12, 5, 3, 0.2


@pytest.fixture
def case():
    rng = np.random.default_rng(0)
    i, j = np.triu_indices(N - 1, 1)  # the last vertex has no link
    drawn = rng.random(len(i)) < 0.3
    links = np.stack([i[drawn], j[drawn]], axis=1)
    return (
        transition_matrix(links, N),
        rng.standard_normal((N, F)),
        rng.standard_normal((K, F)),
        links,
    )


def objective(m, w, h, text):
    return ((m - w.T @ h @ text.T) ** 2).sum() + PENALTY / 2 * ((w**2).sum() + (h**2).sum())


def gradient(function, at):
    """Central differences, exact up to rounding for a quadratic function."""
    found = np.zeros_like(at)
    for place in np.ndindex(at.shape):
        step = np.zeros_like(at)
        step[place] = 1e-3
        found[place] = (function(at + step) - function(at - step)) / 2e-3
    return found


def test_m_is_the_mean_of_one_and_two_steps(case):
    walk, text, _, links = case
    a = np.zeros((N, N))
    a[links[:, 0], links[:, 1]] = a[links[:, 1], links[:, 0]] = 1
    p = a / np.maximum(a.sum(axis=1, keepdims=True), 1)
    np.testing.assert_allclose(multiply_m(walk, text), (p + p @ p) / 2 @ text, atol=1e-12)


def test_the_gradient_is_zero_after_each_step(case):
    walk, text, h, _ = case
    m = multiply_m(walk, np.eye(N))
    w = solve_w(walk, text, h, PENALTY)
    assert np.abs(gradient(lambda x: objective(m, x, h, text), w)).max() < 1e-8
    new_h = solve_h(multiply_m(walk, text), text, w, PENALTY)
    assert np.abs(gradient(lambda x: objective(m, w, x, text), new_h)).max() < 1e-8
    assert objective(m, w, new_h, text) < objective(m, w, h, text)
