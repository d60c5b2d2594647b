"""The homophilic prior: closed forms against torch.distributions, Monte Carlo and mpmath."""

import math
from dataclasses import replace

import mpmath
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.distributions import Bernoulli, MultivariateNormal, Normal, kl_divergence

from vhe.pair.homophily import (
    GAMMA_MOST,
    LOG_VARIANCE,
    PairGaussian,
    kl_bernoulli,
    kl_to_prior,
    limited_gamma,
    limited_log_variance,
    sample,
)

EXACT = {"rtol": 1e-10, "atol": 1e-10}
LAMBDAS = [0.0, 0.3, 0.99]


def numbers(*values):
    return torch.tensor(values, dtype=torch.float64)


def posterior(batch=5, d=3, seed=0, correlated=True):
    generator = torch.Generator().manual_seed(seed)

    def draw():
        return torch.randn(batch, d, generator=generator, dtype=torch.float64)

    gamma = torch.rand(batch, d, generator=generator, dtype=torch.float64) * 0.95
    return PairGaussian(draw(), draw(), draw(), draw(), gamma if correlated else None)


def one(mean_i, mean_j, sigma_i, sigma_j, gamma, dtype=torch.float64):
    """The posterior of one pair with one dimension."""
    values = (mean_i, mean_j, 2 * math.log(sigma_i), 2 * math.log(sigma_j), gamma)
    return PairGaussian(*(torch.tensor([[v]], dtype=dtype) for v in values))


def as_normal(q):
    """The 2x2 Gaussian of each dimension: batch shape (batch, d)."""
    gamma = torch.zeros_like(q.mean_i) if q.gamma is None else q.gamma
    var_i, var_j = q.log_variance_i.exp(), q.log_variance_j.exp()
    cross = gamma * (var_i * var_j).sqrt()
    covariance = torch.stack([var_i, cross, cross, var_j], dim=-1).unflatten(-1, (2, 2))
    return MultivariateNormal(torch.stack([q.mean_i, q.mean_j], dim=-1), covariance)


def prior(lam):
    return MultivariateNormal(numbers(0, 0), torch.stack([numbers(1, lam), numbers(lam, 1)]))


def exact_kl(q, lam):
    """Appendix A in 50 digits, for one pair, from the numbers that the tensors really hold."""
    with mpmath.workdps(50):
        lam, total = mpmath.mpf(lam), mpmath.mpf(0)
        free = 1 - lam**2
        columns = (q.mean_i, q.mean_j, q.log_variance_i, q.log_variance_j, q.gamma)
        for values in zip(*(c[0].tolist() for c in columns), strict=True):
            m_i, m_j, v_i, v_j, g = map(mpmath.mpf, values)
            s_i, s_j = mpmath.exp(v_i / 2), mpmath.exp(v_j / 2)
            total += mpmath.log(free) - mpmath.log(1 - g**2) - v_i - v_j - 2
            total += (s_i**2 + s_j**2 - 2 * lam * g * s_i * s_j) / free
            total += (m_i**2 + m_j**2 - 2 * lam * m_i * m_j) / free
        return float(total / 2)


@pytest.mark.parametrize("lam", LAMBDAS)
@pytest.mark.parametrize("correlated", [True, False])
def test_the_kl_is_that_of_two_gaussians(lam, correlated):
    q = posterior(correlated=correlated)
    expected = kl_divergence(as_normal(q), prior(lam)).sum(dim=1)
    torch.testing.assert_close(kl_to_prior(q, lam), expected, **EXACT)


def test_the_gradients_of_the_kl_are_those_of_two_gaussians():
    q = posterior()
    inputs = (q.mean_i, q.mean_j, q.log_variance_i, q.log_variance_j, q.gamma)
    for value in inputs:
        value.requires_grad_()
    found = torch.autograd.grad(kl_to_prior(q, 0.9).sum(), inputs)
    wanted = torch.autograd.grad(kl_divergence(as_normal(q), prior(0.9)).sum(), inputs)
    torch.testing.assert_close(found, wanted, **EXACT)


@pytest.mark.parametrize("lam", LAMBDAS)
def test_the_kl_is_the_mean_of_log_q_over_p(lam):
    q = one(0.4, -0.2, 0.7, 1.1, 0.6)
    many = PairGaussian(
        *(
            v.expand(100_000, 1)
            for v in (q.mean_i, q.mean_j, q.log_variance_i, q.log_variance_j, q.gamma)
        )
    )
    z = torch.stack(sample(many, torch.Generator().manual_seed(0)), dim=-1)[:, 0]
    ratio = (as_normal(q).log_prob(z) - prior(lam).log_prob(z)).squeeze()
    error = (ratio.mean() - kl_to_prior(q, lam)[0]).abs()
    assert error < 4 * ratio.std() / len(ratio) ** 0.5


