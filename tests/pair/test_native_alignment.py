"""alignment.c against the equations in float64."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pair.test_alignment import straightforward

from vhe.pair.alignment import PhraseToWordAlignment
from vhe.runtime import native

CLOSE = {"rtol": 2e-4, "atol": 2e-5}
needs_kernels = pytest.mark.skipif(native.library() is None, reason="kernels not built")


def tokens_of(lengths, generator, vocabulary):
    tokens = torch.randint(1, vocabulary, (len(lengths), max(1, *lengths)), generator=generator)
    return tokens * (torch.arange(tokens.shape[1]) < torch.tensor(lengths).unsqueeze(1))


def case(lengths, *, dim=12, kernels=7, width=5, longest=40, vocabulary=30, seed=0, shared=False):
    """An alignment, its words, and parts of two pairs each."""
    generator = torch.Generator().manual_seed(seed)
    module = PhraseToWordAlignment(kernels, width, longest, shared)
    module.reset(generator)
    words = torch.randn(vocabulary, dim, generator=generator)
    words[0] = 0
    with torch.no_grad():
        module.kernels.mul_(4)  # away from the linear part of tanh
    parts = [
        tuple(
            tokens_of(side, generator, vocabulary) for side in zip(*lengths[k : k + 2], strict=True)
        )
        for k in range(0, len(lengths), 2)
    ]
    return module, words.requires_grad_(), parts


def gradients(text_i, text_j, inputs, seed=1):
    generator = torch.Generator().manual_seed(seed)
    directions = [torch.randn(t.shape, generator=generator).to(t) for t in (text_i, text_j)]
    return torch.autograd.grad((text_i, text_j), inputs, directions)


def agree(module, words, parts):
    """Texts, weights and gradients are those of the equations in float64."""
    found = module(words, parts)
    exact = words.detach().double().requires_grad_()
    kernels = module.kernels.detach().double().requires_grad_()
    expected = [straightforward(exact[i], exact[j], i != 0, j != 0, kernels) for i, j in parts]
    texts = [torch.cat([each[k] for each in expected]) for k in (0, 1)]
    for one, other in zip((found.text_i, found.text_j), texts, strict=True):
        torch.testing.assert_close(one, other.float(), **CLOSE)
    for weights, each in zip(found.weights, expected, strict=True):
        for one, other in zip(weights, each[2:], strict=True):
            torch.testing.assert_close(one, other.float(), **CLOSE)
    ours = gradients(found.text_i, found.text_j, (words, module.kernels))
    theirs = gradients(*texts, (exact, kernels))
    torch.testing.assert_close(ours[0][1:], theirs[0][1:].float(), **CLOSE)
    torch.testing.assert_close(ours[1], theirs[1].float(), **CLOSE)
    assert (ours[0][0] == 0).all()  # of the padding


@needs_kernels
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(
    "settings",
    [
        *({}, {"kernels": 40}, {"width": 1}, {"width": 3}, {"width": 9}, {"dim": 33}),
        *({"shared": True}, {"shared": True, "kernels": 40, "width": 3}),
    ],
)
def test_compiled_alignment_is_appendix_b(settings, threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        agree(*case([(1, 1), (4, 9), (17, 40), (40, 16), (33, 5)], **settings))
    finally:
        torch.set_num_threads(before)


@needs_kernels
@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=5),
    st.integers(1, 50),
    st.sampled_from([1, 3, 5, 7, 9]),
)
def test_compiled_alignment_is_appendix_b_for_any_lengths(lengths, kernels, width):
    agree(*case(lengths, kernels=kernels, width=width))


@needs_kernels
def test_empty_texts_have_no_weight():
    module, words, parts = case([(3, 2), (4, 5)])
    parts[0][0][0] = 0
    parts[0][1][1] = 0
    found = module(words, parts)
    assert (found.text_i[0] == 0).all()
    assert (found.text_j[1] == 0).all()
    assert found.text_j[0].abs().sum() > 0
    assert (found.weights[0][0][0] == 0).all()
    for gradient in gradients(found.text_i, found.text_j, (words, module.kernels)):
        assert gradient.isfinite().all()


@needs_kernels
def test_results_are_reproducible_bit_by_bit():
    module, words, parts = case([(20, 30), (11, 40), (5, 5), (40, 40)], vocabulary=8)
    found = [module(words, parts) for _ in range(2)]
    assert torch.equal(found[0].text_i, found[1].text_i)
    for one, other in zip(
        *(gradients(f.text_i, f.text_j, (words, module.kernels)) for f in found), strict=True
    ):
        assert torch.equal(one, other)


@needs_kernels
def test_native_code_is_called_and_torch_agrees(monkeypatch):
    module, words, parts = case([(20, 30), (11, 40)])
    calls, call = [], native.call
    monkeypatch.setattr(native, "call", lambda name, *on: calls.append(name) or call(name, *on))
    ours = module(words, parts)
    assert calls == ["align"]
    monkeypatch.setattr(native, "library", lambda: None)
    theirs = module(words, parts)
    assert calls == ["align"]
    monkeypatch.undo()
    torch.testing.assert_close(ours.text_i, theirs.text_i, **CLOSE)
    for one, other in zip(
        *(gradients(f.text_i, f.text_j, (words, module.kernels)) for f in (ours, theirs)),
        strict=True,
    ):
        torch.testing.assert_close(one, other, **CLOSE)
