"""TF-IDF: cosine similarity of weighted word counts; links are not used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from vhe.baselines.inner_product import InnerProductMethod
from vhe.data.network import TextNetwork


class TFIDF(InnerProductMethod):
    """Cosine of TF-IDF rows; ``embedding_`` is sparse, (n, words), with rows of unit length."""

    reads_all_texts: ClassVar = True

    def fit(self, network: TextNetwork) -> Self:
        """Compute the TF-IDF rows of the texts."""
        self.embedding_ = tfidf_rows(network.texts)
        return self

    def score_matrix(self, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
        return (self.embedding_[sources] @ self.embedding_[targets].T).toarray()

    def _products(self, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
        return self.embedding_[sources].multiply(self.embedding_[targets]).sum(axis=1)


def tfidf_rows(texts: Sequence[str]) -> sparse.csr_array:
    """TF-IDF rows of unit length, (n, words), with 1 + log(count) of words in at least two texts.

    If no word is in two texts, all words are used; if there is no word, the result is one column
    of zeros. A text without any of these words has a row of zeros.
    """
    for min_df in (2, 1):
        try:
            found = TfidfVectorizer(sublinear_tf=True, min_df=min_df).fit_transform(texts)
        except ValueError:  # no word remains
            continue
        rows = sparse.csr_array(found)
        rows.sort_indices()  # otherwise a later call sorts them, and sums round differently
        return rows
    return sparse.csr_array((len(texts), 1))
