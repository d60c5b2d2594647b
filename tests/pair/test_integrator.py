"""The integrator against its formulas in numpy, and what its outputs may be."""

import numpy as np
import pytest
import torch

from vhe.config import VHEConfig
from vhe.pair.homophily import GAMMA_MOST, LOG_VARIANCE
from vhe.pair.integrator import Integrator

EXACT = {"rtol": 1e-10, "atol": 1e-10}
BATCH = 6
DEFAULT = VHEConfig(word_dim=4, latent_dim=4, structure_dim=4, hidden_dim=7)
PAPER = VHEConfig.paper().replace(word_dim=4, latent_dim=3, structure_dim=5, hidden_dim=7)
CONFIGS = {
    "default": DEFAULT,
    "paper": PAPER,
    "text only": DEFAULT.replace(structure="none"),
    "paper, text only": PAPER.replace(structure="none"),
    "learned, two posteriors": DEFAULT.replace(structure="learned", shared_posterior=False),
    "pair MLP, cosine": PAPER.replace(link_posterior="latent", shared_posterior=True),
    "own MLP, link MLP": DEFAULT.replace(link_posterior="mlp"),
}
each_config = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)


def integrator(config, seed=0, size=0.5):
    module = Integrator(config).double()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(0, size, generator=generator)
    return module


def sides(config, seed=1, size=1.0):
    """Texts and structure embeddings of the two ends: x_i, x_j, h_i, h_j."""
    generator = torch.Generator().manual_seed(seed)
    structure = 0 if config.structure == "none" else config.structure_dim
    dims = (config.word_dim, config.word_dim, structure, structure)
    return [
        size * torch.randn(BATCH, dim, generator=generator, dtype=torch.float64) for dim in dims
    ]


def in_numpy(module, config, x_i, x_j, h_i, h_j):
    """Section 3.2 in numpy; the residual forms as the settings describe them."""
    p = {name: value.detach().numpy() for name, value in module.named_parameters()}
    x_i, x_j, h_i, h_j = (v.numpy() for v in (x_i, x_j, h_i, h_j))

    def layer(name, value):
        return value @ p[f"{name}.weight"].T + p.get(f"{name}.bias", 0)

    def sigmoid(value):
        return 1 / (1 + np.exp(-value))

    def end(x, other_x, h, other_h):
        f = [x, h] if config.residual else [x, other_x, h, other_h]
        hidden = np.tanh(layer("hidden", np.hstack(f)))
        base = np.zeros((len(x), config.latent_dim))
        if config.residual:
            base = layer("text", x)
            if config.structure != "none":
                base = base + layer("structure", h)
        suffixes = ["", "" if config.shared_posterior else "_unlinked"]
        means = [layer("means" + s, hidden) + base for s in suffixes]
        spreads = [np.clip(layer("log_variances" + s, hidden), *LOG_VARIANCE) for s in suffixes]
        return hidden, means, spreads

    hidden_i, means_i, spreads_i = end(x_i, x_j, h_i, h_j)
    hidden_j, means_j, spreads_j = end(x_j, x_i, h_j, h_i)
    both = (hidden_i + hidden_j) / 2
    gamma = GAMMA_MOST * sigmoid(layer("gamma", both))
    if config.link_posterior == "mlp":
        logit = layer("link", both)[:, 0]
    else:
        norms = np.linalg.norm(means_i[0], axis=1) * np.linalg.norm(means_j[0], axis=1)
        cosine = (means_i[0] * means_j[0]).sum(1) / norms
        logit = np.exp(p["link_scale"]) * cosine + p["link_bias"]
    q1 = (means_i[0], means_j[0], spreads_i[0], spreads_j[0], gamma)
    q0 = (means_i[1], means_j[1], spreads_i[1], spreads_j[1])
    return q1, q0, logit


def flat(q):
    return tuple(v for v in vars(q).values() if v is not None)


@each_config
def test_the_posterior_is_that_of_section_3_2(config):
    module, ends = integrator(config), sides(config)
    found = module(*ends)
    q1, q0, logit = in_numpy(module, config, *ends)
    tensors = [tuple(torch.from_numpy(v) for v in q) for q in (q1, q0)]
    torch.testing.assert_close(flat(found.linked), tensors[0], **EXACT)
    torch.testing.assert_close(flat(found.unlinked), tensors[1], **EXACT)
    torch.testing.assert_close(found.link_logit, torch.from_numpy(logit), **EXACT)


@each_config
def test_shapes(config):
    found = integrator(config)(*sides(config))
    assert {tuple(v.shape) for v in flat(found.linked)} == {(BATCH, config.latent_dim)}
    assert {tuple(v.shape) for v in flat(found.unlinked)} == {(BATCH, config.latent_dim)}
    assert found.link_logit.shape == (BATCH,)
    assert found.linked.gamma is not None
    assert found.unlinked.gamma is None


