"""The pair VAE as a whole: against its parts one pair at a time, and its invariants."""

import copy
import dataclasses
import math

import numpy as np
import pytest
import torch
from torch.distributions import Bernoulli, MultivariateNormal, kl_divergence
from torch.nn.functional import conv1d

from vhe.config import PairVHEConfig
from vhe.data.sampling import Pairs
from vhe.data.text import PADDING, Corpus
from vhe.pair.decoder import MultinomialDecoder
from vhe.pair.homophily import GAMMA_MOST
from vhe.pair.integrator import text_code
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
DEFAULT = PairVHEConfig(**SIZES)
PAPER = PairVHEConfig.paper().replace(**SIZES | {"latent_dim": 4, "structure_dim": 5})
CONFIGS = {
    "default": DEFAULT,
    "paper": PAPER,
    "words": DEFAULT.replace(decoder="multinomial"),
    "words of the paper": PAPER.replace(decoder="multinomial"),
    "two posteriors": DEFAULT.replace(shared_posterior=False, target="max"),
    "text only": DEFAULT.replace(structure="none"),
    "MLP for links": DEFAULT.replace(link_posterior="mlp"),
}
each_config = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
PAIRS = Pairs(
    i=np.array([0, 4, 1, 2, 6, 5, 2]),
    j=np.array([1, 5, 3, 0, 7, 0, 2]),
    links=np.array([1, 1, 0, 0, 1, 0, 1], dtype=np.float32),
    known=np.array([True, False, True, False, True, True, False]),
)


def shaken(config, seed=0, corpus=CORPUS, size=0.3):
    """An initialised model whose weights were then moved by random noise."""
    model = PairVAE(config, len(corpus.vocabulary), len(corpus), PI0)
    model.initialise(corpus, seed)
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
    """The word vectors of a text without padding: (L, d_w)."""
    tokens = CORPUS.tokens[CORPUS.offsets[vertex] : CORPUS.offsets[vertex + 1]]
    return model.words.weight[torch.tensor(tokens.tolist(), dtype=torch.long)], tokens


def pooled_by_hand(x, tokens, how):
    """The target of a text with word vectors x (L, d_w)."""
    if how == "max":
        return x.amax(dim=0)
    weights = {t: 1 + math.log(tokens.tolist().count(t)) for t in set(tokens.tolist())}
    rows = {t: x[tokens.tolist().index(t)] for t in weights}
    return sum(weights[t] * rows[t] for t in weights) / sum(weights.values())


def aligned_by_hand(x, context, kernels):
    """x~ of one text in the context of another (appendix B): (1, d_w)."""
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
        target = pooled_by_hand(x, tokens, config.target)
    if config.fixed_target:
        target = text_code(target.unsqueeze(0), model.decoder.centre)[0]
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
        text_i = aligned_by_hand(x_i, x_j, kernels[0])
        text_j = aligned_by_hand(x_j, x_i, kernels[1])
        posterior = model.integrator(text_i, text_j, h[i : i + 1], h[j : j + 1])
        branches = []
        for q, lam, epsilon in (
            (posterior.linked, config.homophily, draws[:2]),
            (posterior.unlinked, 0.0, draws[-2:]),
        ):
            normal = gaussian(q, 0)
            factor = torch.linalg.cholesky(normal.covariance_matrix)
            if config.shared_posterior:  # one sample for both branches
                factor = torch.linalg.cholesky(gaussian(posterior.linked, 0).covariance_matrix)
            noise = torch.stack([e[row] for e in epsilon], dim=1).unsqueeze(2)
            z = normal.loc + (factor @ noise).squeeze(2)  # (d, 2)
            total = sum(log_likelihood_by_hand(model, z[:, k], v) for k, v in enumerate((i, j)))
            branches.append(total - kl_divergence(normal, prior(lam)).sum())
        free_pi = torch.sigmoid(posterior.link_logit[0])
        pi = free_pi.detach() if config.link_posterior == "text" else free_pi
        w, known = float(pairs.links[row]), bool(pairs.known[row])
        share = torch.tensor(w, dtype=torch.float64) if known else pi
        bound = share * branches[0] + (1 - share) * branches[1]
        if known:
            link = Bernoulli(free_pi).log_prob(torch.tensor(w, dtype=torch.float64))
        else:
            bound = bound - kl_divergence(Bernoulli(pi), Bernoulli(0 * pi.detach() + PI0))
            link = torch.zeros_like(pi)
        results.append((bound, link))
    return results


