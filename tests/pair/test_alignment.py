"""Phrase-to-word alignment against appendix B written out with conv1d, padded to full length."""

from typing import NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import conv1d, pad

from vhe.pair.alignment import PhraseToWordAlignment

EXACT = {"rtol": 1e-10, "atol": 1e-10}
DIM, KERNELS, LONGEST = 4, 7, 9


def texts(lengths, generator, *, padded_to=None, dim=DIM):
    """Random word vectors (batch, L, dim), zero beyond each length, and their mask."""
    lengths = torch.tensor(lengths)
    width = padded_to or max(1, int(lengths.max()))
    mask = torch.arange(width) < lengths.unsqueeze(1)
    words = torch.randn(len(lengths), width, dim, generator=generator, dtype=torch.float64)
    return (words * mask.unsqueeze(2)).requires_grad_(), mask


def alignment(width=3, longest=LONGEST, seed=0, shared=False):
    module = PhraseToWordAlignment(KERNELS, width, longest, shared).double()
    module.reset(torch.Generator().manual_seed(seed))
    with torch.no_grad():
        module.kernels.mul_(5)  # away from the linear part of tanh
    return module


class Result(NamedTuple):
    text_i: Tensor
    text_j: Tensor
    weight_i: Tensor
    weight_j: Tensor


def align(module, words_i, words_j, mask_i, mask_j):
    """The alignment of given word vectors: each has its own token."""
    rows = [words.flatten(0, 1) for words in (words_i, words_j)]
    table = torch.cat([torch.zeros_like(rows[0][:1]) if len(rows[0]) else rows[1][:1] * 0, *rows])
    number = torch.arange(1, len(table))
    parts = number.split([len(rows[0]), len(rows[1])])
    tokens = [t.view(m.shape) * m for t, m in zip(parts, (mask_i, mask_j), strict=True)]
    aligned = module(table, [tuple(tokens)])
    return Result(aligned.text_i, aligned.text_j, *aligned.weights[0])


def straightforward(words_i, words_j, mask_i, mask_j, kernels):
    """Appendix B: M, conv1d over it, tanh, max over kernels, softmax, weighted sum.

    ``kernels`` are U and V, or one set for both.
    """
    longest, reach = kernels.shape[3], kernels.shape[2] // 2
    u, v = kernels[0], kernels[-1]

    def weights(similarity, mask, own):  # (batch, L, C), the other text's words are the channels
        features = torch.tanh(
            conv1d(similarity.transpose(1, 2), own.transpose(1, 2), padding=reach)
        )  # (batch, K, L)
        scores = features.max(dim=1).values.masked_fill(~mask, -torch.inf)
        return torch.softmax(scores, dim=1)

    full_i, full_j = (pad(x, (0, 0, 0, longest - x.shape[1])) for x in (words_i, words_j))
    full_mask_i, full_mask_j = (pad(m, (0, longest - m.shape[1])) for m in (mask_i, mask_j))
    similarity = torch.einsum("bpd,bqd->bpq", full_i, full_j)
    w_i = weights(similarity, full_mask_i, u)
    w_j = weights(similarity.transpose(1, 2), full_mask_j, v)
    return (
        torch.einsum("bp,bpd->bd", w_i, full_i),
        torch.einsum("bq,bqd->bd", w_j, full_j),
        w_i[:, : mask_i.shape[1]],
        w_j[:, : mask_j.shape[1]],
    )


def agree(results, expected, inputs, generator):
    """The same values, and the same gradients for some random direction of the texts."""
    torch.testing.assert_close(tuple(results), tuple(expected), **EXACT)
    results, expected = results[:2], expected[:2]
    directions = [torch.randn(r.shape, generator=generator, dtype=r.dtype) for r in expected]
    found = torch.autograd.grad(results, inputs, directions)
    wanted = torch.autograd.grad(expected, inputs, directions)
    for one, other, value in zip(found, wanted, inputs, strict=True):
        word = value != 0  # padding stays zero and has no gradient
        torch.testing.assert_close(one * word, other * word, **EXACT)


