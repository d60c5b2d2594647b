"""Contributions of words to the text part of a score, against the model itself."""

import numpy as np
import pytest
import torch

from vhe.config import PairVHEConfig
from vhe.data.text import Corpus
from vhe.pair.attribution import attribute
from vhe.pair.integrator import text_code
from vhe.pair.model import PairVAE

FORMS = {
    "default": {},
    "paper": {"residual": False, "shared_posterior": False, "link_posterior": "mlp"},
    "text only": {"structure": "none"},
}


def model_of(corpus: Corpus, config: PairVHEConfig, noise: float = 0.1) -> PairVAE:
    model = PairVAE(config, len(corpus.vocabulary), len(corpus), 0.05)
    model.initialise(corpus, 0)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += noise * torch.randn(parameter.shape, generator=generator)
        model.words.weight[0] = 0
    return model.eval()


def tokens_of(corpus: Corpus, text: int) -> np.ndarray:
    return corpus.tokens[corpus.offsets[text] : corpus.offsets[text + 1]]


def codes(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    a, b = np.random.default_rng(seed).normal(size=(2, 16)).astype(np.float32)
    return a, b


@pytest.mark.parametrize("form", FORMS)
def test_the_text_part_is_that_of_the_model_without_structure(
    form: str, corpus: Corpus, pair_config: PairVHEConfig
) -> None:
    model = model_of(corpus, pair_config.replace(**FORMS[form]))
    a, b = tokens_of(corpus, 3), tokens_of(corpus, 9)
    code_a, code_b = codes()
    found = attribute(model, a, b, code_a, code_b)
    pair = (torch.from_numpy(a[None].astype(np.int64)), torch.from_numpy(b[None].astype(np.int64)))
    with torch.no_grad():
        aligned = model.alignment(model.words.weight, [pair])
        none = torch.zeros(1, model.structure.weight.shape[1])
        q = model.integrator(aligned.text_i, aligned.text_j, none, none).unlinked
    length = np.linalg.norm(code_a) * np.linalg.norm(code_b)
    t_a, t_b = q.mean_i[0].numpy(), q.mean_j[0].numpy()
    assert found.text_score == pytest.approx((t_a @ code_b + t_b @ code_a) / 2 / length, rel=1e-4)
    np.testing.assert_allclose(found.alignment_source, aligned.weights[0][0][0], rtol=1e-5)
    np.testing.assert_allclose(found.alignment_target, aligned.weights[0][1][0], rtol=1e-5)
    assert len(found.source) == len(found.alignment_source) == len(a)
    assert len(found.target) == len(found.alignment_target) == len(b)


def test_contributions_and_the_constant_sum_to_the_text_part(
    corpus: Corpus, pair_config: PairVHEConfig
) -> None:
    """With an MLP of zero the text part is linear in the words."""
    model = model_of(corpus, pair_config)
    with torch.no_grad():
        model.integrator.means.weight.zero_()
        model.integrator.means.bias.zero_()
    a, b = tokens_of(corpus, 3), tokens_of(corpus, 9)
    code_a, code_b = codes()
    found = attribute(model, a, b, code_a, code_b)
    length = np.linalg.norm(code_a) * np.linalg.norm(code_b)
    centre = model.integrator.centre
    with torch.no_grad():  # m(x) without x / |x|
        shift = text_code(torch.ones(1, 16), centre)[0] - 4 * torch.ones(16) / 4
        constant = model.integrator.text.weight.detach() @ shift
    expected = float(constant.numpy() @ (code_a + code_b)) / 2 / length
    total = float(found.source.sum() + found.target.sum())
    assert found.text_score == pytest.approx(total + expected, rel=1e-3, abs=1e-5)


def test_a_contribution_is_the_alignment_weight_times_the_word(
    corpus: Corpus, pair_config: PairVHEConfig
) -> None:
    model = model_of(corpus, pair_config)
    with torch.no_grad():
        model.integrator.means.weight.zero_()
        torch.nn.init.eye_(model.integrator.text.weight)
    a, b = tokens_of(corpus, 3), tokens_of(corpus, 9)
    code_a, code_b = codes()
    found = attribute(model, a, b, code_a, code_b)
    words = model.words.weight.detach().numpy()
    weighted = found.alignment_source[:, None] * words[a]
    scale = 4 / np.linalg.norm(weighted.sum(axis=0))  # √d over the length of the text
    length = np.linalg.norm(code_a) * np.linalg.norm(code_b)
    expected = scale * (weighted @ code_b) / 2 / length
    np.testing.assert_allclose(found.source, expected, rtol=1e-3, atol=1e-6)


def test_empty_texts_have_no_contributions(corpus: Corpus, pair_config: PairVHEConfig) -> None:
    model = model_of(corpus, pair_config)
    none, a = np.zeros(0, dtype=np.int32), tokens_of(corpus, 3)
    for tokens in ((none, a), (a, none), (none, none)):
        found = attribute(model, *tokens, *codes())
        assert [len(found.source), len(found.target)] == [len(t) for t in tokens]
        assert [len(found.alignment_source), len(found.alignment_target)] == [
            len(t) for t in tokens
        ]
        assert np.isfinite(found.text_score)
        assert np.isfinite(np.concatenate([found.source, found.target])).all()


def test_codes_of_zero_have_no_score(corpus: Corpus, pair_config: PairVHEConfig) -> None:
    model, zero = model_of(corpus, pair_config), np.zeros(16, dtype=np.float32)
    a, b = tokens_of(corpus, 3), tokens_of(corpus, 9)
    found = attribute(model, a, b, zero, zero)
    assert found.text_score == 0
    assert not found.source.any()
