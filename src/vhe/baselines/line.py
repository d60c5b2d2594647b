"""LINE (Tang et al., WWW 2015): first-order proximity (linked vertices) in one half of the
embedding, second-order proximity (common neighbours) in the other; texts are not used.

First order: max Σ_links [log σ(u_i·u_j) + Σ_{5 negatives n} log σ(-u_i·u_n)]; second order: the
same with a context vector c instead of the second u. Negatives are drawn proportionally to
degree^.75.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch

from vhe.baselines.matrices import centred
from vhe.data.network import TextNetwork
from vhe.predict.scoring import CosineMethod
from vhe.runtime.arrays import unit_rows

NEGATIVES = 5
LEARNING_RATE = 0.025  # decays linearly to zero


@dataclass(kw_only=True)
class LINE(CosineMethod):
    """First and second order, each scaled to unit length, concatenated and centred.

    The paper does not predict links; here a pair is scored by cosine. A vertex without links has a
    row of zeros.

    Parameters
    ----------
    dimensions : dimension of each half.
    passes : how often each link is drawn in each direction, on average.
    random_state : seed.
    """

    dimensions: int = 100
    passes: int = 200
    random_state: int = 0

    def fit(self, network: TextNetwork) -> Self:
        """Train both halves on sampled links."""
        halves = []
        for order in (1, 2):
            rng = np.random.default_rng([self.random_state, order])
            vectors, _ = train_order(
                network.links, len(network), self.dimensions, order, self.passes, rng
            )
            vectors[network.degrees == 0] = 0
            halves.append(unit_rows(vectors))
        self.embedding_ = centred(np.concatenate(halves, axis=1))
        return self


def train_order(
    links: np.ndarray,
    vertices: int,
    dimensions: int,
    order: int,
    passes: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Vectors and contexts, each (vertices, dimensions), by SGD on sampled links.

    A step takes about as many links as there are vertices (at most 1024), so that each vector is
    moved by a few samples per step, close to the sequential updates of the paper.
    """
    initial = (rng.random((vertices, dimensions), dtype=np.float32) - 0.5) / dimensions
    vector = torch.from_numpy(initial)
    context = vector if order == 1 else torch.zeros_like(vector)
    cumulative = np.cumsum(np.bincount(links.ravel(), minlength=vertices) ** 0.75)
    batch = min(max(vertices, 16), 1024)
    steps = -(-passes * 2 * len(links) // batch)
    for step in range(steps):
        drawn = links[rng.integers(len(links), size=batch)]
        drawn = np.where(rng.random((batch, 1)) < 0.5, drawn, drawn[:, ::-1])
        uniform = rng.random((batch, NEGATIVES)) * cumulative[-1]
        negative = np.searchsorted(cumulative, uniform, side="right")
        invalid = (negative == drawn[:, :1]) | (negative == drawn[:, 1:])  # an end of the link
        i = torch.from_numpy(np.ascontiguousarray(drawn[:, 0]))
        j = torch.from_numpy(np.concatenate([drawn[:, 1:], negative], axis=1))  # (batch, 6)
        u, c = vector[i], context[j]  # (batch, d), (batch, 6, d)
        gradient = -torch.sigmoid(torch.einsum("bd,bkd->bk", u, c))
        gradient[:, 0] += 1
        gradient[:, 1:][torch.from_numpy(invalid)] = 0
        gradient *= LEARNING_RATE * (1 - step / steps)
        vector.index_add_(0, i, torch.einsum("bk,bkd->bd", gradient, c))
        context.index_add_(0, j.ravel(), (gradient[..., None] * u[:, None]).flatten(0, 1))
    return vector.numpy(), context.numpy()
