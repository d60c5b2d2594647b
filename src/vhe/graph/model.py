"""A fitted graph model: the posterior of all codes, and what new vertices and explanations need.

Everything is stored as the fit computed it, and nothing is computed again: the share of its own
text in a vertex's posterior mean, for example, is Λ_i / A_ii with the A of the fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

NEIGHBOURS = 10  # nearest texts of each text

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class TextNeighbours:
    """Pairs of nearest texts and the cosines of their codes."""

    pairs: NDArray[np.int64]  # (k, 2)
    cosines: Vectors  # (k,)


@dataclass(frozen=True)
class GraphModel:
    """Attributes are arrays over n vertices, V words and d dimensions.

    Attributes
    ----------
    words : (1 + V, d) word vectors, the first of which belongs to padding
    centre : (d,) mean of the scaled text codes (`vhe.text.codes`)
    vectors : (n, p) codes of given or encoded vectors (`vhe.text.vector_codes`); p = 0 without any
    mean, variance : (n, d + p) and (n,), the posterior; the variance holds for every dimension
    precision, diagonal : (n,) Λ and the diagonal of A
    neighbours : nearest texts that the prior couples
    """

    words: Vectors
    centre: Vectors
    vectors: Vectors
    mean: Vectors
    variance: Vectors
    precision: Vectors
    diagonal: Vectors
    neighbours: TextNeighbours
    link_strength: float
    text_knn_weight: float
    mean_log_length: float
    encoder_weight: float  # share of `vectors` in the squared length of the codes

    @property
    def own_share(self) -> Vectors:
        """Share of its own text in the posterior mean of each vertex, given all others: (n,)."""
        return self.precision / self.diagonal


def link_weights(
    links: NDArray[np.int64], degree: NDArray[Any], link_strength: float
) -> NDArray[np.float64]:
    """s of each link (m, 2), given the degrees (n,): (m,)."""
    weights: NDArray[np.float64] = link_strength * (degree[links] + 1.0).prod(axis=1) ** -0.25
    return weights


def marginal_variance(
    coupling: sparse.csr_array, diagonal: NDArray[Any], variance: Vectors
) -> NDArray[Any]:
    """The variance 1 / A_ii + Σ_j (s_ij / A_ii)² v_j of vertices coupled with other codes: (k,).

    The second term is the uncertainty of these codes, which have the variances v (c,) and are taken
    to be independent of each other.

    Parameters
    ----------
    coupling, diagonal : (k, c) and (k,)
    """
    read: NDArray[Any] = coupling.multiply(coupling) @ variance
    return 1 / diagonal + read / diagonal**2


def text_precision(lengths: NDArray[np.int64], mean_log: float) -> Vectors:
    """Λ of texts of these lengths, given the mean of log(1 + length) over the network: (n,)."""
    return np.exp((np.log1p(lengths) - mean_log) / 2).astype(np.float32)


def effective_lengths(
    lengths: NDArray[np.int64], vectors: Vectors, mean_log: float | None = None
) -> NDArray[Any]:
    """Lengths of texts, with an average one where a vertex has a vector but no words: (n,).

    ``mean_log`` is the mean of log(1 + length) of the fit; default: over the texts with words.
    """
    only_vector = (lengths == 0) & vectors.any(axis=1)
    if not only_vector.any():
        return lengths
    if mean_log is None:
        mean_log = float(np.log1p(lengths[lengths > 0]).mean()) if lengths.any() else 0.0
    return np.where(only_vector, np.expm1(mean_log), lengths)
