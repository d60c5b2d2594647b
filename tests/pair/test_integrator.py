"""The integrator against its formulas in numpy, and the range of its outputs."""

import numpy as np
import pytest
import torch

from vhe.config import PairVHEConfig
from vhe.pair.homophily import GAMMA_MOST, LOG_VARIANCE
from vhe.pair.integrator import Integrator, text_code
from vhe.text.lsa import CENTRE_SHARE

EXACT = {"rtol": 1e-10, "atol": 1e-10}
BATCH = 6
DEFAULT = PairVHEConfig(word_dim=4, latent_dim=4, structure_dim=4, hidden_dim=7)
PAPER = PairVHEConfig.paper().replace(word_dim=4, latent_dim=3, structure_dim=5, hidden_dim=7)
CONFIGS = {
    "default": DEFAULT,
    "paper": PAPER,
    "text only": DEFAULT.replace(structure="none"),
    "paper, text only": PAPER.replace(structure="none"),
    "two posteriors": DEFAULT.replace(shared_posterior=False),
    "pair MLP, cosine": PAPER.replace(link_posterior="text", shared_posterior=True),
    "own MLP, link MLP": DEFAULT.replace(link_posterior="mlp"),
}
each_config = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)


def integrator(config, seed=0, size=0.5):
    module = Integrator(config).double()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for tensor in (*module.parameters(), *module.buffers()):
            tensor.normal_(0, size, generator=generator)
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
    p = {name: value.detach().numpy() for name, value in module.state_dict().items()}
    x_i, x_j, h_i, h_j = (v.numpy() for v in (x_i, x_j, h_i, h_j))

    def layer(name, value):
        return value @ p[f"{name}.weight"].T + p.get(f"{name}.bias", 0)

    def sigmoid(value):
        return 1 / (1 + np.exp(-value))

    def code(x):
        unit = x / np.sqrt((x**2).sum(axis=1, keepdims=True))
        return np.sqrt(x.shape[1]) * (unit - CENTRE_SHARE * p["centre"])

    def end(x, other_x, h, other_h):
        f = [code(x), h] if config.residual else [x, other_x, h, other_h]
        hidden = np.tanh(layer("hidden", np.hstack(f)))
        base = np.zeros((len(x), config.latent_dim))
        if config.residual:
            base = code(x) @ p["text.weight"].T
            if config.structure != "none":
                base = base + h
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
        m_i, m_j = code(x_i), code(x_j)
        norms = np.linalg.norm(m_i, axis=1) * np.linalg.norm(m_j, axis=1)
        logit = np.exp(p["log_link_scale"]) * (m_i * m_j).sum(1) / norms + p["link_bias"]
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
    forward, back = module(x_i, x_j, h_i, h_j), module(x_j, x_i, h_j, h_i)
    for one, other in ((forward.linked, back.linked), (forward.unlinked, back.unlinked)):
        torch.testing.assert_close(one.mean_i, other.mean_j, **EXACT)
        torch.testing.assert_close(one.mean_j, other.mean_i, **EXACT)
        torch.testing.assert_close(one.log_variance_i, other.log_variance_j, **EXACT)
        torch.testing.assert_close(one.log_variance_j, other.log_variance_i, **EXACT)
        assert not torch.allclose(one.mean_i, one.mean_j)
    torch.testing.assert_close(forward.linked.gamma, back.linked.gamma, **EXACT)
    torch.testing.assert_close(forward.link_logit, back.link_logit, **EXACT)


@each_config
@pytest.mark.parametrize("size", [1.0, 1e4])
def test_outputs_stay_in_their_ranges(config, size):
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
def test_the_branches_share_their_marginals_if_so_set(config):
    found = integrator(config)(*sides(config))
    same = [
        torch.equal(one, other)
        for one, other in zip(flat(found.linked), flat(found.unlinked), strict=False)
    ]
    assert same == [config.shared_posterior] * 4


