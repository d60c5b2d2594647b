"""The homophilic prior over the whole graph.

The paper's prior p1 couples the codes of one linked pair. Coupling all linked pairs at once gives

    p(z) ∝ exp(-½ Σ_(i,j) s_ij ‖z_i - z_j‖²),    m_i ~ N(z_i, 1/Λ_i)

with the text codes m (`vhe.text.codes`). The posterior of z given m is Gaussian (`posterior.py`).
For two linked vertices with Λ = 1 it has the correlation s / (1 + s): the paper's pair with that λ.

Two kinds of pairs are coupled: the links, and the nearest texts (`neighbours.py`), which stand for
the paper's mixture over unknown edges, in expectation.

    link:            s_ij = link_strength · v_ij · [(1 + d_i)(1 + d_j)]^-¼,   d the degrees,
                                                              v the weights of links, 1 on average
    nearest texts:   s_ij = text_knn_weight · cos(m_i, m_j) · [(1 + k_i)(1 + k_j)]^-½,
                                                              k the numbers of nearest-text pairs
    text precision:  Λ_i = √(1 + length_i), divided by its geometric mean
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor

from vhe.data.text import concatenated_ranges
from vhe.graph.model import TextNeighbours, link_weights, text_precision
from vhe.graph.posterior import Posterior
from vhe.runtime.sparse import csr_tensor, multiply

LARGEST_WEIGHT = 1e4  # beyond it, float32 loses the text beside the links

Links = NDArray[np.int64]  # (m, 2)


class GraphPrior:
    """The couplings s of all pairs, in compressed rows, and the text precisions Λ.

    Parameters
    ----------
    links : (m, 2)
    lengths : (n,) number of words of each text
    neighbours : nearest texts; None couples the links only
    relative_weights : (m,) weights of the links, 1 on average; None stands for 1
    """

    def __init__(
        self,
        links: Links,
        lengths: NDArray[np.int64],
        neighbours: TextNeighbours | None = None,
        *,
        link_strength: float,
        text_knn_weight: float = 0.0,
        relative_weights: NDArray[np.float64] | None = None,
        device: torch.device | None = None,
    ) -> None:
        self.links, n = links, len(lengths)
        self.device = device or torch.device("cpu")
        self.precision = text_precision(lengths, mean_log_length(lengths))  # (n,)
        degree = np.bincount(links.ravel(), minlength=n)
        pairs, weights = links, link_weights(links, degree, link_strength)
        if relative_weights is not None:
            weights = weights * relative_weights
        if neighbours is not None and text_knn_weight > 0:
            pairs = np.concatenate([links, neighbours.pairs])
            weights = np.append(weights, neighbour_weights(neighbours, n, text_knn_weight))
        # both directions of every pair, sorted by row and column
        ends = np.concatenate([pairs, pairs[:, ::-1]])
        order = np.lexsort((ends[:, 1], ends[:, 0]))
        position = np.argsort(order).reshape(2, -1)
        self.link_entries = position[:, : len(links)]  # (2, m) where the entries of a link are
        self.columns = ends[order, 1].astype(np.int32)
        self.offsets = np.searchsorted(ends[order, 0], np.arange(n + 1)).astype(np.int32)
        self.weights = np.tile(weights, 2)[order].clip(max=LARGEST_WEIGHT).astype(np.float32)

    def posterior(self, masked: NDArray[np.int64] | None = None) -> Posterior:
        """The posterior without some links, given by their numbers; degrees still count them."""
        weights = self.weights
        if masked is not None and len(masked):
            weights = weights.copy()
            weights[self.link_entries[:, masked]] = 0
        return Posterior.from_csr(
            self.offsets, self.columns, weights, self.precision, device=self.device
        )

    def region(self, vertices: NDArray[np.int64], halo: int) -> NDArray[np.int64]:
        """Some vertices and at most ``halo`` others that are coupled to them most, sorted."""
        entries = self._entries(vertices)
        columns, weights = self.columns[entries], self.weights[entries]
        others, number = np.unique(columns, return_inverse=True)
        total = np.bincount(number, weights)
        total[np.isin(others, vertices, assume_unique=True)] = 0
        strongest = np.argsort(-total, kind="stable")[:halo]
        chosen = others[strongest[total[strongest] > 0]].astype(np.int64)
        return np.union1d(vertices, chosen)

    def restricted_posterior(
        self, region: NDArray[np.int64], outside: Tensor, masked: NDArray[np.int64] | None = None
    ) -> tuple[Posterior, Tensor]:
        """The posterior of a region (k,), sorted, given all codes outside of it.

        ``outside`` (n, d) holds the codes of all vertices. Returns A restricted to the region, and
        what the vertices outside add to the right-hand side Λ m: (k, d).
        """
        n, k = len(self.precision), len(region)
        entries = self._entries(region)
        weights = self.weights[entries]
        if masked is not None and len(masked):
            weights[np.isin(entries, self.link_entries[:, masked])] = 0
        counts = np.diff(self.offsets)[region]
        columns, row = self.columns[entries], np.repeat(np.arange(k), counts)
        position = np.searchsorted(region, columns).clip(max=k - 1)
        inside = region[position] == columns

        def matrix(chosen: NDArray[np.bool_], columns: NDArray[Any], width: int) -> Tensor:
            offsets = np.append(0, np.cumsum(np.bincount(row[chosen], minlength=k)))
            parts = weights[chosen], columns[chosen], offsets
            return csr_tensor(csr_array(parts, shape=(k, width)), self.device)

        own = torch.from_numpy(self.precision[region]).to(self.device).unsqueeze(1)
        total = torch.from_numpy(np.bincount(row, weights, k).astype(np.float32)).to(self.device)
        posterior = Posterior(matrix(inside, position, k), own, own + total.unsqueeze(1))
        return posterior, multiply(matrix(~inside, columns, n), outside)

    def _entries(self, vertices: NDArray[np.int64]) -> NDArray[np.int64]:
        """Positions of the couplings of some vertices, one vertex after the other."""
        starts = self.offsets[vertices].astype(np.int64)
        return concatenated_ranges(starts, self.offsets[vertices + 1] - starts)


def neighbour_weights(
    neighbours: TextNeighbours, n: int, text_knn_weight: float
) -> NDArray[np.float64]:
    """s of each pair of nearest texts: (k,)."""
    count = np.bincount(neighbours.pairs.ravel(), minlength=n)
    share = (count[neighbours.pairs] + 1.0).prod(axis=1) ** -0.5
    weights: NDArray[np.float64] = text_knn_weight * neighbours.cosines * share
    return weights


def mean_log_length(lengths: NDArray[np.int64]) -> float:
    return float(np.log1p(lengths).mean())
