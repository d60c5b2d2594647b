"""Both ELBOs against the formulas of the paper, and against the evidence that they bound."""

import math

import pytest
import torch
from torch.distributions import Bernoulli, MultivariateNormal, kl_divergence

from vhe.config import PairVHEConfig
from vhe.pair.decoder import GaussianDecoder
from vhe.pair.elbo import Terms, elbo
from vhe.pair.homophily import PairGaussian, kl_bernoulli, kl_to_prior

EXACT = {"rtol": 1e-10, "atol": 1e-10}
PRECISION, LAMBDA, PI0 = 1.5, 0.8, 0.2


def numbers(*values):
    return torch.tensor(values, dtype=torch.float64)


def some_terms(batch=8, seed=0):
    generator = torch.Generator().manual_seed(seed)

    def draw():
        return torch.randn(batch, generator=generator, dtype=torch.float64).requires_grad_()

    return {
        "link_logit": draw(),
        "reconstruction_linked": draw(),
        "reconstruction_unlinked": draw(),
        "kl_linked": draw(),
        "kl_unlinked": draw(),
    }


def test_a_known_edge_has_the_bound_of_equation_7():
    t = some_terms()
    w = numbers(1, 0, 1, 1, 0, 0, 1, 0)
    terms = elbo(links=w, known=torch.ones(8, dtype=torch.bool), pi0=PI0, **t)
    expected = [
        w[k] * (t["reconstruction_linked"][k] - t["kl_linked"][k])
        + (1 - w[k]) * (t["reconstruction_unlinked"][k] - t["kl_unlinked"][k])
        for k in range(8)
    ]
    torch.testing.assert_close(terms["bound"], torch.stack(expected), **EXACT)
    assert (terms["kl_edge"] == 0).all()
    assert (terms["kl_linked"][w == 0] == 0).all()
    assert (terms["kl_unlinked"][w == 1] == 0).all()


def test_an_unknown_edge_has_the_bound_of_appendix_a():
    t = some_terms()
    terms = elbo(links=torch.ones(8), known=torch.zeros(8, dtype=torch.bool), pi0=PI0, **t)
    pi = 1 / (1 + (-t["link_logit"]).exp())
    expected = (
        pi * (t["reconstruction_linked"] - t["kl_linked"])
        + (1 - pi) * (t["reconstruction_unlinked"] - t["kl_unlinked"])
        - kl_divergence(Bernoulli(pi), Bernoulli(numbers(PI0).squeeze()))
    )
    torch.testing.assert_close(terms["bound"], expected, **EXACT)
    torch.testing.assert_close(terms["kl_linked"], pi * t["kl_linked"], **EXACT)
    torch.testing.assert_close(terms["kl_unlinked"], (1 - pi) * t["kl_unlinked"], **EXACT)
    assert (terms["link"] == 0).all()


def test_known_and_unknown_edges_share_a_batch():
    t, known = some_terms(), torch.tensor([True, False] * 4)
    w = numbers(1, 1, 0, 0, 1, 1, 0, 0)
    mixed = elbo(links=w, known=known, pi0=PI0, **t)
    all_known = elbo(links=w, known=torch.ones_like(known), pi0=PI0, **t)
    none_known = elbo(links=w, known=torch.zeros_like(known), pi0=PI0, **t)
    for name in ("bound", "reconstruction", "kl_linked", "kl_unlinked", "kl_edge", "link"):
        expected = torch.where(known, all_known[name], none_known[name])
        torch.testing.assert_close(mixed[name], expected, **EXACT)


def test_the_label_of_an_unknown_edge_is_never_read():
    t, hidden = some_terms(), torch.zeros(8, dtype=torch.bool)
    results = []
    for w in (torch.zeros(8, dtype=torch.float64), torch.ones(8, dtype=torch.float64)):
        terms = elbo(links=w, known=hidden, pi0=PI0, **t)
        total = (terms["bound"] + terms["link"]).sum()
        results.append((terms["bound"], terms["link"], *torch.autograd.grad(total, t.values())))
    torch.testing.assert_close(results[0], results[1], rtol=0, atol=0)


