"""Diffused text: LSA of the texts, averaged over the links of the training network.

It has no trained parameters and takes about a second, and is a strong baseline.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from vhe.baselines.tfidf import tfidf_rows
from vhe.predict.scoring import CosineMethod

if TYPE_CHECKING:
    from scipy import sparse

    from vhe.data.network import TextNetwork

OWN_TEXT = 0.3  # weight of the vertex's own text in each iteration


class DiffusedText(CosineMethod):
    """Z = .3 X + .7 S Z, from Z = X, with X the LSA of TF-IDF and S the normalised adjacency.

    ``embedding_`` is Z minus half of its mean row: what all texts share does not distinguish pairs.

    Parameters
    ----------
    dimensions : dimension of the LSA; fewer if the texts have a lower rank.
    iterations : diffusion steps, the number of links over which a text spreads.
    random_state : seed of the LSA.
    """

    reads_all_texts: ClassVar = True

    def __init__(
        self, *, dimensions: int = 300, iterations: int = 8, random_state: int = 0
    ) -> None:
        self.dimensions = dimensions
        self.iterations = iterations
        self.random_state = random_state

    def fit(self, network: TextNetwork) -> Self:
        """Compute the LSA of the texts and diffuse it over the links."""
        text = lsa(tfidf_rows(network.texts), self.dimensions, self.random_state)
        adjacency = normalised_adjacency(network.links, len(network))
        z = text
        for _ in range(self.iterations):
            z = OWN_TEXT * text + (1 - OWN_TEXT) * (adjacency @ z)
        self.embedding_ = (z - z.mean(axis=0) / 2).astype(np.float32)
        return self


def lsa(rows: sparse.csr_array, dimensions: int, seed: int) -> np.ndarray:
    """Projection of rows (n, words) on their leading singular vectors: (n, ≤ dimensions)."""
    from sklearn.decomposition import TruncatedSVD

    if min(rows.shape) <= dimensions:  # nothing to truncate
        left, singular_values, _ = np.linalg.svd(rows.toarray(), full_matrices=False)
        return left * singular_values
    return TruncatedSVD(dimensions, random_state=seed).fit_transform(rows)


def normalised_adjacency(links: np.ndarray, vertices: int) -> sparse.csr_array:
    """D^-½ (A + I) D^-½ of the undirected links, D the degrees with self-loops: (n, n)."""
    from scipy import sparse

    own = np.arange(vertices)
    row = np.concatenate([links[:, 0], links[:, 1], own])
    column = np.concatenate([links[:, 1], links[:, 0], own])
    scale = 1 / np.sqrt(np.bincount(row, minlength=vertices))
    return sparse.csr_array((scale[row] * scale[column], (row, column)), (vertices, vertices))
