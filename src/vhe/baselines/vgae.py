"""The variational graph auto-encoder (Kipf & Welling, 2016): a graph convolution infers a Gaussian
for each vertex, and the links are rebuilt from inner products.

min -½ mean_links log σ(z_i·z_j) - ½ mean_others log σ(-z_i·z_j) + KL(q‖N(0, I)) / n², where
q = N(μ, σ²), μ = Â relu(Â X W_0) W_μ and log σ the same with W_σ, Â the normalised adjacency.
That is the paper's bound with its weights, as its authors scale it; a vertex counts as linked
with itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self

import numpy as np

from vhe.baselines.diffused_text import normalised_adjacency
from vhe.baselines.tfidf import tfidf_rows
from vhe.errors import VHEError
from vhe.predict.scoring import PAIRS_AT_ONCE

if TYPE_CHECKING:
    import torch
    from scipy import sparse

    from vhe.data.network import TextNetwork

BLOCK = 4096  # vertices; of a larger network an epoch sees all links and so many rows and columns


class VGAE:
    """Scores a pair by the inner product of its rows, as the paper does; ``embedding_`` is μ.

    Parameters
    ----------
    features : ``identity``, where each vertex has a feature of its own, or ``tfidf`` of the texts.
    hidden, dimensions : sizes of the two layers.
    epochs, rate : of Adam on the whole network.
    random_state : seed.

    Attributes
    ----------
    losses_ : of each epoch.
    """

    embedding_: np.ndarray

    def __init__(
        self,
        *,
        features: Literal["identity", "tfidf"] = "identity",
        hidden: int = 32,
        dimensions: int = 16,
        epochs: int = 200,
        rate: float = 0.01,
        random_state: int = 0,
    ) -> None:
        self.features = features
        self.hidden = hidden
        self.dimensions = dimensions
        self.epochs = epochs
        self.rate = rate
        self.random_state = random_state

    def fit(self, network: TextNetwork) -> Self:
        """Learn to rebuild the links."""
        import torch

        if self.features not in ("identity", "tfidf"):
            raise VHEError(f"Unknown features {self.features!r}; use 'identity' or 'tfidf'.")
        n = len(network)
        spread = normalised_adjacency(network.links, n)
        identity = self.features == "identity"
        a = as_tensor(spread)  # Â, (n, n)
        ax = a if identity else as_tensor(spread @ tfidf_rows(network.texts))  # ÂX, (n, features)
        own = np.arange(n).repeat(2).reshape(n, 2)
        linked = np.concatenate([network.links, network.links[:, ::-1], own])
        i, j = torch.from_numpy(np.ascontiguousarray(linked.T))
        random = torch.Generator().manual_seed(self.random_state)
        w_0 = glorot(ax.shape[1], self.hidden, random)
        w_mu, w_sigma = (glorot(self.hidden, self.dimensions, random) for _ in range(2))
        adam = torch.optim.Adam([w_0, w_mu, w_sigma], lr=self.rate)
        self.losses_: list[float] = []
        for _ in range(self.epochs):
            hidden = torch.sparse.mm(a, torch.relu(torch.sparse.mm(ax, w_0)))
            mu, log_sigma = hidden @ w_mu, hidden @ w_sigma
            sigma = log_sigma.exp()
            z = mu + sigma * torch.randn(mu.shape, generator=random)
            kl = 0.5 * (mu**2 + sigma**2 - 1 - 2 * log_sigma).sum()
            loss = rebuilding_loss(z, i, j, random) + kl / n**2
            adam.zero_grad()
            loss.backward()
            adam.step()
            self.losses_.append(float(loss.detach()))
        self.embedding_ = mu.detach().numpy()
        return self

    def score_indices(self, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Inner products of the pairs (sources[k], targets[k]): (m,)."""
        z = self.embedding_
        scores = np.empty(len(sources), dtype=z.dtype)
        for start in range(0, len(sources), PAIRS_AT_ONCE):
            part = slice(start, start + PAIRS_AT_ONCE)
            scores[part] = np.einsum("md,md->m", z[sources[part]], z[targets[part]])
        return scores

    def score_matrix(self, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Inner products of each source with each target: (len(sources), len(targets))."""
        return self.embedding_[sources] @ self.embedding_[targets].T


def rebuilding_loss(
    z: torch.Tensor, i: torch.Tensor, j: torch.Tensor, random: torch.Generator
) -> torch.Tensor:
    """Cross-entropy of all n² pairs, links (i, j) and others weighing half each.

    Exact up to `BLOCK` vertices; beyond, the pairs that are not linked are estimated from random
    rows and columns, without bias.
    """
    import torch
    from torch.nn.functional import softplus

    n = len(z)
    rows = columns = z
    if n > BLOCK:
        rows, columns = (z[torch.randperm(n, generator=random)[:BLOCK]] for _ in range(2))
    scores = (z[i] * z[j]).sum(dim=1)
    every = softplus(rows @ columns.T).mean() * n**2
    others = (every - softplus(scores).sum()) / max(n**2 - len(i), 1)
    return (softplus(-scores).mean() + others) / 2


def glorot(rows: int, columns: int, random: torch.Generator) -> torch.Tensor:
    """Weights (rows, columns), uniform within ±√(6 / (rows + columns))."""
    import torch

    bound = (6 / (rows + columns)) ** 0.5
    weights = (2 * torch.rand(rows, columns, generator=random) - 1) * bound
    return weights.requires_grad_()


def as_tensor(matrix: sparse.csr_array) -> torch.Tensor:
    """The same sparse matrix for torch, in single precision."""
    import torch

    coo = matrix.tocoo()
    places = torch.from_numpy(np.stack([coo.row, coo.col]).astype(np.int64))
    values = torch.from_numpy(coo.data.astype(np.float32))
    return torch.sparse_coo_tensor(places, values, coo.shape, check_invariants=False).coalesce()