@each_config
def test_the_loss_is_that_of_each_pair_on_its_own(config):
    model = shaken(config)
    terms = model.loss([batch_of()], noise(5))
    by_hand = one_by_one(model, PAIRS, noise(5))
    bound, link = (torch.stack([r[k] for r in by_hand]) for k in (0, 1))
    torch.testing.assert_close(terms["bound"], bound, **EXACT)
    torch.testing.assert_close(terms["link"], link, **EXACT)
    expected = -bound - config.link_weight * link
    torch.testing.assert_close(model.objective(terms), expected, **EXACT)


def test_the_objective_of_the_paper_is_the_bound_alone():
    model = shaken(PAPER)
    terms = model.loss([batch_of()], noise())
    torch.testing.assert_close(model.objective(terms), -terms["bound"], rtol=0, atol=0)
    assert (terms["link"][torch.from_numpy(PAIRS.known)] != 0).all()


@each_config
def test_the_gradient_of_the_loss_is_that_of_each_pair_on_its_own(config):
    model = shaken(config)
    learned = [p for p in model.parameters() if p.requires_grad]
    terms = model.loss([batch_of()], noise(6))
    by_hand = torch.stack([r[0] + r[1] for r in one_by_one(model, PAIRS, noise(6))])
    found, expected = (
        torch.autograd.grad(total, learned, allow_unused=True)
        for total in ((terms["bound"] + terms["link"]).sum(), by_hand.sum())
    )
    detached = config.decoder == "gaussian" and config.fixed_target
    for parameter, one, other in zip(learned, found, expected, strict=True):
        if parameter is model.words.weight:
            if detached:  # the target by hand passes a gradient
                continue
            one, other = one[1:], other[1:]
        torch.testing.assert_close(one, other, **EXACT)


def with_kernels_swapped(model):
    """The same model with U and V exchanged."""
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.alignment.kernels.copy_(model.alignment.kernels.flip(0))
    return other


@each_config
def test_swapping_ends_and_kernels_swaps_the_posterior_and_not_the_kl(config):
    model = shaken(config)
    other_model = with_kernels_swapped(model)
    forward, back = model.infer([batch_of()]), other_model.infer([batch_of(swapped(PAIRS))])
    unswapped = model.infer([batch_of(swapped(PAIRS))]).linked
    assert not torch.allclose(forward.linked.mean_i, unswapped.mean_j)  # U is not V
    for one, other in (
        (forward.linked, back.linked),
        (forward.unlinked, back.unlinked),
    ):
        torch.testing.assert_close(one.mean_i, other.mean_j, **EXACT)
        torch.testing.assert_close(one.mean_j, other.mean_i, **EXACT)
        torch.testing.assert_close(one.log_variance_i, other.log_variance_j, **EXACT)
        torch.testing.assert_close(one.log_variance_j, other.log_variance_i, **EXACT)
    gamma = (forward.linked.gamma, back.linked.gamma)
    torch.testing.assert_close(*gamma, **EXACT)
    torch.testing.assert_close(forward.link_logit, back.link_logit, **EXACT)
    weights = model.align([batch_of()]).weights[0][0]
    swapped_weights = other_model.align([batch_of(swapped(PAIRS))]).weights[0][1]
    torch.testing.assert_close(weights, swapped_weights, **EXACT)
    one = model.loss([batch_of()], noise())
    other = other_model.loss([batch_of(swapped(PAIRS))], noise())
    for name in ("kl_linked", "kl_unlinked", "kl_edge", "link"):
        torch.testing.assert_close(one[name], other[name], **EXACT)