@pytest.mark.parametrize("width", [1, 3, 5])
@pytest.mark.parametrize(
    ("lengths_i", "lengths_j"),
    [([4], [4]), ([9, 2, 5, 1], [1, 6, 5, 1]), ([1, 1], [7, 1]), ([9, 9], [9, 9])],
)
def test_alignment_is_appendix_b(width, lengths_i, lengths_j):
    generator = torch.Generator().manual_seed(width)
    words_i, mask_i = texts(lengths_i, generator)
    words_j, mask_j = texts(lengths_j, generator)
    for module in (alignment(width), alignment(width, shared=True)):
        results = align(module, words_i, words_j, mask_i, mask_j)
        expected = straightforward(words_i, words_j, mask_i, mask_j, module.kernels)
        agree(results, expected, (words_i, words_j, module.kernels), generator)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, LONGEST), st.integers(1, LONGEST)), min_size=1, max_size=5),
    st.sampled_from([1, 3, 5, 7]),
)
def test_alignment_is_appendix_b_for_any_lengths(lengths, width):
    generator = torch.Generator().manual_seed(len(lengths))
    words_i, mask_i = texts([a for a, _ in lengths], generator)
    words_j, mask_j = texts([b for _, b in lengths], generator)
    module = alignment(width)
    results = align(module, words_i, words_j, mask_i, mask_j)
    expected = straightforward(words_i, words_j, mask_i, mask_j, module.kernels)
    agree(results, expected, (words_i, words_j, module.kernels), generator)


def test_gradients_agree_with_finite_differences():
    generator = torch.Generator().manual_seed(2)
    table = torch.randn(9, 2, generator=generator, dtype=torch.float64)
    table[0] = 0
    parts = [
        (torch.tensor([[1, 2, 3], [4, 0, 0]]), torch.tensor([[5, 6, 0, 0], [7, 2, 8, 1]])),
        (torch.tensor([[3, 1]]), torch.tensor([[3, 1]])),
    ]
    kernels = torch.randn(2, 3, 3, 5, generator=generator, dtype=torch.float64).requires_grad_()
    module = alignment()

    def aligned(words, kernels):
        found = torch.func.functional_call(
            module, {"kernels": kernels}, (pad(words, (0, 0, 1, 0)), parts)
        )
        return found.text_i, found.text_j

    assert torch.autograd.gradcheck(aligned, (table[1:].clone().requires_grad_(), kernels))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_parts_on_several_threads_give_the_result_of_one_part(threads):
    generator = torch.Generator().manual_seed(12)
    module = alignment(5)
    table = torch.randn(20, DIM, generator=generator, dtype=torch.float64)
    table[0] = 0
    table.requires_grad_()
    tokens = torch.randint(1, 20, (2, 7, 9), generator=generator)
    tokens[0, 3, 4:] = tokens[1, 5, 2:] = 0
    whole = module(table, [(tokens[0], tokens[1])])
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        cut = module(table, list(zip(tokens[0].split(2), tokens[1].split(2), strict=True)))
        directions = torch.randn(2, 7, DIM, generator=generator, dtype=torch.float64)
        gradients = [
            torch.autograd.grad((x.text_i, x.text_j), (table, module.kernels), tuple(directions))
            for x in (whole, cut)
        ]
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    torch.testing.assert_close((whole.text_i, whole.text_j), (cut.text_i, cut.text_j), **EXACT)
    torch.testing.assert_close(*gradients, **EXACT)
    torch.testing.assert_close(cut.weights[1][0], whole.weights[0][0][2:4], **EXACT)
    assert (gradients[0][0][0] == 0).all()  # of the padding


def test_a_masked_word_inside_a_text_is_ignored():
    generator = torch.Generator().manual_seed(13)
    words_i, mask_i = texts([5, 6], generator)
    words_j, mask_j = texts([4, 6], generator)
    masked = torch.tensor([[False, False, True, False, False, False]]).expand(2, 6)
    words_i = words_i.masked_fill(masked.unsqueeze(2), 0)
    module = alignment(5)
    found = align(module, words_i, words_j, mask_i & ~masked, mask_j)
    expected = straightforward(words_i, words_j, mask_i & ~masked, mask_j, module.kernels)
    torch.testing.assert_close(tuple(found), expected, **EXACT)


def test_weights_are_a_distribution_over_the_words():
    generator = torch.Generator().manual_seed(3)
    words_i, mask_i = texts([5, 1, 8], generator)
    words_j, mask_j = texts([2, 7, 3], generator)
    aligned = align(alignment(), words_i, words_j, mask_i, mask_j)
    for weight, mask in ((aligned.weight_i, mask_i), (aligned.weight_j, mask_j)):
        torch.testing.assert_close(weight.sum(dim=1), torch.ones(3, dtype=torch.float64), **EXACT)
        assert (weight[mask] > 0).all()
        assert (weight[~mask] == 0).all()
    assert aligned.weight_i[0].std() > 0.01  # not just the uniform distribution


