"""Where learning starts: word vectors from the corpus."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from vhe.data.text import Corpus

WORD_SCALE = 0.3  # the deviation of an entry of a word vector


def word_counts(corpus: Corpus):  # type: ignore[no-untyped-def]
    """How often each text has each word: sparse (n, V)."""
    from scipy.sparse import csr_array

    shape = (len(corpus), len(corpus.vocabulary))
    ones = np.ones(len(corpus.tokens), dtype=np.float32)
    offsets = corpus.offsets.copy()  # merging repeated words changes it in place
    counts = csr_array((ones, np.asarray(corpus.tokens) - 1, offsets), shape=shape)
    counts.sum_duplicates()
    return counts


def lsa_word_vectors(corpus: Corpus, dim: int, seed: int) -> NDArray[np.float32]:
    """Word vectors (V, dim) from the corpus alone: latent semantic analysis of TF-IDF.

    The right singular vectors times the inverse document frequency, centred, one common scale.
    Where the corpus has fewer dimensions than asked for, the rest is zero.
    """
    from sklearn.utils.extmath import randomized_svd

    counts = word_counts(corpus)
    n, words = counts.shape
    seen_in = np.bincount(counts.indices, minlength=words)
    idf = (np.log((1 + n) / (1 + seen_in)) + 1).astype(np.float32)
    counts.data = (1 + np.log(counts.data)) * idf[counts.indices]
    norm = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1))).ravel()
    counts.data /= np.repeat(np.maximum(norm, 1e-12), np.diff(counts.indptr)).astype(np.float32)
    rank = min(dim, n, words)
    vectors = np.zeros((words, dim), dtype=np.float32)
    if rank:
        _, _, components = randomized_svd(counts, rank, n_iter=4, random_state=seed)
        vectors[:, :rank] = components.T * idf[:, None]
        vectors[:, :rank] -= vectors[:, :rank].mean(axis=0)
        vectors *= WORD_SCALE / max(float(vectors[:, :rank].std()), 1e-12)
    return vectors


def mean_words(corpus: Corpus, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The mean word vector of each text, zero for an empty one: (n, dim)."""
    totals = np.asarray(word_counts(corpus) @ vectors, dtype=np.float32)
    totals /= np.maximum(corpus.lengths, 1)[:, None].astype(np.float32)
    return totals
