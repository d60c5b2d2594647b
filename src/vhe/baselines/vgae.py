"""The variational graph auto-encoder (Kipf & Welling, 2016): a graph convolutional encoder with
Gaussian posteriors and an inner-product decoder of the links.

min -½ mean_links log σ(z_i·z_j) - ½ mean_others log σ(-z_i·z_j) + KL(q‖N(0, I)) / n², where
q = N(μ, σ²), μ = Â relu(Â X W_0) W_μ and log σ the same with W_σ, Â the normalised adjacency.
This is the paper's bound with its weights, scaled as in the authors' code; every vertex has a
self-loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from vhe.baselines.inner_product import InnerProductMethod
from vhe.baselines.matrices import as_tensor, normalised_adjacency
from vhe.baselines.tfidf import tfidf_rows
from vhe.data.network import TextNetwork
from vhe.errors import VHEError

BLOCK = 4096  # maximum number of rows and of columns for the unlinked pairs of an epoch


@dataclass(kw_only=True)
class VGAE(InnerProductMethod):
    """Scores a pair by the inner product of its rows, as the paper does; ``embedding_`` is μ.

    Parameters
    ----------
    features : ``identity`` (one-hot features) or ``tfidf`` of the texts.
    hidden, dimensions : sizes of the two layers.
    epochs : full-batch steps of Adam.
    learning_rate : of Adam.
    random_state : seed.

    Attributes
    ----------
    losses_ : loss of each epoch.
    """

    features: Literal["identity", "tfidf"] = "identity"
    hidden: int = 32
    dimensions: int = 16
    epochs: int = 200
    learning_rate: float = 0.01
    random_state: int = 0

    def fit(self, network: TextNetwork) -> Self:
        """Train encoder and decoder on the links."""
        if self.features not in ("identity", "tfidf"):
            raise VHEError(f"unknown features {self.features!r}; use 'identity' or 'tfidf'")
        n = len(network)
        adjacency = normalised_adjacency(network.links, n)
        a = ax = as_tensor(adjacency)  # Â, (n, n), and ÂX, (n, features)
        if self.features == "tfidf":
            ax = as_tensor(adjacency @ tfidf_rows(network.texts))
        own = np.arange(n).repeat(2).reshape(n, 2)
        linked = np.concatenate([network.links, network.links[:, ::-1], own])
        i, j = torch.from_numpy(np.ascontiguousarray(linked.T))
        random = torch.Generator().manual_seed(self.random_state)
        w_0 = glorot(ax.shape[1], self.hidden, random)
        w_mu, w_sigma = (glorot(self.hidden, self.dimensions, random) for _ in range(2))
        adam = torch.optim.Adam([w_0, w_mu, w_sigma], lr=self.learning_rate)
        self.losses_: list[float] = []
        for _ in range(self.epochs):
            hidden = torch.sparse.mm(a, torch.relu(torch.sparse.mm(ax, w_0)))
            mu, log_sigma = hidden @ w_mu, hidden @ w_sigma
            sigma = log_sigma.exp()
            z = mu + sigma * torch.randn(mu.shape, generator=random)
            kl = 0.5 * (mu**2 + sigma**2 - 1 - 2 * log_sigma).sum()
            loss = reconstruction_loss(z, i, j, random) + kl / n**2
            adam.zero_grad()
            loss.backward()
            adam.step()
            self.losses_.append(float(loss.detach()))
        self.embedding_ = mu.detach().numpy()
        return self


def reconstruction_loss(z: Tensor, i: Tensor, j: Tensor, random: torch.Generator) -> Tensor:
    """Cross-entropy of all n² pairs, with weight ½ each for links (i, j) and for other pairs.

    Exact up to `BLOCK` vertices; for more, an unbiased estimate of the term of unlinked pairs from
    random rows and columns.
    """
    n = len(z)
    rows = columns = z
    if n > BLOCK:
        rows, columns = (z[torch.randperm(n, generator=random)[:BLOCK]] for _ in range(2))
    scores = (z[i] * z[j]).sum(dim=1)
    all_pairs = softplus(rows @ columns.T).mean() * n**2
    others = (all_pairs - softplus(scores).sum()) / max(n**2 - len(i), 1)
    return (softplus(-scores).mean() + others) / 2


def glorot(rows: int, columns: int, random: torch.Generator) -> Tensor:
    """Weights (rows, columns), uniform within ±√(6 / (rows + columns))."""
    bound = (6 / (rows + columns)) ** 0.5
    weights = (2 * torch.rand(rows, columns, generator=random) - 1) * bound
    return weights.requires_grad_()