def test_a_known_edge_reaches_the_link_posterior_by_the_link_term_only():
    t = some_terms()
    terms = elbo(links=torch.ones(8), known=torch.ones(8, dtype=torch.bool), pi0=PI0, **t)
    through_bound = torch.autograd.grad(terms["bound"].sum(), t["link_logit"], allow_unused=True)[0]
    assert through_bound is None or (through_bound == 0).all()
    through_link = torch.autograd.grad(terms["link"].sum(), t["link_logit"])[0]
    torch.testing.assert_close(through_link, 1 - torch.sigmoid(t["link_logit"]), **EXACT)


def test_the_link_term_is_the_log_probability_of_the_label():
    t, w = some_terms(), numbers(1, 0, 1, 1, 0, 0, 1, 0)
    terms = elbo(links=w, known=torch.ones(8, dtype=torch.bool), pi0=PI0, **t)
    expected = Bernoulli(logits=t["link_logit"]).log_prob(w)
    torch.testing.assert_close(terms["link"], expected, **EXACT)
    torch.testing.assert_close(
        terms["bound"], terms["reconstruction"] - terms["kl_linked"] - terms["kl_unlinked"], **EXACT
    )


def test_terms_are_finite_when_the_link_posterior_saturates():
    for dtype in (torch.float32, torch.float64):
        t = {name: value.detach().to(dtype) for name, value in some_terms(4).items()}
        t["link_logit"] = torch.tensor([-1e4, 1e4, -1e4, 1e4], dtype=dtype, requires_grad=True)
        known = torch.tensor([True, True, False, False])
        terms = elbo(links=torch.tensor([1.0, 0.0, 0.0, 0.0]), known=known, pi0=1e-9, **t)
        assert terms["link"][:2].tolist() == [-1e4, -1e4]
        assert terms["bound"].isfinite().all()
        total = (terms["bound"] + terms["link"]).sum()
        assert torch.autograd.grad(total, t["link_logit"])[0].isfinite().all()


def test_the_record_has_the_mean_of_each_term():
    terms = Terms(first=numbers(0, 2), second=numbers(1, 3))
    assert terms.means() == {"first": 1, "second": 2}
    ones = torch.ones(8)
    found = elbo(links=ones, known=ones > 0, pi0=PI0, **some_terms())
    names = ["bound", "reconstruction", "kl_linked", "kl_unlinked", "kl_edge", "link"]
    assert list(found.means()) == names


def test_with_a_fixed_pi_the_bound_has_the_same_value_and_no_gradient_to_it():
    t, known = some_terms(), torch.tensor([True, False] * 4)
    w = numbers(1, 1, 0, 0, 1, 1, 0, 0)
    free, fixed = (elbo(links=w, known=known, pi0=PI0, fixed_pi=f, **t) for f in (False, True))
    assert free.means() == fixed.means()
    logit = t["link_logit"]
    gradient = torch.autograd.grad(free["bound"].sum(), logit, retain_graph=True)[0]
    assert gradient[~known].abs().min() > 0
    assert torch.autograd.grad(fixed["bound"].sum(), logit, allow_unused=True)[0] is None
    gradients = [torch.autograd.grad(terms["link"].sum(), logit)[0] for terms in (free, fixed)]
    torch.testing.assert_close(*gradients, rtol=0, atol=0)


# A pair with one latent dimension, where everything can be integrated on a grid.

AXIS = torch.linspace(-9, 9, 401, dtype=torch.float64)
GRID = torch.cartesian_prod(AXIS, AXIS)  # (401², 2)
CELL = (AXIS[1] - AXIS[0]) ** 2
TARGET = numbers(0.9, -0.3)


def gaussian(mean, covariance):
    return MultivariateNormal(mean, covariance)


def prior(lam):
    return gaussian(numbers(0, 0), torch.stack([numbers(1, lam), numbers(lam, 1)]))


def as_pair(normal):
    """The `PairGaussian` of a Gaussian over (z_i, z_j)."""
    covariance = normal.covariance_matrix
    gamma = covariance[0, 1] / (covariance[0, 0] * covariance[1, 1]).sqrt()
    values = (*normal.loc, covariance[0, 0].log(), covariance[1, 1].log(), gamma)
    return PairGaussian(*(v.view(1, 1) for v in values))


def of_pair(mean_i, mean_j, sigma_i, sigma_j, gamma):
    cross = gamma * sigma_i * sigma_j
    covariance = torch.stack([numbers(sigma_i**2, cross), numbers(cross, sigma_j**2)])
    return gaussian(numbers(mean_i, mean_j), covariance)