@each_config
def test_shapes_and_ranges(config):
    model = shaken(config, size=2.0)
    found = model.infer([batch_of()])
    d = config.latent_dim
    for q in (found.linked, found.unlinked):
        assert {tuple(v.shape) for v in flat(q)} == {(7, d)}
    gamma = found.linked.gamma
    assert gamma.min() >= 0
    assert gamma.max() <= GAMMA_MOST
    pi = torch.sigmoid(found.link_logit)
    assert ((pi >= 0) & (pi <= 1)).all()
    ((weight_i, weight_j),) = model.align([batch_of()]).weights
    assert weight_i.shape == (7, 6)
    for weight, vertices in ((weight_i, PAIRS.i), (weight_j, PAIRS.j)):
        assert [bool(m) for m in weight.sum(dim=1) > 0] == [bool(TEXTS[v]) for v in vertices]


@each_config
def test_branches_share_their_marginals_if_so_set(config):
    posterior = shaken(config).infer([batch_of()])
    same = [
        torch.equal(one, other)
        for one, other in zip(flat(posterior.linked), flat(posterior.unlinked), strict=False)
    ]
    assert same == [config.shared_posterior] * 4


@each_config
def test_a_batch_in_parts_has_the_same_terms(config):
    model, rows = shaken(config), np.array([3, 0, 6, 2, 1, 5, 4])
    whole = model.loss([batch_of(PAIRS[rows])], noise())
    parts = model.loss([batch_of(PAIRS[rows[:2]]), batch_of(PAIRS[rows[2:]])], noise())
    for name in ("kl_linked", "kl_unlinked", "kl_edge", "link"):
        torch.testing.assert_close(whole[name], parts[name], **EXACT)
    assert parts["reconstruction"].shape == (7,)


@each_config
def test_the_posterior_reads_no_edge_and_the_loss_no_unknown_edge(config):
    model = shaken(config)
    other = dataclasses.replace(PAIRS, links=np.where(PAIRS.known, PAIRS.links, 1 - PAIRS.links))
    other = dataclasses.replace(other, links=other.links.astype(np.float32))
    one, two = (model.objective(model.loss([batch_of(p)], noise())) for p in (PAIRS, other))
    assert torch.equal(one, two)
    turned = dataclasses.replace(PAIRS, links=1 - PAIRS.links, known=~PAIRS.known)
    for a, b in zip(
        flat(model.infer([batch_of()]).linked),
        flat(model.infer([batch_of(turned)]).linked),
        strict=True,
    ):
        assert torch.equal(a, b)


@each_config
def test_every_weight_has_a_gradient_but_the_padding(config):
    model = shaken(config)
    table = model.structure.weight
    assert table.requires_grad == (config.structure == "learned")
    assert table.shape == (8, 0 if config.structure == "none" else config.structure_dim)
    model.objective(model.loss([batch_of()], noise())).sum().backward()
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            assert parameter.grad is not None, name
            gradient = parameter.grad
            assert gradient.isfinite().all(), name
            assert gradient.abs().sum() > 0, name
    assert (model.words.weight.grad[PADDING] == 0).all()
    if config.structure == "learned":
        used = sorted(set(PAIRS.i.tolist()) | set(PAIRS.j.tolist()))
        assert table.grad.any(dim=1).nonzero().squeeze(1).tolist() == used


def test_without_structure_the_vertex_does_not_matter():
    model = shaken(CONFIGS["text only"])
    posterior = model.infer([batch_of()])
    elsewhere = dataclasses.replace(batch_of(), i=torch.zeros(7, dtype=torch.long))
    assert torch.equal(model.infer([elsewhere]).linked.mean_i, posterior.linked.mean_i)


