"""Both decoders against explicit loops, and which gradients they pass."""

import math

import pytest
import torch

from vhe.config import PairVHEConfig
from vhe.pair.decoder import Decoding, GaussianDecoder, MultinomialDecoder, pool
from vhe.text.lsa import CENTRE_SHARE

EXACT = {"rtol": 1e-10, "atol": 1e-10}
LENGTHS, DIM = [3, 0, 1, 5], 4
MASK = torch.arange(5) < torch.tensor(LENGTHS).unsqueeze(1)
DEFAULT = PairVHEConfig(word_dim=DIM, latent_dim=DIM, structure_dim=DIM, hidden_dim=6)
PAPER = PairVHEConfig.paper().replace(word_dim=DIM, latent_dim=3, hidden_dim=6)
both_poolings = pytest.mark.parametrize("how", ["mean", "max"])


def words(seed=0):
    """Word vectors (4, 5, DIM), all negative in one text, zero beyond its words."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(4, 5, DIM, generator=generator, dtype=torch.float64)
    values[2] = -values[2].abs() - 1
    return (values * MASK.unsqueeze(2)).requires_grad_()


def codes(config, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(4, config.latent_dim, generator=generator, dtype=torch.float64)


def shaken(module, seed=2):
    generator = torch.Generator().manual_seed(seed)
    module = module.double()
    with torch.no_grad():
        for tensor in (*module.parameters(), *module.buffers()):
            tensor.normal_(0, 1, generator=generator)
    return module


def in_table(x):
    """Word vectors (4, 5, DIM) as a table in which each word has a token of its own."""
    table = torch.cat([torch.zeros(1, x.shape[2], dtype=x.dtype), x.flatten(0, 1)])
    return table, torch.arange(1, len(table)).view(x.shape[:2])


def pooled(x, mask, how):
    table, tokens = in_table(x)
    return pool(table, [tokens * mask], how)


def text_code_by_hand(text, centre):
    """√d (x / |x| - s c) for one text; zero for an empty one."""
    length = math.sqrt(sum(v**2 for v in text.tolist()))
    if length == 0:
        return torch.zeros_like(text)
    return math.sqrt(len(text)) * (text / length - CENTRE_SHARE * centre)


def by_loop(x, how):
    rows = []
    for text, length in zip(x, LENGTHS, strict=True):
        if length == 0:
            rows.append(torch.zeros(DIM, dtype=torch.float64))
        elif how == "mean":
            rows.append(sum(text[p] for p in range(length)) / length)
        else:
            rows.append(torch.stack([max(text[p, k] for p in range(length)) for k in range(DIM)]))
    return torch.stack(rows)


@both_poolings
def test_pooling_is_that_of_a_loop(how):
    x = words()
    found, expected = pooled(x, MASK, how), by_loop(x, how)
    torch.testing.assert_close(found, expected, **EXACT)
    direction = torch.randn(found.shape, dtype=found.dtype, generator=torch.Generator())
    gradients = [torch.autograd.grad(v, x, direction)[0] for v in (found, expected)]
    torch.testing.assert_close(*gradients, **EXACT)


def test_repeated_words_have_damped_weights():
    table = torch.tensor([[0, 0], [1, 0], [0, 1], [5, 7]], dtype=torch.float64).requires_grad_()
    texts = [torch.tensor([[1, 2, 1, 1], [2, 0, 0, 0]]), torch.tensor([[0, 3, 2, 3, 2]])]
    found = pool(table, texts, "mean")
    three = 1 + math.log(3)
    expected = torch.tensor(
        [[three / (three + 1), 1 / (three + 1)], [0, 1], [2.5, 4]], dtype=torch.float64
    )
    torch.testing.assert_close(found, expected, **EXACT)
    gradient = torch.autograd.grad(found[:, 0].sum(), table)[0][:, 0]
    weights = torch.tensor([0, three, 1, 0], dtype=torch.float64) / (three + 1)
    weights += torch.tensor([0, 0, 1.5, 0.5], dtype=torch.float64)
    torch.testing.assert_close(gradient, weights, **EXACT)


@both_poolings
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_an_empty_text_pools_to_zero_with_a_finite_gradient(how, dtype):
    x = torch.zeros(2, 3, DIM, dtype=dtype, requires_grad=True)
    found = pooled(x, torch.zeros(2, 3, dtype=torch.bool), how)
    assert (found == 0).all()
    assert torch.autograd.grad(found.square().sum(), x)[0].isfinite().all()


@both_poolings
def test_padding_does_not_change_the_pooled_text(how):
    x, more = words(), torch.zeros(4, 2, DIM, dtype=torch.float64)
    mask = torch.cat([MASK, torch.zeros(4, 2, dtype=torch.bool)], dim=1)
    torch.testing.assert_close(
        pooled(torch.cat([x, more], dim=1), mask, how), pooled(x, MASK, how), **EXACT
    )


def likelihood_of(decoder, z, x):
    """In two parts of texts of different lengths."""
    table, tokens = in_table(x)
    return decoder.log_likelihood(z, table, [(tokens * MASK)[:3, :3], (tokens * MASK)[3:]])


def decoded_by_hand(decoding, z):
    rows = []
    for code in z:
        hidden = [
            math.tanh((row @ code + b).item())
            for row, b in zip(decoding.hidden.weight, decoding.hidden.bias, strict=True)
        ]
        hidden = torch.tensor(hidden, dtype=torch.float64)
        row = decoding.out.weight @ hidden + decoding.out.bias
        if decoding.linear is not None:
            row = row + decoding.linear.weight @ code
        rows.append(row)
    return torch.stack(rows)


@pytest.mark.parametrize("config", [DEFAULT, PAPER], ids=["default", "paper"])
def test_decoding_is_an_mlp_with_one_tanh_layer(config):
    decoding, z = shaken(Decoding(config)), codes(config)
    assert (decoding.linear is not None) == config.residual
    torch.testing.assert_close(decoding(z), decoded_by_hand(decoding, z), **EXACT)


def test_a_residual_decoding_is_initially_the_identity():
    decoding, z = shaken(Decoding(DEFAULT)), codes(DEFAULT)
    with torch.no_grad():
        decoding.out.bias.zero_()
    decoding.initialise()
    torch.testing.assert_close(decoding(z), z, **EXACT)


def test_initialise_does_not_change_the_decoding_of_the_paper():
    decoding = shaken(Decoding(PAPER))
    before = decoding.out.weight.detach().clone()
    decoding.initialise()
    assert torch.equal(decoding.out.weight, before)


@both_poolings
@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("config", [DEFAULT, PAPER], ids=["default", "paper"])
def test_gaussian_decoder_is_a_squared_error_to_the_pooled_words(config, how, fixed):
    config = config.replace(target=how, fixed_target=fixed, precision=2.5)
    decoder, x, z = shaken(GaussianDecoder(config)), words(), codes(config)
    found = likelihood_of(decoder, z, x)
    target = by_loop(x, how)
    if fixed:
        target = torch.stack([text_code_by_hand(row, decoder.centre) for row in target])
    decoded = decoded_by_hand(decoder.decoding, z)
    expected = [
        -2.5 * sum((target[b, k] - decoded[b, k]) ** 2 for k in range(DIM)) for b in range(4)
    ]
    torch.testing.assert_close(found, torch.stack(expected), **EXACT)


@both_poolings
def test_a_fixed_target_passes_no_gradient(how):
    decoder, x = shaken(GaussianDecoder(DEFAULT.replace(target=how))), words()
    z = codes(DEFAULT).requires_grad_()
    likelihood = likelihood_of(decoder, z, x).sum()
    to_words, to_code = torch.autograd.grad(likelihood, (x, z), allow_unused=True)
    assert to_words is None
    assert to_code.abs().sum() > 0
    table, tokens = in_table(x)
    assert not decoder.target(table, [tokens * MASK]).requires_grad


@both_poolings
def test_a_target_that_is_not_fixed_passes_its_gradient(how):
    config = PAPER.replace(target=how)
    decoder, x, z = shaken(GaussianDecoder(config)), words(), codes(config)
    likelihood = likelihood_of(decoder, z, x).sum()
    expected = -(by_loop(x, how) - decoded_by_hand(decoder.decoding, z)).square().sum()
    found, wanted = (torch.autograd.grad(v, x)[0] for v in (likelihood, expected))
    assert found.abs().sum() > 0
    torch.testing.assert_close(found, wanted, **EXACT)


def test_the_centre_is_saved_with_the_weights():
    assert GaussianDecoder(DEFAULT).state_dict()["centre"].tolist() == [0] * DIM


VOCABULARY = 7


def multinomial(config, seed=3):
    generator = torch.Generator().manual_seed(seed)
    table = torch.randn(VOCABULARY, DIM, generator=generator, dtype=torch.float64)
    table = torch.nn.functional.pad(table, (0, 0, 1, 0))  # padding
    tokens = torch.randint(1, VOCABULARY + 1, (4, 5), generator=generator) * MASK
    tokens[0, 1] = tokens[0, 0]  # a repeated word counts twice
    tokens[3, 0], tokens[3, 1] = 1, VOCABULARY
    return shaken(MultinomialDecoder(config, VOCABULARY)), table.requires_grad_(), tokens


@pytest.mark.parametrize("config", [DEFAULT, PAPER], ids=["default", "paper"])
def test_multinomial_decoder_adds_the_log_probabilities_of_the_words(config):
    decoder, table, tokens = multinomial(config)
    z = codes(config)
    found = decoder.log_likelihood(z, table, [tokens[:1, :3], tokens[1:]])
    decoded = decoded_by_hand(decoder.decoding, z)
    for b, length in enumerate(LENGTHS):
        logits = [
            (sum(decoded[b, k] * table[v + 1, k] for k in range(DIM)) + decoder.bias[v]).item()
            for v in range(VOCABULARY)
        ]
        total = math.log(sum(math.exp(v) for v in logits))
        expected = sum(logits[int(tokens[b, p]) - 1] - total for p in range(length))
        assert found[b].item() == pytest.approx(expected, rel=1e-10, abs=1e-12)
    assert found[LENGTHS.index(0)] == 0


def test_the_probabilities_of_all_words_sum_to_one():
    decoder, table, _ = multinomial(DEFAULT)
    z = codes(DEFAULT)[:1].expand(VOCABULARY, -1)
    every = torch.arange(1, VOCABULARY + 1).unsqueeze(1)
    likelihood = decoder.log_likelihood(z, table, [every])
    assert likelihood.exp().sum().item() == pytest.approx(1)


def test_gradients_of_the_multinomial_decoder_agree_with_finite_differences():
    decoder, table, tokens = multinomial(DEFAULT)
    z = codes(DEFAULT).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda z, table: decoder.log_likelihood(z, table, [tokens]), (z, table)
    )