def integral(values):
    return values.sum() * CELL


class Toy:
    """One pair with texts of one number each, and the decoder of the model over one dimension."""

    def __init__(self, curved):
        config = PairVHEConfig(
            word_dim=1,
            latent_dim=1,
            structure="none",
            hidden_dim=3,
            precision=PRECISION,
            fixed_target=False,
        )
        self.decoder = GaussianDecoder(config).double()
        self.decoder.decoding.initialise()
        with torch.no_grad():
            self.decoder.decoding.out.bias.zero_()
            if curved:
                self.decoder.decoding.out.weight.copy_(numbers(1.5, -2.0, 0.7))
                self.decoder.decoding.hidden.weight.copy_(numbers(1.0, 2.0, -3.0).view(3, 1))
                self.decoder.decoding.hidden.bias.copy_(numbers(0.5, -1.0, 0.2))
            on_axis = [self._axis(t) for t in TARGET]
        self.log_likelihood = (on_axis[0].view(-1, 1) + on_axis[1].view(1, -1)).flatten()
        self.evidence = [
            integral((prior(lam).log_prob(GRID) + self.log_likelihood).exp()).log()
            for lam in (0.0, LAMBDA)
        ]  # log ∫ p(x|z) p_w(z) dz for w = 0 and w = 1

    def _axis(self, target):
        words = torch.stack([torch.zeros_like(target), target]).view(2, 1)  # of the padding, and x
        one = torch.ones(len(AXIS), 1, dtype=torch.long)
        return self.decoder.log_likelihood(AXIS.view(-1, 1), words, [one])

    def bound(self, q1, q0, pi, w=None):
        terms = elbo(
            links=numbers(0.0 if w is None else w),
            known=torch.tensor([w is not None]),
            link_logit=torch.logit(numbers(pi)),
            reconstruction_linked=integral(q1.log_prob(GRID).exp() * self.log_likelihood).view(1),
            reconstruction_unlinked=integral(q0.log_prob(GRID).exp() * self.log_likelihood).view(1),
            kl_linked=kl_to_prior(as_pair(q1), LAMBDA),
            kl_unlinked=kl_to_prior(as_pair(q0), 0.0),
            pi0=PI0,
        )
        return terms["bound"].item()

    def exact_posterior(self, lam):
        """Of z under p(x|z) = exp(-precision (x - z)²), for the decoder that is not curved."""
        covariance = torch.linalg.inv(
            prior(lam).precision_matrix + 2 * PRECISION * torch.eye(2, dtype=torch.float64)
        )
        return gaussian(covariance @ (2 * PRECISION * TARGET), covariance)

    @property
    def unknown_evidence(self):
        return (PI0 * self.evidence[1].exp() + (1 - PI0) * self.evidence[0].exp()).log().item()

    @property
    def exact_pi(self):
        return (PI0 * self.evidence[1].exp()).item() / math.exp(self.unknown_evidence)


@pytest.fixture(scope="module")
def linear():
    return Toy(curved=False)


@pytest.fixture(scope="module")
def curved():
    return Toy(curved=True)


Q1 = [
    (0.2, 0.1, 0.5, 0.6, 0.7),
    (0.9, -0.3, 0.3, 0.3, 0.0),
    (-1.0, 1.0, 1.1, 0.4, 0.9),
    (0.4, 0.0, 0.44, 0.47, 0.5),
]
Q0 = [(0.3, -0.1, 0.5, 0.5, 0.0), (0.9, -0.3, 0.9, 0.2, 0.0)]
ANY = of_pair(*Q0[0])


def test_with_the_exact_posterior_the_bound_is_the_evidence(linear):
    q1, q0 = linear.exact_posterior(LAMBDA), linear.exact_posterior(0.0)
    assert 0 < as_pair(q1).gamma.item() < 1
    assert linear.bound(q1, ANY, 0.5, w=1) == pytest.approx(linear.evidence[1].item(), abs=1e-8)
    assert linear.bound(ANY, q0, 0.5, w=0) == pytest.approx(linear.evidence[0].item(), abs=1e-8)
    unknown = linear.bound(q1, q0, linear.exact_pi)
    assert unknown == pytest.approx(linear.unknown_evidence, abs=1e-8)