def test_only_a_fixed_target_passes_no_gradient():
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
def test_the_loss_is_finite_for_almost_empty_texts(config, decoder, texts):
    corpus = Corpus.build(texts, min_count=1)
    model = PairVAE(config.replace(decoder=decoder), len(corpus.vocabulary), 5, PI0)
    model.initialise(corpus, 0)
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
            assert parameter.grad.isfinite().all()


@each_config
@pytest.mark.parametrize("decoder", ["gaussian", "multinomial"])
@pytest.mark.parametrize("texts", [["a b", "b c", "c"], ["", "", ""]], ids=["words", "no words"])
def test_every_weight_has_a_finite_gradient(config, decoder, texts):
    """DistributedDataParallel would otherwise have to search for the weights without one."""
    corpus = Corpus.build(texts, min_count=1)
    model = PairVAE(config.replace(decoder=decoder), len(corpus.vocabulary), 3, PI0)
    model.initialise(corpus, 0)
    pairs = Pairs(np.array([0]), np.array([1]), np.ones(1, np.float32), np.array([True]))
    terms = model.loss([batch_of(pairs, corpus)], noise())
    assert all(math.isfinite(v) for v in terms.means().values())
    model.objective(terms).sum().backward()
    for name, weight in model.named_parameters():
        assert not weight.requires_grad or weight.grad.isfinite().all(), name


def state(config, seed, before=0):
    torch.manual_seed(before)  # the global generator must not matter
    model = PairVAE(config, len(CORPUS.vocabulary), len(CORPUS), PI0)
    model.initialise(CORPUS, seed)
    return model.state_dict()


@each_config
def test_initial_weights_are_a_function_of_corpus_and_seed(config):
    one, same, other = state(config, 1, before=1), state(config, 1, before=2), state(config, 2)
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["alignment.kernels"], other["alignment.kernels"])
    assert all(value.isfinite().all() for value in one.values())


@pytest.mark.parametrize("target", ["mean", "max"])
def test_the_centre_of_the_targets_is_their_mean_direction(target):
    config = DEFAULT.replace(target=target)
    model = PairVAE(config, len(CORPUS.vocabulary), len(CORPUS), PI0)
    model.initialise(CORPUS, 0)
    directions = []
    for vertex in range(len(CORPUS)):
        x, tokens = words_of(model, vertex)
        if len(tokens):
            text = pooled_by_hand(x.detach(), tokens, target)
            directions.append(text / text.norm())
    centre = torch.stack(directions).mean(dim=0)
    torch.testing.assert_close(model.decoder.centre, centre, rtol=1e-4, atol=1e-5)
    if target == "mean":
        torch.testing.assert_close(model.integrator.centre, centre, rtol=1e-4, atol=1e-5)


def test_initial_means_are_the_text_codes():
    model = PairVAE(DEFAULT, len(CORPUS.vocabulary), len(CORPUS), PI0)
    model.initialise(CORPUS, 0)
    assert (model.structure.weight == 0).all()
    with torch.no_grad():
        q = model.infer([batch_of()]).linked
        aligned = model.align([batch_of()])
        expected = text_code(aligned.text_i, model.integrator.centre)
    torch.testing.assert_close(q.mean_i, expected)
    z = torch.randn(3, 6, generator=noise())
    torch.testing.assert_close(model.decoder.decoding(z), z)


def test_initial_random_words_have_their_scale_and_zero_for_padding():
    config = PAPER.replace(word_dim=200)
    model = PairVAE(config, len(CORPUS.vocabulary), len(CORPUS), PI0)
    model.initialise(CORPUS, 0)
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
            bound = model.loss([batch_of(many)], noise())["bound"]
        error = bound.std() / count**0.5
        assert bound.mean() + 4 * error < (exact if known else mixture)
