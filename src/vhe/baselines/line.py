"""LINE (Tang et al., WWW 2015): one half of the embedding brings linked vertices together, the
other those that have neighbours in common; texts are not used.

First order: max Σ_links [log σ(u_i·u_j) + Σ_{5 negatives n} log σ(-u_i·u_n)]; second order: the
same with a context vector c in the place of the second u. Negatives are proportional to
degree^.75.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np

from vhe.baselines.centred import centred
from vhe.predict.scoring import CosineMethod, unit_rows

if TYPE_CHECKING:
    from vhe.data.network import TextNetwork

NEGATIVES = 5
RATE = 0.025  # falls to zero in a straight line


class LINE(CosineMethod):
    """First and second order, each scaled to unit length, side by side and centred.

    The paper predicts no links; a pair is scored by cosine. A vertex without links has a row of
    zeros.

    Parameters
    ----------
    dimensions : of each half.
    passes : how often each link is drawn in each direction, on average.
    random_state : seed.
    """

    def __init__(self, *, dimensions: int = 100, passes: int = 200, random_state: int = 0) -> None:
        self.dimensions = dimensions
        self.passes = passes
        self.random_state = random_state

    def fit(self, network: TextNetwork) -> Self:
        """Learn both halves from sampled links."""
        halves = []
        for order in (1, 2):
            rng = np.random.default_rng([self.random_state, order])
            vectors, _ = sample_links(
                network.links, len(network), self.dimensions, order, self.passes, rng
            )
            vectors[network.degrees == 0] = 0
            halves.append(unit_rows(vectors))
        self.embedding_ = centred(np.concatenate(halves, axis=1))
        return self


def sample_links(
    links: np.ndarray,
    vertices: int,
    dimensions: int,
    order: int,
    passes: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Vectors and contexts, each (vertices, dimensions), by SGD on sampled links.

    A step takes about as many links as there are vertices (1024 at most), so that each vector
    moves by a few samples' worth at a time, as it does when they come one by one.
    """
    import torch

    start = (rng.random((vertices, dimensions), dtype=np.float32) - 0.5) / dimensions
    vector = torch.from_numpy(start)
    context = vector if order == 1 else torch.zeros_like(vector)
    cumulated = np.cumsum(np.bincount(links.ravel(), minlength=vertices) ** 0.75)
    batch = min(max(vertices, 16), 1024)
    steps = -(-passes * 2 * len(links) // batch)
    for step in range(steps):
        drawn = links[rng.integers(len(links), size=batch)]
        drawn = np.where(rng.random((batch, 1)) < 0.5, drawn, drawn[:, ::-1])
        chance = rng.random((batch, NEGATIVES)) * cumulated[-1]
        negative = np.searchsorted(cumulated, chance, side="right")
        met = (negative == drawn[:, :1]) | (negative == drawn[:, 1:])  # not negative after all
        i = torch.from_numpy(np.ascontiguousarray(drawn[:, 0]))
        j = torch.from_numpy(np.concatenate([drawn[:, 1:], negative], axis=1))  # (batch, 6)
        u, c = vector[i], context[j]  # (batch, d), (batch, 6, d)
        slope = -torch.sigmoid(torch.einsum("bd,bkd->bk", u, c))
        slope[:, 0] += 1
        slope[:, 1:][torch.from_numpy(met)] = 0
        slope *= RATE * (1 - step / steps)
        vector.index_add_(0, i, torch.einsum("bk,bkd->bd", slope, c))
        context.index_add_(0, j.ravel(), (slope[..., None] * u[:, None]).flatten(0, 1))
    return vector.numpy(), context.numpy()
