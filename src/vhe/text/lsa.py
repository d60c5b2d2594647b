"""Latent semantic analysis: word vectors from the corpus alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vhe.runtime.arrays import unit_rows

if TYPE_CHECKING:
    from vhe.data.text import Corpus

Progress = Callable[[int, int], None]  # texts done, all texts

LSA_TEXTS = 50_000  # texts of a larger corpus whose singular vectors are refined by all texts
TEXTS_AT_ONCE = 1 << 15
WORD_SCALE = 0.3  # standard deviation of the entries of word vectors
CENTRE_SHARE = 0.5  # share of the centre that is subtracted from a text code
EMPTY_CENTRE = 0.25  # share of the centre in the code of an empty text


def word_counts(corpus: Corpus):  # type: ignore[no-untyped-def]
    """Number of occurrences of each word in each text: sparse (n, V)."""
    from scipy.sparse import csr_array

    shape = (len(corpus), len(corpus.vocabulary))
    ones = np.ones(len(corpus.tokens), dtype=np.float32)
    offsets = corpus.offsets.copy()  # sum_duplicates changes it in place
    counts = csr_array((ones, np.asarray(corpus.tokens) - 1, offsets), shape=shape)
    counts.sum_duplicates()
    return counts


def damped_counts(corpus: Corpus):  # type: ignore[no-untyped-def]
    """1 + log of the number of occurrences: sparse (n, V)."""
    counts = word_counts(corpus)
    counts.data = 1 + np.log(counts.data)
    return counts


def text_blocks(corpus: Corpus) -> Iterator[Corpus]:
    """The texts in their order, some at a time."""
    for start in range(0, len(corpus), TEXTS_AT_ONCE):
        yield corpus.select(np.arange(start, min(start + TEXTS_AT_ONCE, len(corpus))))


def inverse_document_frequency(corpus: Corpus) -> NDArray[np.float32]:
    """log((1 + n) / (1 + number of texts with the word)) + 1: (V,)."""
    document_frequency = np.zeros(len(corpus.vocabulary), dtype=np.int64)
    for part in text_blocks(corpus):
        document_frequency += np.bincount(
            word_counts(part).indices, minlength=len(corpus.vocabulary)
        )
    return (np.log((1 + len(corpus)) / (1 + document_frequency)) + 1).astype(np.float32)


def tfidf_rows(corpus: Corpus, idf: NDArray[np.float32]):  # type: ignore[no-untyped-def]
    """Damped counts times the inverse document frequency, in rows of unit length: sparse (n, V)."""
    weighted = damped_counts(corpus)
    weighted.data *= idf[weighted.indices]
    norm = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1))).ravel()
    weighted.data /= np.repeat(np.maximum(norm, 1e-12), np.diff(weighted.indptr)).astype(np.float32)
    return weighted


def lsa_word_vectors(
    corpus: Corpus, dim: int, seed: int, progress: Progress = lambda done, total: None
) -> NDArray[np.float32]:
    """Word vectors (V, dim): right singular vectors of TF-IDF times the inverse document frequency.

    They are centred and scaled to the standard deviation `WORD_SCALE`. Dimensions beyond the rank
    of the corpus are zero. Of more than `LSA_TEXTS` texts, the singular vectors of evenly spaced
    ones are the start of one subspace iteration over all texts.
    """
    from sklearn.utils.extmath import randomized_svd

    idf = inverse_document_frequency(corpus)
    n, words = len(corpus), len(corpus.vocabulary)
    some = corpus
    if n > LSA_TEXTS:
        some = corpus.select(np.linspace(0, n - 1, LSA_TEXTS).astype(np.int64))
    rank = min(dim, len(some), words)
    vectors = np.zeros((words, dim), dtype=np.float32)
    if rank:
        weighted = tfidf_rows(some, idf)
        _, _, components = randomized_svd(weighted, rank, n_iter=4, random_state=seed)
        if some is not corpus:
            components = _refined(corpus, idf, components, progress)
        vectors[:, :rank] = components.T * idf[:, None]
        vectors[:, :rank] -= vectors[:, :rank].mean(axis=0)
        vectors *= WORD_SCALE / max(float(vectors[:, :rank].std()), 1e-12)
    return vectors


def _refined(
    corpus: Corpus, idf: NDArray[np.float32], components: NDArray[Any], progress: Progress
) -> NDArray[Any]:
    """An orthonormal basis of XᵀX times the components (r, V), X the TF-IDF rows of all texts."""
    import torch

    from vhe.runtime.sparse import csr_tensor, multiply

    basis = torch.from_numpy(np.ascontiguousarray(components.T, dtype=np.float32))
    total = np.zeros(basis.shape)
    done = 0
    for part in text_blocks(corpus):
        rows = csr_tensor(tfidf_rows(part, idf), torch.device("cpu"))
        total += multiply(rows, multiply(rows, basis), transposed=True).numpy()
        done += len(part)
        progress(done, len(corpus))
    orthonormal, triangle = np.linalg.qr(total)
    signs = np.where(np.diag(triangle) < 0, -1, 1)  # of the components that it starts from
    return (orthonormal * signs).T


def random_word_vectors(words: int, dim: int, seed: int) -> NDArray[np.float32]:
    """Gaussian word vectors (V, dim) with the standard deviation `WORD_SCALE`."""
    drawn = np.random.default_rng([seed, 3]).normal(0, WORD_SCALE, (words, dim))
    return drawn.astype(np.float32)


def mean_words(corpus: Corpus, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Mean word vector of each text, zero for an empty text: (n, dim)."""
    totals = np.asarray(word_counts(corpus) @ vectors, dtype=np.float32)
    totals /= np.maximum(corpus.lengths, 1)[:, None].astype(np.float32)
    return totals


def scaled_codes(corpus: Corpus, words: NDArray[np.float32]) -> NDArray[np.float32]:
    """√d · u / ‖u‖ of each text (`vhe.text.codes`), before it is centred; zero for an empty text:
    (n, d)."""
    totals = np.asarray(damped_counts(corpus) @ words[1:], dtype=np.float32)
    return unit_rows(totals) * np.float32(words.shape[1] ** 0.5)
