"""Diffused text: LSA of the texts, averaged over the links of the training network. It has
nothing to learn and takes a second, and is hard to beat."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from vhe.baselines.tfidf import tfidf_rows
from vhe.predict.scoring import CosineMethod

if TYPE_CHECKING:
    from scipy import sparse

    from vhe.data.network import TextNetwork

OWN_TEXT = 0.3  # the share of a vertex that is its own text in each round


class DiffusedText(CosineMethod):
    """Z = .3 X + .7 S Z, from Z = X, with X the LSA of TF-IDF and S the normalised adjacency.

    ``embedding_`` is Z less half of its mean row: what all texts share says little about a pair.

    Parameters
    ----------
    dimensions : of the LSA; fewer where the texts do not have as many.
    rounds : of diffusion; a text reaches as many links far.
    random_state : seed of the LSA.
    """

    reads_all_texts: ClassVar = True

    def __init__(self, *, dimensions: int = 300, rounds: int = 8, random_state: int = 0) -> None:
        self.dimensions = dimensions
        self.rounds = rounds
        self.random_state = random_state

    def fit(self, network: TextNetwork) -> Self:
        """Reduce the texts and diffuse them over the links."""
        text = lsa(tfidf_rows(network.texts), self.dimensions, self.random_state)
        spread = normalised_adjacency(network.links, len(network))
        z = text
        for _ in range(self.rounds):
            z = OWN_TEXT * text + (1 - OWN_TEXT) * (spread @ z)
        self.embedding_ = (z - z.mean(axis=0) / 2).astype(np.float32)
        return self


def lsa(rows: sparse.csr_array, dimensions: int, seed: int) -> np.ndarray:
    """The rows (n, words) in their first ``dimensions`` singular directions: (n, ≤ dimensions)."""
    from sklearn.decomposition import TruncatedSVD

    if min(rows.shape) <= dimensions:  # nothing to leave out
        left, link_strength, _ = np.linalg.svd(rows.toarray(), full_matrices=False)
        return left * link_strength
    return TruncatedSVD(dimensions, random_state=seed).fit_transform(rows)


def normalised_adjacency(links: np.ndarray, vertices: int) -> sparse.csr_array:
    """D^-½ (A + I) D^-½ of the undirected links, D the degrees with the self loops: (n, n)."""
    from scipy import sparse

    own = np.arange(vertices)
    row = np.concatenate([links[:, 0], links[:, 1], own])
    column = np.concatenate([links[:, 1], links[:, 0], own])
    scale = 1 / np.sqrt(np.bincount(row, minlength=vertices))
    return sparse.csr_array((scale[row] * scale[column], (row, column)), (vertices, vertices))