@pytest.mark.parametrize("values", Q1)
def test_the_gap_of_the_bound_is_the_kl_to_the_exact_posterior(linear, values):
    q1 = of_pair(*values)
    gap = linear.evidence[1].item() - linear.bound(q1, ANY, 0.5, w=1)
    assert gap > 1e-3
    assert gap == pytest.approx(kl_divergence(q1, linear.exact_posterior(LAMBDA)).item(), abs=1e-8)


@pytest.mark.parametrize("values", Q0)
def test_the_same_without_a_link(linear, values):
    q0 = of_pair(*values)
    gap = linear.evidence[0].item() - linear.bound(ANY, q0, 0.5, w=0)
    assert gap > 1e-3
    assert gap == pytest.approx(kl_divergence(q0, linear.exact_posterior(0.0)).item(), abs=1e-8)


@pytest.mark.parametrize("pi", [0.01, 0.3, 0.95])
@pytest.mark.parametrize(("one", "other"), list(zip(Q1, Q0 * 2, strict=True)))
def test_with_an_unknown_edge_the_gap_is_the_kl_of_codes_and_edge(linear, one, other, pi):
    q1, q0 = of_pair(*one), of_pair(*other)
    gap = linear.unknown_evidence - linear.bound(q1, q0, pi)
    expected = (
        pi * kl_divergence(q1, linear.exact_posterior(LAMBDA))
        + (1 - pi) * kl_divergence(q0, linear.exact_posterior(0.0))
        + kl_divergence(Bernoulli(pi), Bernoulli(linear.exact_pi))
    )
    assert gap == pytest.approx(expected.item(), abs=1e-6)
    assert gap > 0


def brute_force(toy, q1, q0, pi):
    """Σ_w ∫ q(z, w) log [p(x|z) p(z, w) / q(z, w)] dz (appendix A before it is simplified)."""
    total = 0.0
    for q, share, lam, prior_share in ((q1, pi, LAMBDA, PI0), (q0, 1 - pi, 0.0, 1 - PI0)):
        log_q = q.log_prob(GRID) + math.log(share)
        log_p = prior(lam).log_prob(GRID) + math.log(prior_share) + toy.log_likelihood
        total += integral(log_q.exp() * (log_p - log_q)).item()
    return total


@pytest.mark.parametrize("pi", [0.05, 0.6])
def test_the_bound_of_an_unknown_edge_is_the_one_over_codes_and_edge(curved, pi):
    for one, other in zip(Q1, Q0 * 2, strict=True):
        q1, q0 = of_pair(*one), of_pair(*other)
        assert curved.bound(q1, q0, pi) == pytest.approx(brute_force(curved, q1, q0, pi), abs=1e-7)


def test_with_a_curved_decoder_it_is_still_a_lower_bound(curved):
    gaps = []
    for one, other in zip(Q1, Q0 * 2, strict=True):
        q1, q0 = of_pair(*one), of_pair(*other)
        gaps.append(curved.evidence[1].item() - curved.bound(q1, q0, 0.5, w=1))
        gaps.append(curved.evidence[0].item() - curved.bound(q1, q0, 0.5, w=0))
        gaps += [curved.unknown_evidence - curved.bound(q1, q0, p) for p in (0.01, 0.5, 0.99)]
    assert min(gaps) > 0


def test_the_optimal_edge_posterior_weights_the_bounds_by_the_prior(linear):
    q1, q0 = of_pair(*Q1[0]), of_pair(*Q0[0])
    with_link = linear.bound(q1, q0, 0.5, w=1) + math.log(PI0)
    without = linear.bound(q1, q0, 0.5, w=0) + math.log(1 - PI0)
    best = 1 / (1 + math.exp(without - with_link))
    at_best = linear.bound(q1, q0, best)
    assert at_best == pytest.approx(math.log(math.exp(with_link) + math.exp(without)), abs=1e-9)
    assert all(linear.bound(q1, q0, best + step) < at_best for step in (-0.02, 0.02))


def test_the_edge_term_alone_is_the_bernoulli_kl():
    t = some_terms()
    terms = elbo(links=torch.ones(8), known=torch.zeros(8, dtype=torch.bool), pi0=PI0, **t)
    torch.testing.assert_close(terms["kl_edge"], kl_bernoulli(t["link_logit"], PI0), **EXACT)