@pytest.mark.parametrize("name", ["default", "paper"])
def test_only_a_residual_mean_depends_on_its_own_vertex_alone(name):
    config = CONFIGS[name]
    module, (x_i, x_j, h_i, h_j) = integrator(config), sides(config)
    before = module(x_i, x_j, h_i, h_j)
    after = module(x_i, x_j + 1, h_i, h_j - 1)
    assert torch.equal(before.linked.mean_i, after.linked.mean_i) == config.residual
    assert torch.equal(before.linked.log_variance_i, after.linked.log_variance_i) == config.residual
    assert not torch.allclose(before.linked.mean_j, after.linked.mean_j)
    assert not torch.allclose(before.linked.gamma, after.linked.gamma)
    assert not torch.allclose(before.link_logit, after.link_logit)


def test_the_hidden_layer_has_the_inputs_of_the_paper():
    for config in (CONFIGS["text only"], CONFIGS["paper, text only"]):
        module = Integrator(config)
        ends = 1 if config.residual else 2
        assert module.hidden.in_features == ends * config.word_dim
    assert Integrator(PAPER).hidden.in_features == 2 * (4 + 5)  # [x~_i; x~_j; h_i; h_j]


@pytest.mark.parametrize("structure", ["learned", "none"])
def test_residual_means_are_initially_text_code_plus_structure(structure):
    config = DEFAULT.replace(structure=structure, shared_posterior=False)
    module, (x_i, x_j, h_i, h_j) = integrator(config), sides(config)
    with torch.no_grad():
        module.means.bias.zero_()
        module.means_unlinked.bias.zero_()
    centre = torch.tensor([0.5, -0.2, 0.1, 0.0], dtype=torch.float64)
    module.initialise(centre)
    found = module(x_i, x_j, h_i, h_j)
    for q in (found.linked, found.unlinked):
        for mean, x, h in ((q.mean_i, x_i, h_i), (q.mean_j, x_j, h_j)):
            expected = 2 * (x / x.square().sum(dim=1, keepdim=True).sqrt() - CENTRE_SHARE * centre)
            if structure != "none":
                expected = expected + h
            torch.testing.assert_close(mean, expected, **EXACT)
    assert (module.log_variances.bias == -2).all()
    assert (module.gamma.bias == 2).all()


def test_the_paper_has_no_residual():
    module = integrator(PAPER)
    before = module.means.weight.detach().clone()
    module.initialise(torch.zeros(4, dtype=torch.float64))
    assert torch.equal(module.means.weight, before)
    assert not hasattr(module, "text")


def test_a_link_is_initially_likely_if_the_texts_agree():
    module = Integrator(DEFAULT)
    module.initialise(torch.zeros(4))
    x, h = torch.tensor([[3.0, 0, 0, 0]]), torch.randn(1, 4, generator=torch.Generator())
    logits = [module(x, other, h, h).link_logit.item() for other in (x / 9, x.roll(1), -x)]
    assert logits == pytest.approx([5, -5, -15], abs=1e-4)


def test_the_code_of_an_empty_text_is_zero():
    centre = torch.tensor([0.5, -0.2, 0.1])
    texts = torch.tensor([[0.0, 0, 0], [1, 2, 2]], requires_grad=True)
    codes = text_code(texts, centre)
    assert (codes[0] == 0).all()
    expected = 3**0.5 * (torch.tensor([1, 2, 2]) / 3 - CENTRE_SHARE * centre)
    torch.testing.assert_close(codes[1], expected)
    assert torch.autograd.grad(codes.sum(), texts)[0].isfinite().all()


def test_with_a_fixed_length_the_code_is_linear_in_the_text():
    centre = torch.tensor([0.5, -0.2, 0.1], dtype=torch.float64)
    text = torch.tensor([[1.0, 2, 2]], dtype=torch.float64, requires_grad=True)
    direction = torch.tensor([0.3, -1.0, 0.7], dtype=torch.float64)
    free, fixed = (
        torch.autograd.grad(text_code(text, centre, fixed)[0] @ direction, text)[0]
        for fixed in (False, True)
    )
    torch.testing.assert_close(fixed[0], 3**0.5 * direction / 3)
    along = float(free[0] @ text[0].detach())
    assert along == pytest.approx(0, abs=1e-12)  # a longer text has the same code
