"""Text codes against numpy, their gradients, and the codes of empty texts."""

from typing import Any

import numpy as np
import pytest
import torch

from vhe.data.network import TextNetwork
from vhe.data.text import Corpus, tokenize
from vhe.estimators import VHE
from vhe.text.codes import EMPTY_NOISE, TextCodes, empty_noise
from vhe.text.lsa import CENTRE_SHARE, EMPTY_CENTRE, scaled_codes

TEXTS = ["cats purr and cats sleep", "dogs bark", "", "cats", "stars and planets", "dogs and cats"]
FILLED, EMPTY = [0, 1, 3, 4, 5], [2]
CORPUS = Corpus.build(TEXTS, min_count=1)
D = 5


def word_vectors(corpus: Corpus = CORPUS, d: int = D, seed: int = 0) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    return torch.from_numpy(rng.normal(size=(1 + len(corpus.vocabulary), d)).astype(np.float32))


def naive_scaled(words: torch.Tensor) -> torch.Tensor:
    """√d u / ‖u‖ with u = Σ (1 + log count) v, from the words of each text."""
    number = {word: k for k, word in enumerate(CORPUS.vocabulary, 1)}
    rows = []
    for text in TEXTS:
        tokens = tokenize(text)
        total = torch.zeros(D)
        for word in sorted(set(tokens)):
            total = total + (1 + np.log(tokens.count(word))) * words[number[word]]
        rows.append(total * D**0.5 / total.norm() if tokens else total)
    return torch.stack(rows)


def test_codes_and_their_gradients_are_those_of_the_formula(path):
    words = word_vectors().requires_grad_()
    found = TextCodes(CORPUS)(words)
    scaled = naive_scaled(words)
    expected = scaled - CENTRE_SHARE * scaled[FILLED].mean(dim=0)
    torch.testing.assert_close(found[FILLED], expected[FILLED], rtol=1e-5, atol=1e-5)
    direction = torch.randn(found.shape, generator=torch.Generator().manual_seed(0))
    direction[EMPTY] = 0
    gradients = [torch.autograd.grad(v, words, direction)[0] for v in (found, expected)]
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-4)
    assert not gradients[0][0].any()  # the padding token is in no text


def test_the_gradient_against_finite_differences(path):
    """The sum of squares of all codes, also of the empty text, which has the centre in it."""
    codes, words = TextCodes(CORPUS), word_vectors().requires_grad_()
    weights = torch.randn(len(TEXTS), D, generator=torch.Generator().manual_seed(1))
    gradient = torch.autograd.grad((weights * codes(words)).sum(), words)[0]
    for row, column in ((1, 0), (3, 2), (7, 4)):
        values = []
        for step in (1e-2, -1e-2):
            changed = words.detach().clone()
            changed[row, column] += step
            values.append(float((weights * codes(changed)).sum()))
        numeric = (values[0] - values[1]) / 2e-2
        assert gradient[row, column] == pytest.approx(numeric, rel=0.02, abs=2e-3)


def test_the_centre_is_the_mean_of_the_scaled_codes():
    words = word_vectors()
    expected = naive_scaled(words)[FILLED].mean(dim=0)
    torch.testing.assert_close(TextCodes(CORPUS).centre(words), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("texts", [[0], [5, 1, 2], [2], list(range(6))])
def test_the_codes_of_some_texts_are_rows_of_all(texts, path):
    codes, words = TextCodes(CORPUS), word_vectors().requires_grad_()
    rows = np.array(texts)
    centre = codes.centre(words)
    found, whole = codes.rows(rows, words, centre), codes(words)
    torch.testing.assert_close(found, whole[rows], rtol=1e-5, atol=1e-6)
    if 2 not in texts:  # the gradient without that of the centre, which is given
        scaled = naive_scaled(words) - CENTRE_SHARE * centre
        direction = torch.randn(found.shape, generator=torch.Generator().manual_seed(2))
        gradients = [torch.autograd.grad(v, words, direction)[0] for v in (found, scaled[rows])]
        torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-4)


def test_rows_use_the_centre_that_is_given():
    codes, words = TextCodes(CORPUS), word_vectors()
    zero, one = (codes.rows(np.array([0, 2]), words, torch.full((D,), v)) for v in (0.0, 1.0))
    expected = torch.tensor([[-CENTRE_SHARE], [EMPTY_CENTRE]]).expand(2, D)
    torch.testing.assert_close(one - zero, expected, rtol=1e-5, atol=1e-6)


def test_an_empty_text_has_a_short_code_of_its_own():
    corpus = Corpus.build(["", "cats purr", "", "dogs bark", "cats bark", ""], min_count=1)
    words = word_vectors(corpus, d=50)
    codes = TextCodes(corpus)
    assert codes.empty.tolist() == [True, False, True, False, False, True]
    own = codes(words)[[0, 2, 5]] - EMPTY_CENTRE * codes.centre(words)
    torch.testing.assert_close(own, empty_noise(3, 50), rtol=1e-5, atol=1e-6)
    length = own.norm(dim=1) / 50**0.5
    assert ((length > EMPTY_NOISE / 2) & (length < 2 * EMPTY_NOISE)).all()
    assert (torch.corrcoef(own) - torch.eye(3)).abs().max() < 0.5
    some = np.array([5, 1, 0])
    found = codes.rows(some, words, codes.centre(words))
    torch.testing.assert_close(found, codes(words)[some], rtol=1e-5, atol=1e-6)


def test_scaled_codes_of_a_corpus():
    words = word_vectors()
    found = scaled_codes(CORPUS, words.numpy())
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, naive_scaled(words), rtol=1e-5, atol=1e-5)
    assert not found[2].any()
    assert scaled_codes(CORPUS.select(np.array([], dtype=np.int64)), words.numpy()).shape == (0, D)


def test_no_text_has_a_word():
    corpus = Corpus.build(["", "", ""], min_count=1)
    codes = TextCodes(corpus)
    found = codes(torch.zeros(1, D))
    assert not codes.centre(torch.zeros(1, D)).any()
    torch.testing.assert_close(found, empty_noise(3, D))


def test_without_words_links_tell_vertices_apart(logs: Any):
    links = [(i, j) for part in (range(10), range(10, 20)) for i in part for j in part if i < j]
    model = VHE(random_state=0, max_steps=0, verbose=False)
    with logs("no tokens found in any text"):
        model.fit(TextNetwork(range(20), [""] * 20, links))
    scores = model.score_matrix(np.arange(20), np.arange(20))
    same = np.arange(20) // 10 == np.arange(20)[:, None] // 10
    assert scores[same].min() > scores[~same].max()