def test_without_homophily_the_kl_is_that_of_two_independent_codes():
    q = posterior(correlated=False)
    expected = sum(
        kl_divergence(Normal(mean, (log_variance / 2).exp()), Normal(0.0, 1.0)).sum(dim=1)
        for mean, log_variance in ((q.mean_i, q.log_variance_i), (q.mean_j, q.log_variance_j))
    )
    torch.testing.assert_close(kl_to_prior(q, 0.0), expected, **EXACT)
    zero = PairGaussian(
        q.mean_i, q.mean_j, q.log_variance_i, q.log_variance_j, torch.zeros_like(q.mean_i)
    )
    torch.testing.assert_close(kl_to_prior(zero, 0.0), expected, **EXACT)


@pytest.mark.parametrize("lam", [0.0, 0.5, 0.99, GAMMA_MOST])
def test_the_kl_of_the_prior_to_itself_is_zero(lam):
    q = one(0.0, 0.0, 1.0, 1.0, lam)
    assert kl_to_prior(q, lam).item() == pytest.approx(0, abs=1e-12)


mean = st.floats(-5, 5)
log_variance = st.floats(*LOG_VARIANCE)


@settings(max_examples=100, deadline=None)
@given(
    mean,
    mean,
    log_variance,
    log_variance,
    st.floats(0, GAMMA_MOST),
    st.floats(0, 1 - 1e-6),
)
def test_the_kl_is_never_negative(mean_i, mean_j, log_variance_i, log_variance_j, gamma, lam):
    values = (mean_i, mean_j, log_variance_i, log_variance_j, gamma)
    q = PairGaussian(*(numbers([v]) for v in values))
    kl = kl_to_prior(q, lam).item()
    assert kl >= -1e-9
    assert kl == pytest.approx(exact_kl(q, lam), rel=1e-9, abs=1e-9)


EXTREMES = [
    (1 - 1e-6, (3.0, 3.0, 1.0, 1.0, GAMMA_MOST)),  # the codes agree, the prior wants nothing else
    (1 - 1e-6, (3.0, 3.001, 0.01, 0.01, GAMMA_MOST)),
    (1 - 1e-6, (-40.0, 40.0, 1.0, 0.007, 0.0)),
    (0.99, (1.0, 1.0, math.exp(-5), math.exp(-5), GAMMA_MOST)),
    (0.99, (1e3, 1e3, math.exp(2), math.exp(-5), 0.5)),
    (0.0, (0.0, 0.0, math.exp(-5), math.exp(2), GAMMA_MOST)),
]


@pytest.mark.parametrize(
    ("dtype", "precision"), [(torch.float64, 1e-9), (torch.float32, 1e-4)], ids=["64", "32"]
)
@pytest.mark.parametrize(("lam", "values"), EXTREMES)
def test_the_kl_is_precise_for_extreme_values(lam, values, dtype, precision):
    q = one(*values, dtype=dtype)
    inputs = (q.mean_i, q.mean_j, q.log_variance_i, q.log_variance_j, q.gamma)
    for value in inputs:
        value.requires_grad_()
    kl = kl_to_prior(q, lam)
    assert kl.dtype == dtype
    assert kl.item() == pytest.approx(exact_kl(q, lam), rel=precision, abs=precision)
    for gradient in torch.autograd.grad(kl.sum(), inputs):
        assert gradient.isfinite().all()


def test_the_kl_is_summed_over_dimensions_and_not_over_pairs():
    q = posterior(batch=4, d=6)
    parts = [
        kl_to_prior(PairGaussian(*(v[:, k : k + 1] for v in vars(q).values())), 0.7)
        for k in range(6)
    ]
    torch.testing.assert_close(kl_to_prior(q, 0.7), sum(parts), **EXACT)


@pytest.mark.parametrize("correlated", [True, False])
def test_a_sample_is_the_mean_plus_the_cholesky_factor_times_noise(correlated):
    q = posterior(correlated=correlated)
    noise = torch.Generator().manual_seed(1)
    epsilon = [torch.randn(q.mean_i.shape, generator=noise, dtype=torch.float64) for _ in range(2)]
    factor = torch.linalg.cholesky(as_normal(q).covariance_matrix)  # (batch, d, 2, 2)
    expected = as_normal(q).loc + (factor @ torch.stack(epsilon, dim=-1).unsqueeze(-1)).squeeze(-1)
    found = torch.stack(sample(q, torch.Generator().manual_seed(1)), dim=-1)
    torch.testing.assert_close(found, expected, **EXACT)


def test_samples_have_the_mean_and_the_covariance_of_the_posterior():
    count = 200_000
    q = one(0.5, -1.0, 0.6, 1.5, 0.8)
    many = PairGaussian(*(v.expand(count, 1) for v in vars(q).values()))
    z = torch.cat(sample(many, torch.Generator().manual_seed(2)), dim=1)
    normal = as_normal(q)
    torch.testing.assert_close(z.mean(dim=0), normal.loc[0, 0], atol=0.012, rtol=0)
    torch.testing.assert_close(z.T.cov(), normal.covariance_matrix[0, 0], atol=0.02, rtol=0)


