"""Vertices without links: their nearest texts have the weight that new vertices give theirs.

The posterior mean of a vertex given all other codes is (Λ m + Σ s z) / (Λ + Σ s). For a vertex with
links, s are the couplings of the prior. A vertex without links is coupled with its nearest texts
only, so these couplings s = w · cos · [(1 + k_i)(1 + k_j)]^-½ get the larger weight w that is used
for new vertices (`inductive.py`). The codes of all other vertices do not change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from vhe.graph.inductive import NEW_TEXT_KNN_WEIGHT
from vhe.graph.model import TextNeighbours, Vectors, marginal_variance
from vhe.runtime.arrays import distinct
from vhe.runtime.tables import take_rows


@dataclass(frozen=True)
class IsolatedPosterior:
    """Posterior of k vertices without links, given all other codes."""

    vertices: NDArray[np.int64]  # (k,)
    mean: Vectors  # (k, d)
    variance: Vectors  # (k,)
    diagonal: Vectors  # (k,)


def isolated_weight(setting: float | None, chosen: float) -> float:
    """The weight of nearest texts: that of new vertices, unless the setting gives another."""
    return max(NEW_TEXT_KNN_WEIGHT, chosen) if setting is None else setting


def isolated_posterior(
    links: NDArray[np.int64],
    neighbours: TextNeighbours,
    precision: Vectors,
    codes: Vectors,
    mean: Vectors,
    variance: Vectors,
    weight: float,
) -> IsolatedPosterior:
    """The posterior of the vertices without ``links`` (m, 2).

    Parameters
    ----------
    precision, codes : (n,) Λ and (n, d) text codes of all vertices
    mean, variance : (n, d) and (n,), their posterior
    weight : of nearest texts
    """
    vertices, coupling = isolated_couplings(links, neighbours, len(precision), weight)
    near = distinct(coupling.indices)
    found, diagonal = posterior_given(
        coupling[:, near], precision[vertices], take_rows(codes, vertices), take_rows(mean, near)
    )
    own_variance = marginal_variance(coupling, diagonal, variance).astype(np.float32)
    return IsolatedPosterior(vertices, found, own_variance, diagonal)


def isolated_couplings(
    links: NDArray[np.int64], neighbours: TextNeighbours, n: int, weight: float
) -> tuple[NDArray[np.int64], sparse.csr_array]:
    """The vertices without links (k,), and their couplings with their nearest texts (k, n)."""
    isolated = np.bincount(links.ravel(), minlength=n) == 0
    pairs, cosines = neighbours.pairs, neighbours.cosines
    count = np.bincount(pairs.ravel(), minlength=n)
    first, second = isolated[pairs].T
    ends = np.concatenate([pairs[first], pairs[second][:, ::-1]])
    cosines = np.concatenate([cosines[first], cosines[second]])
    values = weight * cosines * (count[ends] + 1.0).prod(axis=1) ** -0.5
    vertices = np.flatnonzero(isolated)
    coupling: Any = sparse.csr_array((values, ends.T), shape=(n, n), dtype=np.float32)
    return vertices, coupling[vertices]


def posterior_given(
    coupling: sparse.csr_array, precision: Vectors, codes: Vectors, mean: Vectors
) -> tuple[Vectors, Vectors]:
    """Means (k, d) and precisions (k,) of k vertices, given the codes (c, d) they are coupled with.

    Parameters
    ----------
    coupling : (k, c)
    precision, codes : (k,) Λ and (k, d) text codes of the k vertices
    """
    diagonal = precision + coupling.sum(axis=1)
    total = precision[:, None] * codes + coupling @ mean
    return (total / diagonal[:, None]).astype(np.float32), diagonal.astype(np.float32)
