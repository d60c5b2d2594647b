"""Word vectors from the corpus, against scikit-learn and against loops."""

from collections import Counter

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from vhe.data.text import Corpus, tokenize
from vhe.text.lsa import (
    WORD_SCALE,
    damped_counts,
    inverse_document_frequency,
    lsa_word_vectors,
    mean_words,
    random_word_vectors,
    tfidf_rows,
    word_counts,
)

TEXTS = [
    "cats purr and cats sleep",
    "dogs bark and dogs run run run",
    "",
    "cats and dogs",
    "stars shine",
    "stars and planets shine and turn",
    "planets turn around stars",
    "run",
    "sleep sleep sleep purr",
    "bark around planets",
]


@pytest.fixture(scope="module")
def small():
    return Corpus.build(TEXTS, min_count=1)


def test_word_counts_are_those_of_a_counter(small):
    found = word_counts(small).toarray()
    assert found.shape == (len(TEXTS), len(small.vocabulary))
    for row, text in zip(found, TEXTS, strict=True):
        counted = Counter(tokenize(text))
        assert row.tolist() == [counted[word] for word in small.vocabulary]


def test_damped_counts_grow_with_the_logarithm(small):
    counts, damped = word_counts(small).toarray(), damped_counts(small).toarray()
    expected = np.where(counts > 0, 1 + np.log(np.maximum(counts, 1)), 0)
    assert damped == pytest.approx(expected, abs=1e-6)


def test_tfidf_rows_are_those_of_scikit_learn(small):
    vectorizer = TfidfVectorizer(
        tokenizer=tokenize, token_pattern=None, sublinear_tf=True, vocabulary=small.vocabulary
    )
    expected = vectorizer.fit_transform(TEXTS).toarray()
    idf = inverse_document_frequency(small)
    np.testing.assert_allclose(idf, vectorizer.idf_, rtol=1e-5)
    found = tfidf_rows(small, idf)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.toarray(), expected, atol=1e-6)
    assert not found.toarray()[2].any()  # an empty text


def test_new_texts_have_the_document_frequencies_of_the_corpus(small):
    idf = inverse_document_frequency(small)
    new = Corpus.encode(["cats and unknown words", "", "run run"], small.vocabulary, max_words=9)
    found = tfidf_rows(new, idf).toarray()
    cats, both = small.vocabulary.index("cats"), small.vocabulary.index("and")
    length = np.hypot(idf[cats], idf[both])
    assert found[0, cats] == pytest.approx(idf[cats] / length, rel=1e-5)
    assert np.linalg.norm(found, axis=1) == pytest.approx([1, 0, 1], abs=1e-6)


def test_random_word_vectors():
    found = random_word_vectors(500, 20, seed=1)
    assert found.dtype == np.float32
    assert found.shape == (500, 20)
    assert found.std() == pytest.approx(WORD_SCALE, rel=0.03)
    assert found.mean() == pytest.approx(0, abs=0.01)
    assert np.array_equal(found, random_word_vectors(500, 20, seed=1))
    assert not np.array_equal(found, random_word_vectors(500, 20, seed=2))


def test_counting_does_not_change_the_corpus(small):
    tokens, offsets = small.tokens.copy(), small.offsets.copy()
    word_counts(small)
    lsa_word_vectors(small, 3, 0)
    assert np.array_equal(small.tokens, tokens)
    assert np.array_equal(small.offsets, offsets)


def sklearn_vectors(corpus, dim):
    """Right singular vectors of scikit-learn's TF-IDF times the idf, centred and scaled."""
    vectorizer = TfidfVectorizer(
        tokenizer=tokenize, token_pattern=None, vocabulary=corpus.vocabulary, sublinear_tf=True
    )
    rows = vectorizer.fit_transform(TEXTS).toarray()
    _, _, right = np.linalg.svd(rows, full_matrices=False)
    vectors = right[:dim].T * vectorizer.idf_[:, None]
    vectors = vectors - vectors.mean(axis=0)
    return vectors * WORD_SCALE / vectors.std()


@pytest.mark.parametrize("dim", [1, 3, 6])
def test_word_vectors_are_the_lsa_of_tfidf(small, dim):
    found, expected = lsa_word_vectors(small, dim, seed=0), sklearn_vectors(small, dim)
    assert found.dtype == np.float32
    signs = np.sign((found * expected).sum(axis=0))
    assert found * signs == pytest.approx(expected, abs=2e-5)


def test_word_vectors_are_centred_and_scaled(small):
    found = lsa_word_vectors(small, 5, seed=0)
    assert found.mean(axis=0) == pytest.approx(np.zeros(5), abs=1e-6)
    assert found.std() == pytest.approx(WORD_SCALE, rel=1e-5)


def test_dimensions_beyond_the_rank_are_zero(small):
    rank = min(len(TEXTS), len(small.vocabulary))
    found = lsa_word_vectors(small, 40, seed=0)
    assert found.shape == (len(small.vocabulary), 40)
    assert (found[:, rank:] == 0).all()
    assert found[:, : rank - 1].std(axis=0).min() > 0.01
    assert found[:, :rank].std() == pytest.approx(WORD_SCALE, rel=1e-5)


def test_the_same_seed_gives_the_same_word_vectors(small):
    assert np.array_equal(lsa_word_vectors(small, 4, 3), lsa_word_vectors(small, 4, 3))


@pytest.mark.parametrize("texts", [["", ""], ["a"], ["a", "a a", ""], ["a b", "a b"]])
def test_word_vectors_of_very_few_words_are_finite(texts):
    corpus = Corpus.build(texts, min_count=1)
    vectors = lsa_word_vectors(corpus, 4, 0)
    assert vectors.shape == (len(corpus.vocabulary), 4)
    assert np.isfinite(vectors).all()
    assert np.isfinite(mean_words(corpus, vectors)).all()


def test_the_mean_word_vector_of_each_text(small):
    vectors = np.random.default_rng(0).normal(size=(len(small.vocabulary), 3)).astype(np.float32)
    found = mean_words(small, vectors)
    number = {word: k for k, word in enumerate(small.vocabulary)}
    for row, text in zip(found, TEXTS, strict=True):
        words = [vectors[number[word]] for word in tokenize(text)]
        expected = np.mean(words, axis=0) if words else np.zeros(3)
        assert row == pytest.approx(expected, abs=1e-6)
