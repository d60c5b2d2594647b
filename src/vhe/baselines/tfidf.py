"""TF-IDF: the cosine of weighted word counts, what a practitioner tries first; no links used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from vhe.predict.scoring import PAIRS_AT_ONCE

if TYPE_CHECKING:
    from scipy import sparse

    from vhe.data.network import TextNetwork


class TFIDF:
    """Cosine of TF-IDF rows; ``embedding_`` is sparse, (n, words), its rows of unit length."""

    reads_all_texts: ClassVar = True
    embedding_: sparse.csr_array

    def fit(self, network: TextNetwork) -> Self:
        """Weigh the words of the texts."""
        self.embedding_ = tfidf_rows(network.texts)
        return self

    def score_indices(self, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Cosines of the pairs (sources[k], targets[k]): (m,)."""
        rows = self.embedding_
        scores = np.empty(len(sources))
        for start in range(0, len(sources), PAIRS_AT_ONCE):
            part = slice(start, start + PAIRS_AT_ONCE)
            scores[part] = rows[sources[part]].multiply(rows[targets[part]]).sum(axis=1)
        return scores

    def score_matrix(self, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Cosines of each source with each target: (len(sources), len(targets))."""
        return (self.embedding_[sources] @ self.embedding_[targets].T).toarray()


def tfidf_rows(texts: Sequence[str]) -> sparse.csr_array:
    """TF-IDF rows of unit length, (n, words), 1 + log for counts, words of two texts or more.

    Where no word is in two texts, all words count; where there is no word, there is one column
    of zeros. A text without a counted word has a row of zeros.
    """
    from scipy import sparse
    from sklearn.feature_extraction.text import TfidfVectorizer

    for texts_of_a_word in (2, 1):
        try:
            found = TfidfVectorizer(sublinear_tf=True, min_df=texts_of_a_word).fit_transform(texts)
        except ValueError:  # no word is left
            continue
        rows = sparse.csr_array(found)
        rows.sort_indices()  # or scipy sorts them at some later call, and sums round differently
        return rows
    return sparse.csr_array((len(texts), 1))