def test_samples_without_a_correlation_are_uncorrelated():
    q = replace(posterior(batch=1, d=50_000), gamma=None)
    assert q.gamma is None
    z_i, z_j = sample(q, torch.Generator().manual_seed(3))
    noise = [
        (z - mean) / (log_variance / 2).exp()
        for z, mean, log_variance in (
            (z_i, q.mean_i, q.log_variance_i),
            (z_j, q.mean_j, q.log_variance_j),
        )
    ]
    assert abs(torch.corrcoef(torch.cat(noise))[0, 1]) < 0.02


def test_samples_depend_on_the_generator_only():
    q = posterior()
    draws = [torch.stack(sample(q, torch.Generator().manual_seed(s))) for s in (4, 4, 5)]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


def test_gradients_through_samples_agree_with_finite_differences():
    q = posterior(batch=2, d=2)
    inputs = tuple(v.requires_grad_() for v in vars(q).values())

    def drawn(*values):
        return sample(PairGaussian(*values), torch.Generator().manual_seed(6))

    assert torch.autograd.gradcheck(drawn, inputs)


def test_gradients_through_samples_are_those_of_the_expectation():
    """E[z_i z_j] = μ_i μ_j + γ σ_i σ_j."""
    q = one(0.5, -1.0, 0.6, 1.5, 0.8)
    inputs = tuple(v.requires_grad_() for v in vars(q).values())
    many = PairGaussian(*(v.expand(200_000, 1) for v in inputs))
    z_i, z_j = sample(many, torch.Generator().manual_seed(7))
    found = torch.cat(torch.autograd.grad((z_i * z_j).mean(), inputs)).squeeze()
    together = 0.6 * 1.5
    expected = numbers(-1.0, 0.5, 0.8 * together / 2, 0.8 * together / 2, together)
    torch.testing.assert_close(found, expected, atol=0.02, rtol=0)


def test_samples_at_the_greatest_correlation_pass_finite_gradients():
    q = one(0.0, 0.0, math.exp(-5), math.exp(2), GAMMA_MOST, dtype=torch.float32)
    q.gamma.requires_grad_()
    z_i, z_j = sample(q, torch.Generator().manual_seed(8))
    assert torch.isfinite(torch.autograd.grad((z_i + z_j).sum(), q.gamma)[0]).all()


@pytest.mark.parametrize("prior", [1e-9, 0.001, 0.5, 0.9, 1 - 1e-6])
def test_the_kl_of_bernoullis(prior):
    logit = torch.linspace(-12, 12, 41, dtype=torch.float64, requires_grad=True)
    kl = kl_bernoulli(logit, prior)
    of_prior = Bernoulli(torch.tensor(prior, dtype=torch.float64))
    expected = kl_divergence(Bernoulli(torch.sigmoid(logit)), of_prior)
    torch.testing.assert_close(kl, expected, rtol=1e-8, atol=1e-10)
    pi = torch.sigmoid(logit.detach())
    derivative = pi * (1 - pi) * (logit.detach() - math.log(prior / (1 - prior)))
    (gradient,) = torch.autograd.grad(kl.sum(), logit)
    torch.testing.assert_close(gradient, derivative, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("prior", [1e-9, 0.3, 1 - 1e-6])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_kl_of_bernoullis_for_extreme_logits(prior, dtype):
    logit = torch.tensor([-1e4, -200, 200, 1e4], dtype=dtype, requires_grad=True)
    kl = kl_bernoulli(logit, prior)
    never, ever = -math.log1p(-prior), -math.log(prior)
    assert kl.tolist() == pytest.approx([never, never, ever, ever], rel=0.05, abs=1e-6)
    if prior == 0.3:
        assert kl.tolist() == pytest.approx([never, never, ever, ever], rel=1e-6)
    assert torch.autograd.grad(kl.sum(), logit)[0].isfinite().all()


@settings(max_examples=50, deadline=None)
@given(st.floats(-50, 50), st.floats(1e-9, 1 - 1e-9))
def test_the_kl_of_bernoullis_is_never_negative_and_zero_at_the_prior(logit, prior):
    assert kl_bernoulli(numbers(logit), prior).item() >= -1e-12
    at_prior = numbers(math.log(prior) - math.log1p(-prior))
    assert kl_bernoulli(at_prior, prior).item() == pytest.approx(0, abs=1e-12)


def test_gamma_and_variance_stay_in_their_ranges():
    wide = numbers(-1e6, -50, -1, 0, 1, 50, 1e6)
    gamma = limited_gamma(wide)
    assert gamma.min() >= 0
    assert gamma.max() == GAMMA_MOST < 1
    assert gamma[3].item() == pytest.approx(GAMMA_MOST / 2)
    assert (gamma.diff() >= 0).all()
    assert torch.log1p(-(gamma.float() ** 2)).isfinite().all()
    assert limited_log_variance(wide).tolist() == [-10, -10, -1, 0, 1, 4, 4]
