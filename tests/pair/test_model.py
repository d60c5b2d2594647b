"""The whole pair VAE: put together by hand from its parts, and what must hold for all of it."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from torch.distributions import Bernoulli, MultivariateNormal, kl_divergence
from torch.nn.functional import conv1d

from vhe.config import VHEConfig
from vhe.data.sampling import Pairs
from vhe.data.text import PADDING, Corpus
from vhe.graph.posterior import MaskedPosterior
from vhe.pair.decoder import MultinomialDecoder
from vhe.pair.elbo import partner_log_probability
from vhe.pair.homophily import GAMMA_MOST
from vhe.pair.model import PairVAE, TextPairs

EXACT = {"rtol": 1e-9, "atol": 1e-9}
CPU = torch.device("cpu")
PI0 = 0.2
TEXTS = [
    "cats purr and cats sleep",
    "dogs bark and run",
    "",
    "cats",
    "stars shine and planets turn around",
    "planets turn",
    "run dogs run",
    "sleep",
]
CORPUS = Corpus.build(TEXTS, min_count=1, max_words=6)
SIZES = {
    "word_dim": 6,
    "latent_dim": 6,
    "structure_dim": 6,
    "hidden_dim": 7,
    "kernels": 5,
    "kernel_width": 3,
    "max_words": 6,
}
DEFAULT = VHEConfig(**SIZES)
PAPER = VHEConfig.paper().replace(**SIZES | {"latent_dim": 4, "structure_dim": 5})
CONFIGS = {
    "default": DEFAULT,
    "paper": PAPER,
    "words": DEFAULT.replace(decoder="multinomial"),
    "words of the paper": PAPER.replace(decoder="multinomial"),
    "two posteriors": DEFAULT.replace(shared_posterior=False, target="max"),
    "text only": DEFAULT.replace(structure="none"),
    "learned": DEFAULT.replace(structure="learned", link_posterior="mlp"),
}
each_config = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
PAIRS = Pairs(
    i=np.array([0, 4, 1, 2, 6, 5, 2]),
    j=np.array([1, 5, 3, 0, 7, 0, 2]),
    links=np.array([1, 1, 0, 0, 1, 0, 1], dtype=np.float32),
    known=np.array([True, False, True, False, True, True, False]),
)


def shaken(config, seed=0, corpus=CORPUS, size=0.3):
    """A model that has started and then moved away from what is special about a start."""
    model = PairVAE(config, len(corpus.vocabulary), len(corpus), PI0)
    model.start(corpus, seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += size * torch.randn(parameter.shape, generator=generator)
        model.words.weight[PADDING] = 0
    return model.double()


def batch_of(pairs=PAIRS, corpus=CORPUS):
    return TextPairs.of(pairs, corpus, CPU)


def noise(seed=0):
    return torch.Generator().manual_seed(seed)


def swapped(pairs):
    return dataclasses.replace(pairs, i=pairs.j, j=pairs.i)


def flat(q):
    return [v for v in vars(q).values() if v is not None]


def test_a_batch_is_read_from_the_corpus():
    batch = batch_of()
    assert batch.i.tolist() == PAIRS.i.tolist()
    assert batch.tokens_j.tolist() == CORPUS.padded(PAIRS.j).tolist()
    assert batch.tokens_i.shape == (7, 6)
    assert batch.links.dtype == torch.float32
    assert batch.known.dtype == torch.bool


def words_of(model, vertex):
    """The word vectors of a text without any padding: (L, d_w)."""
    tokens = CORPUS.tokens[CORPUS.offsets[vertex] : CORPUS.offsets[vertex + 1]]
    return model.words.weight[torch.tensor(tokens.tolist(), dtype=torch.long)], tokens


def aligned_by_hand(x, context, kernels):
    """x~ of one text beside one other (appendix B): (1, d_w)."""
    if len(x) == 0:
        return x.sum(dim=0, keepdim=True)
    scores = torch.zeros(len(x), dtype=torch.float64)
    if len(context):
        used = kernels[:, :, : len(context)].transpose(1, 2)  # (K, C, width)
        features = conv1d((x @ context.T).T.unsqueeze(0), used, padding=kernels.shape[1] // 2)
        scores = torch.tanh(features[0]).amax(dim=0)
    return (torch.softmax(scores, dim=0) @ x).unsqueeze(0)


def log_likelihood_by_hand(model, z, vertex):
    config = model.config
    decoded = model.decoder.decoding(z.unsqueeze(0))[0]
    x, tokens = words_of(model, vertex)
    if isinstance(model.decoder, MultinomialDecoder):
        logits = model.words.weight[1:] @ decoded + model.decoder.bias
        return sum((torch.log_softmax(logits, dim=0)[t - 1] for t in tokens), 0 * z.sum())
    if len(tokens) == 0:
        target = torch.zeros(config.word_dim, dtype=torch.float64)
    else:
        target = x.mean(dim=0) if config.target == "mean" else x.amax(dim=0)
    if config.fixed_target:
        target = (target - model.decoder.center) / model.decoder.scale
    return -config.precision * ((target - decoded) ** 2).sum()


def gaussian(q, row):
    mean = torch.stack([q.mean_i[row], q.mean_j[row]], dim=1)  # (d, 2)
    sigma_i, sigma_j = (v[row].exp().sqrt() for v in (q.log_variance_i, q.log_variance_j))
    cross = (0 if q.gamma is None else q.gamma[row]) * sigma_i * sigma_j
    covariance = torch.stack([sigma_i**2, cross, cross, sigma_j**2], dim=1).view(-1, 2, 2)
    return MultivariateNormal(mean, covariance)


def prior(lam):
    covariance = torch.tensor([[1, lam], [lam, 1]], dtype=torch.float64)
    return MultivariateNormal(torch.zeros(2, dtype=torch.float64), covariance)


def one_by_one(model, pairs, generator):
    """The objective of each pair from section 3 and appendix A, without a batch or padding."""
    config, d = model.config, model.config.latent_dim
    draws = [
        torch.randn(len(pairs), d, generator=generator, dtype=torch.float64)
        for _ in range(2 if config.shared_posterior else 4)
    ]
    results = []
    for row, (i, j) in enumerate(zip(pairs.i, pairs.j, strict=True)):
        (x_i, _), (x_j, _) = words_of(model, i), words_of(model, j)
        h, kernels = model.structure.weight, model.alignment.kernels
        text_i, text_j = aligned_by_hand(x_i, x_j, kernels), aligned_by_hand(x_j, x_i, kernels)
        posterior = model.integrator(text_i, text_j, h[i : i + 1], h[j : j + 1])
        branches = []
        for q, lam, epsilon in (
            (posterior.linked, config.homophily, draws[:2]),
            (posterior.unlinked, 0.0, draws[-2:]),
        ):
            normal = gaussian(q, 0)
            factor = torch.linalg.cholesky(normal.covariance_matrix)
            if config.shared_posterior:  # one sample is_available both branches
                factor = torch.linalg.cholesky(gaussian(posterior.linked, 0).covariance_matrix)
            noise = torch.stack([e[row] for e in epsilon], dim=1).unsqueeze(2)
            z = normal.loc + (factor @ noise).squeeze(2)  # (d, 2)
            seen = sum(log_likelihood_by_hand(model, z[:, k], v) for k, v in enumerate((i, j)))
            branches.append(seen - kl_divergence(normal, prior(lam)).sum())
        pi = torch.sigmoid(posterior.link_logit[0])
        w, known = float(pairs.links[row]), bool(pairs.known[row])
        share = torch.tensor(w, dtype=torch.float64) if known else pi
        bound = share * branches[0] + (1 - share) * branches[1]
        if known:
            link = Bernoulli(pi).log_prob(torch.tensor(w, dtype=torch.float64))
        else:
            bound = bound - kl_divergence(Bernoulli(pi), Bernoulli(0 * pi.detach() + PI0))
            link = torch.zeros_like(pi)
        results.append((bound, link, posterior.linked))
    return results


@each_config
def test_the_loss_is_that_of_each_pair_on_its_own(config):
    model = shaken(config)
    terms = model.loss([batch_of()], noise(5))
    by_hand = one_by_one(model, PAIRS, noise(5))
    bound, link = (torch.stack([r[k] for r in by_hand]) for k in (0, 1))
    torch.testing.assert_close(terms.bound, bound, **EXACT)
    torch.testing.assert_close(terms.link, link, **EXACT)
    partner = torch.zeros((), dtype=torch.float64)
    if config.link_posterior == "latent":
        linked = np.flatnonzero(PAIRS.known & (PAIRS.links == 1))
        links = [(int(PAIRS.i[k]), int(PAIRS.j[k])) for k in linked]
        codes = torch.zeros(1 + max(map(max, links)), config.latent_dim, dtype=torch.float64)
        for k, (i, j) in zip(linked, links, strict=True):
            codes[i] = codes[i] + by_hand[k][2].mean_i.squeeze(0)
            codes[j] = codes[j] + by_hand[k][2].mean_j.squeeze(0)
        scale = model.integrator.link_scale.exp()
        partner = partner_log_probability(codes, torch.tensor(links), scale)
    torch.testing.assert_close(terms.partner, partner, **EXACT)
    expected = -bound - config.link_weight * (link + partner)
    torch.testing.assert_close(model.objective(terms), expected, **EXACT)


def test_the_paper_has_the_bound_alone_as_its_objective():
    model = shaken(PAPER)
    terms = model.loss([batch_of()], noise())
    torch.testing.assert_close(model.objective(terms), -terms.bound, rtol=0, atol=0)
    assert (terms.link[torch.from_numpy(PAIRS.known)] != 0).all()


@each_config
def test_the_gradient_of_the_loss_is_that_of_each_pair_on_its_own(config):
    model = shaken(config)
    learned = [p for p in model.parameters() if p.requires_grad and p is not model.structure.weight]
    terms = model.loss([batch_of()], noise(6))
    by_hand = torch.stack([r[0] + r[1] for r in one_by_one(model, PAIRS, noise(6))])
    found, expected = (
        torch.autograd.grad(total, learned, allow_unused=True)
        for total in ((terms.bound + terms.link).sum(), by_hand.sum())
    )
    detached = config.decoder == "gaussian" and config.fixed_target
    for parameter, one, other in zip(learned, found, expected, strict=True):
        if parameter is model.words.weight:
            if detached:  # by hand the target passes a gradient on
                continue
            one, other = one[1:], other[1:]
        torch.testing.assert_close(one, other, **EXACT)


@each_config
def test_swapping_the_ends_swaps_the_posterior_and_keeps_the_kl(config):
    model = shaken(config)
    forth, back = model.infer([batch_of()]), model.infer([batch_of(swapped(PAIRS))])
    for one, other in (
        (forth.posterior.linked, back.posterior.linked),
        (forth.posterior.unlinked, back.posterior.unlinked),
    ):
        torch.testing.assert_close(one.mean_i, other.mean_j, **EXACT)
        torch.testing.assert_close(one.mean_j, other.mean_i, **EXACT)
        torch.testing.assert_close(one.log_variance_i, other.log_variance_j, **EXACT)
        torch.testing.assert_close(one.log_variance_j, other.log_variance_i, **EXACT)
    gamma = (forth.posterior.linked.gamma, back.posterior.linked.gamma)
    torch.testing.assert_close(*gamma, **EXACT)
    torch.testing.assert_close(forth.posterior.link_logit, back.posterior.link_logit, **EXACT)
    torch.testing.assert_close(forth.weights[0][0], back.weights[0][1], **EXACT)
    one, other = (model.loss([batch_of(p)], noise()) for p in (PAIRS, swapped(PAIRS)))
    for name in ("kl_linked", "kl_unlinked", "kl_edge", "link", "partner"):
        torch.testing.assert_close(getattr(one, name), getattr(other, name), **EXACT)


@each_config
def test_shapes_and_ranges(config):
    found = shaken(config, size=2.0).infer([batch_of()])
    d = config.latent_dim
    for q in (found.posterior.linked, found.posterior.unlinked):
        assert {tuple(v.shape) for v in flat(q)} == {(7, d)}
    gamma = found.posterior.linked.gamma
    assert gamma.min() >= 0
    assert gamma.max() <= GAMMA_MOST
    pi = torch.sigmoid(found.posterior.link_logit)
    assert ((pi >= 0) & (pi <= 1)).all()
    ((weight_i, weight_j),) = found.weights
    assert weight_i.shape == (7, 6)
    for weight, vertices in ((weight_i, PAIRS.i), (weight_j, PAIRS.j)):
        assert [bool(m) for m in weight.sum(dim=1) > 0] == [bool(TEXTS[v]) for v in vertices]


@each_config
def test_branches_share_their_margins_where_asked(config):
    posterior = shaken(config).infer([batch_of()]).posterior
    same = [
        torch.equal(one, other)
        for one, other in zip(flat(posterior.linked), flat(posterior.unlinked), strict=False)
    ]
    assert same == [config.shared_posterior] * 4


@each_config
def test_a_batch_may_come_in_parts(config):
    model, rows = shaken(config), np.array([3, 0, 6, 2, 1, 5, 4])
    whole = model.loss([batch_of(PAIRS[rows])], noise())
    parts = model.loss([batch_of(PAIRS[rows[:2]]), batch_of(PAIRS[rows[2:]])], noise())
    for name in ("kl_linked", "kl_unlinked", "kl_edge", "link", "partner"):
        torch.testing.assert_close(getattr(whole, name), getattr(parts, name), **EXACT)
    assert parts.reconstruction.shape == (7,)


@each_config
def test_the_posterior_reads_no_edge_and_the_loss_no_hidden_one(config):
    model = shaken(config)
    other = dataclasses.replace(PAIRS, links=np.where(PAIRS.known, PAIRS.links, 1 - PAIRS.links))
    other = dataclasses.replace(other, links=other.links.astype(np.float32))
    one, two = (model.objective(model.loss([batch_of(p)], noise())) for p in (PAIRS, other))
    assert torch.equal(one, two)
    turned = dataclasses.replace(PAIRS, links=1 - PAIRS.links, known=~PAIRS.known)
    for a, b in zip(
        flat(model.infer([batch_of()]).posterior.linked),
        flat(model.infer([batch_of(turned)]).posterior.linked),
        strict=True,
    ):
        assert torch.equal(a, b)


@each_config
def test_every_weight_learns_but_the_padding_and_a_table_that_is_made(config):
    model = shaken(config)
    table = model.structure.weight
    assert table.requires_grad == (config.structure == "learned")
    assert table.shape == (8, 0 if config.structure == "none" else config.structure_dim)
    model.objective(model.loss([batch_of()], noise())).sum().backward()
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            assert parameter.grad is not None, name
            gradient = parameter.grad.to_dense()
            assert gradient.isfinite().all(), name
            assert gradient.abs().sum() > 0, name
    assert (model.words.weight.grad[PADDING] == 0).all()
    if config.structure == "learned":
        used = sorted(set(PAIRS.i.tolist()) | set(PAIRS.j.tolist()))
        assert table.grad.is_sparse
        assert table.grad.coalesce().indices()[0].tolist() == used


@pytest.mark.parametrize("name", ["default", "learned", "two posteriors"])
def test_structure_can_be_given_instead_of_the_table(name):
    model = shaken(CONFIGS[name])
    table = model.structure.weight.detach().clone()
    same = model.infer([batch_of()], table.__getitem__).posterior
    torch.testing.assert_close(
        flat(same.linked), flat(model.infer([batch_of()]).posterior.linked), **EXACT
    )
    given = (table + 1).requires_grad_()
    moved = model.infer([batch_of()], given.__getitem__).posterior
    assert not torch.allclose(moved.linked.mean_i, same.linked.mean_i)
    links = torch.tensor([[0, 1], [2, 5], [5, 7]])
    terms = model.loss([batch_of()], noise(), MaskedPosterior(given, links))
    if model.config.link_posterior == "latent":  # the ends of the links left out are asked for
        expected = partner_log_probability(given, links, model.integrator.link_scale.exp())
        torch.testing.assert_close(terms.partner, expected, **EXACT)
    torch.testing.assert_close(
        terms.kl_linked[0],
        kl_divergence(gaussian(moved.linked, 0), prior(model.config.homophily)).sum(),
        **EXACT,
    )
    gradient = torch.autograd.grad(terms.bound.sum(), given)[0]
    assert gradient.abs().sum(dim=1).ne(0).tolist() == [True] * 8


def test_text_alone_does_not_see_the_vertex():
    model = shaken(CONFIGS["text only"])
    posterior = model.infer([batch_of()]).posterior
    elsewhere = dataclasses.replace(batch_of(), i=torch.zeros(7, dtype=torch.long))
    assert torch.equal(model.infer([elsewhere]).posterior.linked.mean_i, posterior.linked.mean_i)


def test_no_gradient_goes_into_a_fixed_target_and_some_into_another():
    for fixed in (True, False):
        model = shaken(DEFAULT.replace(fixed_target=fixed))
        target = model.decoder.target(model.words.weight, [batch_of().tokens_i])
        assert target.requires_grad == (not fixed)


FEW = {
    "empty and one word": ["", "a", "", "b a", "a"],
    "one word everywhere": ["a", "a", "a", "a", "a"],
    "all but one empty": ["", "", "", "", "a b c"],
}


@pytest.mark.parametrize("texts", FEW.values(), ids=FEW)
@pytest.mark.parametrize("decoder", ["gaussian", "multinomial"])
@pytest.mark.parametrize("config", [DEFAULT, PAPER], ids=["default", "paper"])
def test_the_loss_is_finite_where_there_is_hardly_any_text(config, decoder, texts):
    corpus = Corpus.build(texts, min_count=1)
    model = PairVAE(config.replace(decoder=decoder), len(corpus.vocabulary), 5, PI0)
    model.start(corpus, 0)
    pairs = Pairs(
        np.array([0, 0, 1, 3, 0]),
        np.array([1, 2, 4, 2, 4]),
        np.array([1, 1, 0, 1, 0], dtype=np.float32),
        np.array([True, True, True, False, False]),
    )
    terms = model.loss([batch_of(pairs, corpus)], noise())
    assert all(math.isfinite(v) for v in terms.means().values())
    model.objective(terms).sum().backward()
    for parameter in model.parameters():
        if parameter.grad is not None:
            assert parameter.grad.to_dense().isfinite().all()


def test_the_gaussian_loss_is_finite_without_any_word():
    corpus = Corpus.build(["", "", ""])
    model = PairVAE(DEFAULT, 0, 3, PI0)
    model.start(corpus, 0)
    pairs = Pairs(np.array([0]), np.array([1]), np.ones(1, np.float32), np.array([True]))
    terms = model.loss([batch_of(pairs, corpus)], noise())
    assert all(math.isfinite(v) for v in terms.means().values())


def state(config, seed, before=0):
    torch.manual_seed(before)  # what layers are made with must not matter
    model = PairVAE(config, len(CORPUS.vocabulary), len(CORPUS), PI0)
    model.start(CORPUS, seed)
    return model.state_dict()


@each_config
def test_a_start_is_a_function_of_corpus_and_seed(config):
    one, same, other = state(config, 1, before=1), state(config, 1, before=2), state(config, 2)
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["alignment.kernels"], other["alignment.kernels"])
    assert all(value.isfinite().all() for value in one.values())


@pytest.mark.parametrize("target", ["mean", "max"])
@pytest.mark.parametrize("name", ["default", "words"])
def test_targets_start_centred_at_the_scale_of_the_prior(name, target):
    config = CONFIGS[name].replace(target=target)
    model = PairVAE(config, len(CORPUS.vocabulary), len(CORPUS), PI0)
    model.start(CORPUS, 0)
    if config.decoder == "multinomial":
        assert not hasattr(model.decoder, "center")
        return
    tokens = torch.from_numpy(CORPUS.padded(np.arange(8)))
    targets = model.decoder.target(model.words.weight, [tokens])
    torch.testing.assert_close(targets.mean(dim=0), torch.zeros(6), atol=1e-5, rtol=0)
    assert targets.square().mean().item() == pytest.approx(1, rel=1e-4)


def test_random_words_start_at_their_scale_with_nothing_for_padding():
    config = PAPER.replace(word_dim=200)
    model = PairVAE(config, len(CORPUS.vocabulary), len(CORPUS), PI0)
    model.start(CORPUS, 0)
    assert (model.words.weight[PADDING] == 0).all()
    assert model.words.weight[1:].std().item() == pytest.approx(0.3, rel=0.05)
    assert model.structure.weight.std().item() == pytest.approx(0.01, rel=0.3)


AXIS = torch.linspace(-7, 7, 281, dtype=torch.float64)
GRID = torch.cartesian_prod(AXIS, AXIS)


@pytest.mark.parametrize("decoder", ["gaussian", "multinomial"])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("config", [DEFAULT, PAPER], ids=["default", "paper"])
def test_the_bound_lies_below_the_evidence(config, known, decoder):
    """log p(x_i, x_j | w), or log p(x_i, x_j) where w is unknown, by numerical integration."""
    config = config.replace(
        decoder=decoder, homophily=0.7, latent_dim=1, word_dim=1, structure_dim=1
    )
    model, count = shaken(config), 1000
    likelihood = torch.zeros(len(GRID), dtype=torch.float64)
    pair = batch_of(Pairs(np.array([0]), np.array([5]), np.ones(1, np.float32), np.ones(1, bool)))
    with torch.no_grad():
        for column, tokens in ((0, pair.tokens_i), (1, pair.tokens_j)):
            tokens = tokens.expand(len(AXIS), -1)
            words = model.words.weight
            on_axis = model.decoder.log_likelihood(AXIS.view(-1, 1), words, [tokens])
            likelihood += on_axis[torch.arange(len(GRID)) // [281, 1][column] % 281]
    evidence = {
        lam: torch.logsumexp(prior(lam).log_prob(GRID) + likelihood, 0)
        + 2 * math.log(AXIS[1] - AXIS[0])
        for lam in (0.7, 0.0)
    }
    mixture = (PI0 * evidence[0.7].exp() + (1 - PI0) * evidence[0.0].exp()).log()
    for w, exact in ((1.0, evidence[0.7]), (0.0, evidence[0.0])):
        many = Pairs(
            np.zeros(count, np.int64),
            np.full(count, 5),
            np.full(count, w, np.float32),
            np.full(count, known),
        )
        with torch.no_grad():
            bound = model.loss([batch_of(many)], noise()).bound
        error = bound.std() / count**0.5
        assert bound.mean() + 4 * error < (exact if known else mixture)