def test_a_text_of_one_word_is_that_word():
    generator = torch.Generator().manual_seed(4)
    words_i, mask_i = texts([1, 1], generator)
    words_j, mask_j = texts([6, 1], generator)
    aligned = align(alignment(), words_i, words_j, mask_i, mask_j)
    torch.testing.assert_close(aligned.text_i, words_i[:, 0], **EXACT)
    torch.testing.assert_close(aligned.text_j[1], words_j[1, 0], **EXACT)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("lengths_i", "lengths_j"), [([0, 3, 0], [4, 0, 0]), ([0], [0])])
def test_an_empty_text_has_no_weight_and_gives_finite_gradients(lengths_i, lengths_j, dtype):
    generator = torch.Generator().manual_seed(5)
    words_i, mask_i = texts(lengths_i, generator)
    words_j, mask_j = texts(lengths_j, generator)
    words_i, words_j = (w.detach().to(dtype).requires_grad_() for w in (words_i, words_j))
    module = alignment().to(dtype)
    aligned = align(module, words_i, words_j, mask_i, mask_j)
    for text, weight, mask in (
        (aligned.text_i, aligned.weight_i, mask_i),
        (aligned.text_j, aligned.weight_j, mask_j),
    ):
        empty = ~mask.any(dim=1)
        assert empty.any()
        assert (text[empty] == 0).all()
        assert (weight[empty] == 0).all()
        assert text.dtype == weight.dtype == dtype
    # next to an empty text all similarities are zero: the weights are uniform
    uniform = mask_i / mask_i.sum(dim=1, keepdim=True).clamp(min=1)
    next_to_empty = ~mask_j.any(dim=1)
    torch.testing.assert_close(aligned.weight_i[next_to_empty], uniform[next_to_empty].to(dtype))
    total = aligned.text_i.square().sum() + aligned.text_j.square().sum()
    for gradient in torch.autograd.grad(total, (words_i, words_j, module.kernels)):
        assert gradient.isfinite().all()


def test_an_empty_text_does_not_change_other_pairs():
    generator = torch.Generator().manual_seed(6)
    words_i, mask_i = texts([3, 0, 5], generator)
    words_j, mask_j = texts([4, 2, 6], generator)
    module, rest = alignment(), [0, 2]
    aligned = align(module, words_i, words_j, mask_i, mask_j)
    alone = straightforward(
        words_i[rest], words_j[rest], mask_i[rest], mask_j[rest], module.kernels
    )
    torch.testing.assert_close(tuple(part[rest] for part in aligned), alone, **EXACT)


@pytest.mark.parametrize("shared", [False, True])
def test_swapping_texts_and_kernels_swaps_the_result(shared):
    generator = torch.Generator().manual_seed(7)
    words_i, mask_i = texts([5, 1, 0, 8], generator)
    words_j, mask_j = texts([2, 7, 3, 8], generator)
    module = alignment(5, shared=shared)
    forward = align(module, words_i, words_j, mask_i, mask_j)
    for swap_kernels in (True, False):
        if swap_kernels:
            with torch.no_grad():
                module.kernels.copy_(module.kernels.flip(0))
        back = align(module, words_j, words_i, mask_j, mask_i)
        swapped = (back.text_j, back.text_i, back.weight_j, back.weight_i)
        if swap_kernels or shared:
            torch.testing.assert_close(tuple(forward), swapped, **EXACT)
        if swap_kernels:
            with torch.no_grad():
                module.kernels.copy_(module.kernels.flip(0))
        elif not shared:  # U and V differ
            assert not torch.allclose(forward.text_i, back.text_j)
    assert not torch.allclose(forward.text_i, forward.text_j)


def test_the_first_texts_use_u_and_the_second_texts_use_v():
    generator = torch.Generator().manual_seed(14)
    words_i, mask_i = texts([5, 6], generator)
    words_j, mask_j = texts([4, 7], generator)
    module = alignment(5)
    before = align(module, words_i, words_j, mask_i, mask_j)
    gradient_u, gradient_v = torch.autograd.grad(before.text_i.square().sum(), module.kernels)[0]
    assert gradient_u.abs().max() > 0
    assert (gradient_v == 0).all()
    with torch.no_grad():
        module.kernels[1] *= -1
    after = align(module, words_i, words_j, mask_i, mask_j)
    torch.testing.assert_close(before.text_i, after.text_i, **EXACT)
    assert not torch.allclose(before.text_j, after.text_j)


