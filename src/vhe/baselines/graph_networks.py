"""Graph neural networks of two layers, and the heads that score pairs of their embeddings.

Sparse products of torch are all that is needed, so that no graph library is a dependency.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, normalize, relu

from vhe.baselines.matrices import as_tensor, normalised_adjacency, transition_matrix
from vhe.predict.pair_features import adjacency_matrix

Layer = Literal["gcn", "sage"]
Head = Literal["mlp", "ncn"]
HEAD_WIDTH = 64  # hidden units of the head, which runs once per pair


class TwoLayers(nn.Module):
    """Two graph convolutions with a ReLU and dropout between them.

    ``gcn``, Kipf & Welling (ICLR 2017): Â relu(Â X W_0) W_1, Â the normalised adjacency with
    self-loops. ``sage``, Hamilton et al. (NeurIPS 2017): X W + P X W' in each layer, P the mean
    over neighbours.
    """

    def __init__(self, layer: Layer, features: int, width: int, dropout: float) -> None:
        super().__init__()
        parts = 1 if layer == "gcn" else 2  # a vertex itself and its neighbours
        self.layer, self.dropout = layer, dropout
        self.first = nn.Linear(features, parts * width)
        self.second = nn.Linear(width, parts * width)

    def matrix(self, links: np.ndarray, vertices: int) -> Tensor:
        """The sparse matrix that the layers multiply by."""
        normalised = normalised_adjacency if self.layer == "gcn" else transition_matrix
        return as_tensor(normalised(links, vertices))

    def forward(self, x: Tensor, matrix: Tensor) -> Tensor:
        """Embeddings (n, width) of features (n, d)."""
        hidden = relu(self._mixed(self.first(x), matrix))
        hidden = dropout(hidden, self.dropout, self.training)
        return self._mixed(self.second(hidden), matrix)

    def _mixed(self, product: Tensor, matrix: Tensor) -> Tensor:
        if self.layer == "gcn":
            return torch.sparse.mm(matrix, product)
        own, neighbours = product.chunk(2, dim=1)
        return own + torch.sparse.mm(matrix, neighbours)


class PairHead(nn.Module):
    """A multilayer perceptron on the product of two embeddings.

    ``mlp``: MLP(z_i * z_j). ``ncn``, neural common neighbours (Wang et al., ICLR 2024): the first
    layer also reads the sum of the embeddings of the common neighbours of i and j.
    """

    def __init__(self, head: Head, width: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.product = nn.Linear(width, HEAD_WIDTH)
        self.common = nn.Linear(width, HEAD_WIDTH, bias=False) if head == "ncn" else None
        self.output = nn.Linear(HEAD_WIDTH, 1)

    def forward(self, z: Tensor, i: Tensor, j: Tensor, links: np.ndarray) -> Tensor:
        """Scores (m,) of the pairs (i, j) of embeddings z (n, d), given the visible links."""
        hidden = self.product(z[i] * z[j])
        if self.common is not None:
            hidden = hidden + self.common(common_neighbours(z, i, j, links))
        hidden = dropout(relu(hidden), self.dropout, self.training)
        scores: Tensor = self.output(hidden).squeeze(1)
        return scores

    def matrix(self, z: Tensor, sources: Tensor, targets: Tensor, links: np.ndarray) -> Tensor:
        """Scores of each source with each target, without rows of pairs: (s, t)."""
        found = torch.empty(len(sources), len(targets))
        ends, visible = z[targets], adjacency_matrix(links, len(z))
        columns = visible[targets.numpy()].tocsc()
        for row, i in enumerate(sources.tolist()):
            hidden = torch.addmm(self.product.bias, ends, (self.product.weight * z[i]).T)
            if self.common is not None:  # linear: Σ over neighbours u of i, where u is one of j
                near = visible.indices[visible.indptr[i] : visible.indptr[i + 1]]
                hidden += torch.sparse.mm(as_tensor(columns[:, near].tocsr()), self.common(z[near]))
            found[row] = self.output(relu(hidden)).squeeze(1)
        return found


def common_neighbours(z: Tensor, i: Tensor, j: Tensor, links: np.ndarray) -> Tensor:
    """Σ z_u over the common neighbours u of i and j in the links: (m, d)."""
    adjacency = adjacency_matrix(links, len(z))
    both = adjacency[i.numpy()].multiply(adjacency[j.numpy()]).tocsr()
    return torch.sparse.mm(as_tensor(both), z)


def unit_features(rows: np.ndarray) -> Tensor:
    """Rows minus their mean, scaled to the length √d, so that their entries are of order one."""
    rows = rows - rows.mean(axis=0)
    return normalize(torch.from_numpy(np.ascontiguousarray(rows, np.float32))) * (
        rows.shape[1] ** 0.5
    )