@each_config
def test_swapping_the_pair_swaps_the_posterior(config):
    module, (x_i, x_j, h_i, h_j) = integrator(config), sides(config)
    forth, back = module(x_i, x_j, h_i, h_j), module(x_j, x_i, h_j, h_i)
    for one, other in ((forth.linked, back.linked), (forth.unlinked, back.unlinked)):
        torch.testing.assert_close(one.mean_i, other.mean_j, **EXACT)
        torch.testing.assert_close(one.mean_j, other.mean_i, **EXACT)
        torch.testing.assert_close(one.log_variance_i, other.log_variance_j, **EXACT)
        torch.testing.assert_close(one.log_variance_j, other.log_variance_i, **EXACT)
        assert not torch.allclose(one.mean_i, one.mean_j)
    torch.testing.assert_close(forth.linked.gamma, back.linked.gamma, **EXACT)
    torch.testing.assert_close(forth.link_logit, back.link_logit, **EXACT)


@each_config
@pytest.mark.parametrize("size", [1.0, 1e4])
def test_everything_stays_in_its_range(config, size):
    found = integrator(config, size=10)(*sides(config, size=size))
    gamma, pi = found.linked.gamma, torch.sigmoid(found.link_logit)
    assert gamma.min() >= 0
    assert gamma.max() <= GAMMA_MOST < 1
    assert pi.min() >= 0
    assert pi.max() <= 1
    for q in (found.linked, found.unlinked):
        for spread in (q.log_variance_i, q.log_variance_j):
            assert LOG_VARIANCE[0] <= spread.min()
            assert spread.max() <= LOG_VARIANCE[1]
        assert all(v.isfinite().all() for v in flat(q))


@each_config
def test_the_branches_share_their_margins_where_asked(config):
    found = integrator(config)(*sides(config))
    same = [
        torch.equal(one, other)
        for one, other in zip(flat(found.linked), flat(found.unlinked), strict=False)
    ]
    assert same == [config.shared_posterior] * 4


@pytest.mark.parametrize("name", ["default", "paper"])
def test_only_a_residual_mean_reads_its_own_vertex_alone(name):
    config = CONFIGS[name]
    module, (x_i, x_j, h_i, h_j) = integrator(config), sides(config)
    before = module(x_i, x_j, h_i, h_j)
    after = module(x_i, x_j + 1, h_i, h_j - 1)
    assert torch.equal(before.linked.mean_i, after.linked.mean_i) == config.residual
    assert torch.equal(before.linked.log_variance_i, after.linked.log_variance_i) == config.residual
    assert not torch.allclose(before.linked.mean_j, after.linked.mean_j)
    assert not torch.allclose(before.linked.gamma, after.linked.gamma)
    assert not torch.allclose(before.link_logit, after.link_logit)


def test_without_structure_there_are_no_weights_for_it():
    for config in (CONFIGS["text only"], CONFIGS["paper, text only"]):
        module = Integrator(config)
        ends = 1 if config.residual else 2
        assert module.hidden.in_features == ends * config.word_dim
        assert module.structure is None
    assert Integrator(PAPER).hidden.in_features == 2 * (4 + 5)  # [x~_i; x~_j; h_i; h_j]


@pytest.mark.parametrize(("structure", "share"), [("joint", 0.1), ("none", 1.0)])
def test_residual_means_start_at_the_text_and_the_structure(structure, share):
    config = DEFAULT.replace(structure=structure)
    module, (x_i, x_j, h_i, h_j) = integrator(config), sides(config)
    with torch.no_grad():
        module.means.bias.zero_()
    center = torch.tensor([1.0, -2.0, 0.5, 0.0], dtype=torch.float64)
    module.start(center, scale=0.25)
    found = module(x_i, x_j, h_i, h_j).linked
    for mean, x, h in ((found.mean_i, x_i, h_i), (found.mean_j, x_j, h_j)):
        expected = share * (x - center / 2) / 0.25
        if structure != "none":
            expected = expected + h
        torch.testing.assert_close(mean, expected, **EXACT)
    assert (module.log_variances.bias == -2).all()
    assert (module.gamma.bias == 2).all()


def test_the_paper_starts_without_a_residual():
    module = integrator(PAPER)
    before = module.means.weight.detach().clone()
    module.start(torch.zeros(4, dtype=torch.float64), scale=1.0)
    assert torch.equal(module.means.weight, before)
    assert module.text is None


def test_a_link_starts_likely_where_the_codes_point_the_same_way():
    module = Integrator(DEFAULT)
    module.start(torch.zeros(4), scale=1.0)
    with torch.no_grad():
        module.means.bias.zero_()
    h = torch.tensor([[3.0, 0, 0, 0]])
    zero = torch.zeros(1, 4)
    logits = [module(zero, zero, h, other).link_logit.item() for other in (h / 9, h.roll(1), -h)]
    assert logits == pytest.approx([5, -5, -15], abs=1e-4)


@pytest.mark.parametrize("name", ["default", "paper"])
def test_the_mean_of_a_code_mixes_the_branches(name):
    config = CONFIGS[name]
    found = integrator(config)(*sides(config))
    share = torch.linspace(0, 1, BATCH, dtype=torch.float64)
    for mixed, one, other in (
        (found.mean_i(share), found.linked.mean_i, found.unlinked.mean_i),
        (found.mean_j(share), found.linked.mean_j, found.unlinked.mean_j),
    ):
        expected = torch.stack(
            [p * a + (1 - p) * b for p, a, b in zip(share, one, other, strict=True)]
        )
        torch.testing.assert_close(mixed, expected, **EXACT)