@pytest.mark.parametrize("more", [1, 4])
def test_padding_never_changes_a_result(more):
    lengths_i, lengths_j = [5, 1, 0, 3], [2, 4, 3, 5]
    module, results = alignment(5), []
    for padded_to in (5, 5 + more):
        generator = torch.Generator().manual_seed(8)
        tight_i, mask_i = texts(lengths_i, generator)
        tight_j, mask_j = texts(lengths_j, generator)
        extra = padded_to - 5
        aligned = align(
            module,
            pad(tight_i, (0, 0, 0, extra)),
            pad(tight_j, (0, 0, 0, extra)),
            pad(mask_i, (0, extra)),
            pad(mask_j, (0, extra)),
        )
        total = aligned.text_i.square().sum() + (aligned.text_j**3).sum()
        gradients = torch.autograd.grad(total, (tight_i, tight_j, module.kernels))
        assert (aligned.weight_i[:, 5:] == 0).all()
        assert (aligned.weight_j[:, 5:] == 0).all()
        results.append((aligned.text_i, aligned.text_j, aligned.weight_i[:, :5], *gradients))
    torch.testing.assert_close(results[0], results[1], **EXACT)


def test_a_pair_does_not_depend_on_its_batch():
    generator = torch.Generator().manual_seed(9)
    lengths_i, lengths_j = [7, 2, 4], [3, 9, 1]
    words_i, mask_i = texts(lengths_i, generator)
    words_j, mask_j = texts(lengths_j, generator)
    module = alignment()
    whole = align(module, words_i, words_j, mask_i, mask_j)
    for row, (a, b) in enumerate(zip(lengths_i, lengths_j, strict=True)):
        one = slice(row, row + 1)
        alone = align(module, words_i[one, :a], words_j[one, :b], mask_i[one, :a], mask_j[one, :b])
        torch.testing.assert_close(whole.text_i[one], alone.text_i, **EXACT)
        torch.testing.assert_close(whole.weight_j[one, :b], alone.weight_j, **EXACT)


def test_kernels_are_cut_to_the_positions_in_use():
    generator = torch.Generator().manual_seed(10)
    words_i, mask_i = texts([4, 3], generator)
    words_j, mask_j = texts([2, 5], generator)
    long, short = alignment(longest=LONGEST), alignment(longest=5)
    with torch.no_grad():
        short.kernels.copy_(long.kernels[..., :5])
    results = [align(module, words_i, words_j, mask_i, mask_j) for module in (long, short)]
    torch.testing.assert_close(tuple(results[0]), tuple(results[1]), **EXACT)
    gradients = [
        torch.autograd.grad(aligned.text_i.sum() + aligned.text_j.sum(), module.kernels)[0]
        for aligned, module in zip(results, (long, short), strict=True)
    ]
    torch.testing.assert_close(gradients[0][..., :5], gradients[1], **EXACT)
    assert gradients[1].abs().max() > 0
    assert (gradients[0][..., 5:] == 0).all()


def test_initial_kernels_are_uniform_within_the_bound_of_their_size():
    module, again = (PhraseToWordAlignment(50, 5, 20) for _ in range(2))
    for each in (module, again):
        each.reset(torch.Generator().manual_seed(0))
    assert torch.equal(module.kernels, again.kernels)
    kernels, bound = module.kernels.detach(), (5 * 20) ** -0.5
    assert 0.99 * bound < kernels.abs().max() <= bound
    assert kernels.std().item() == pytest.approx(bound / 3**0.5, rel=0.03)
    assert abs(kernels.mean()) < 0.02 * bound


def test_a_text_that_is_not_finite_affects_its_own_pair_only():
    generator = torch.Generator().manual_seed(11)
    words_i, mask_i = texts([4, 3], generator)
    words_j, mask_j = texts([2, 5], generator)
    broken = torch.where(torch.arange(2).view(2, 1, 1) == 0, torch.nan, words_i)
    aligned = align(alignment(), broken, words_j, mask_i, mask_j)
    assert aligned.text_i[0].isnan().all()
    assert aligned.text_i[1].isfinite().all()
