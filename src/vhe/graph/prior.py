"""The homophilic prior over the whole graph.

The paper's prior p1 couples the codes of one linked pair. Coupling all linked pairs at once gives

    p(z) ∝ exp(-½ Σ_(i,j) s_ij ‖z_i - z_j‖²),    m_i ~ N(z_i, 1/Λ_i)

with the text codes m (`vhe.text.codes`). The posterior of z given m is Gaussian (`posterior.py`).
For two linked vertices with Λ = 1 it has the correlation s / (1 + s): the paper's pair with that λ.

Two kinds of pairs are coupled: the links, and the nearest texts (`neighbours.py`), which replace
the paper's mixture over unknown edges by its expectation.

    link:            s_ij = link_strength · v_ij · [(1 + d_i)(1 + d_j)]^-¼,   d the degrees,
                                                              v the weights of links, 1 on average
    nearest texts:   s_ij = text_knn_weight · cos(m_i, m_j) · [(1 + k_i)(1 + k_j)]^-½,
                                                              k the numbers of nearest-text pairs
    text precision:  Λ_i = √(1 + length_i), divided by its geometric mean
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor

from vhe.data.text import concatenated_ranges
from vhe.graph.model import TextNeighbours, link_weights, text_precision
from vhe.graph.posterior import Posterior
from vhe.runtime.arrays import distinct
from vhe.runtime.sparse import csr_tensor, multiply
from vhe.runtime.tables import take_rows

LARGEST_WEIGHT = 1e4  # of a coupling; float32 cannot resolve Λ beside larger ones
WHOLE_GRAPH = 10_000  # vertices up to which posteriors are solved for all of them; beyond, a region

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
        self._assemble(pairs, weights.clip(max=LARGEST_WEIGHT).astype(np.float32), len(links))

    def _assemble(self, pairs: Links, weights: NDArray[np.float32], links: int) -> None:
        """Set the couplings of all pairs, of which the first are links, in compressed rows.

        Row i of the symmetric matrix has the pairs (j, i), j < i, then the pairs (i, j), i < j,
        each sorted by j. With the pairs sorted, both are in place after one stable sort by j.
        Arrays with one entry per pair use 4 bytes per entry and are deleted as soon as possible,
        because they determine the peak memory of a fit.
        """
        n = len(self.precision)
        key = pairs.min(axis=1) * n + pairs.max(axis=1)
        forward = np.argsort(key, kind="stable").astype(np.int32)
        key = key[forward]
        low, high = (key // n).astype(np.int32), (key % n).astype(np.int32)
        del key
        weights, is_link = weights[forward], forward < links
        forward = forward[is_link]
        before = np.bincount(high, minlength=n)  # entries of a row that are pairs (j, i)
        offsets = np.append(0, np.cumsum(before + np.bincount(low, minlength=n)))
        self.offsets = offsets.astype(np.int32)
        self.columns = np.empty(2 * len(low), dtype=np.int32)
        self.weights = np.empty(2 * len(low), dtype=np.float32)
        self.link_entries = np.empty((2, links), dtype=np.int64)  # where the entries of a link are
        rank = np.arange(len(low), dtype=np.int32)
        first = np.searchsorted(low, np.arange(n, dtype=np.int32))  # of the pairs (i, .) of a row i
        upper = (offsets[:-1] + before - first).astype(np.int32)[low] + rank
        self.columns[upper], self.weights[upper] = high, weights
        self.link_entries[0, forward] = upper[is_link]
        del upper
        backward = np.argsort(high, kind="stable").astype(np.int32)
        first = np.append(0, np.cumsum(before))[:-1]  # of the pairs (., i)
        lower = (offsets[:-1] - first).astype(np.int32)[high[backward]] + rank
        del high, rank
        self.columns[lower], self.weights[lower] = low[backward], weights[backward]
        numbers = np.cumsum(is_link, dtype=np.int32) - 1  # of a link among the sorted links
        chosen = is_link[backward]
        self.link_entries[1, forward[numbers[backward[chosen]]]] = lower[chosen]

    def with_strengths(self, link_strength: float, text_knn_weight: float) -> GraphPrior:
        """The same couplings with other strengths; those of this prior must be 1."""
        other = copy.copy(self)
        other.weights = np.float32(text_knn_weight) * self.weights
        links = self.link_entries.ravel()
        other.weights[links] = np.float32(link_strength) * self.weights[links]
        other.weights.clip(max=LARGEST_WEIGHT, out=other.weights)
        return other

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

    def neighbourhood(self, vertices: NDArray[np.int64], size: int) -> NDArray[np.int64]:
        """Some vertices, their neighbours, the neighbours of those and so on, sorted.

        About ``size`` of them beside the given ones; of the last neighbours, those coupled most.
        """
        region, limit = vertices, len(vertices) + size
        while len(region) < limit:
            larger = self.region(region, limit - len(region))
            if len(larger) == len(region):
                break
            region = larger
        return region

    def restricted_posterior(
        self,
        region: NDArray[np.int64],
        outside: NDArray[np.float32],
        masked: NDArray[np.int64] | None = None,
    ) -> tuple[Posterior, Tensor]:
        """The posterior of a region (k,), sorted, given all codes outside of it.

        ``outside`` (n, d) holds the codes of all vertices, of which only those coupled with the
        region are read. Returns the posterior with A restricted to the region, and what the
        vertices outside add to the right-hand side Λ m: (k, d).
        """
        k, entries = len(region), self._entries(region)
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
        near = distinct(columns[~inside])
        rows = torch.from_numpy(take_rows(outside, near)).to(self.device)
        coupled = matrix(~inside, np.searchsorted(near, columns), len(near))
        return posterior, multiply(coupled, rows)

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
