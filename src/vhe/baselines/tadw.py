"""TADW (Yang et al., IJCAI 2015): DeepWalk as a factorisation of the matrix of short walks, with
the texts as one factor.

min_{W, H} ‖M - W'HT‖² + λ/2 (‖W‖² + ‖H‖²), M = (P + P²)/2 with P the transition matrix of the
network, T (200, n) the TF-IDF of the texts reduced by SVD. The embedding is [W ; HT].
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np

from vhe.baselines.diffused_text import lsa
from vhe.baselines.tfidf import tfidf_rows
from vhe.predict.scoring import CosineMethod, unit_rows

if TYPE_CHECKING:
    from scipy import sparse

    from vhe.data.network import TextNetwork

TEXT_DIMENSIONS = 200


class TADW(CosineMethod):
    """Alternating least squares, each step solved exactly; M is never written down.

    The paper predicts no links; a pair is scored by cosine, the two halves of a row scaled to
    unit length first.

    Parameters
    ----------
    dimensions : of each half, W and HT.
    penalty : λ.
    rounds : of solving for W, then for H.
    random_state : seed.
    """

    def __init__(
        self,
        *,
        dimensions: int = 100,
        penalty: float = 0.2,
        rounds: int = 10,
        random_state: int = 0,
    ) -> None:
        self.dimensions = dimensions
        self.penalty = penalty
        self.rounds = rounds
        self.random_state = random_state

    def fit(self, network: TextNetwork) -> Self:
        """Reduce the texts and factorise."""
        text = lsa(tfidf_rows(network.texts), TEXT_DIMENSIONS, self.random_state)  # T', (n, f)
        walk = transitions(network.links, len(network))
        rng = np.random.default_rng(self.random_state)
        h = rng.standard_normal((self.dimensions, text.shape[1]))
        walked_text = two_steps(walk, text)  # M T'
        for _ in range(self.rounds):
            w = solve_w(walk, text, h, self.penalty)
            h = solve_h(walked_text, text, w, self.penalty)
        halves = [unit_rows(w.T), unit_rows(text @ h.T)]
        self.embedding_ = np.concatenate(halves, axis=1).astype(np.float32)
        return self


def transitions(links: np.ndarray, vertices: int) -> sparse.csr_array:
    """P, (n, n): a step to any neighbour; rows of vertices without links are empty."""
    from scipy import sparse

    row, column = np.concatenate([links, links[:, ::-1]]).T
    share = 1 / np.bincount(row, minlength=vertices)[row]
    return sparse.csr_array((share, (row, column)), (vertices, vertices))


def two_steps(walk: sparse.csr_array, rows: np.ndarray) -> np.ndarray:
    """M X for rows X (n, d), with M = (P + P²)/2."""
    once = walk @ rows
    return (once + walk @ once) / 2


def solve_w(walk: sparse.csr_array, text: np.ndarray, h: np.ndarray, penalty: float) -> np.ndarray:
    """W (k, n) that is best for this H: (2XX' + λI) W = 2XM' with X = HT."""
    x = text @ h.T  # X', (n, k)
    square = 2 * x.T @ x + penalty * np.eye(x.shape[1])
    return np.linalg.solve(square, 2 * two_steps(walk, x).T)


def solve_h(walked_text: np.ndarray, text: np.ndarray, w: np.ndarray, penalty: float) -> np.ndarray:
    """H (k, f) that is best for this W: 2WW'H TT' + λH = 2W MT'.

    In the eigenvectors of WW' and of TT' each entry of H has an equation of its own.
    """
    strength_w, left = np.linalg.eigh(w @ w.T)
    strength_t, right = np.linalg.eigh(text.T @ text)
    turned = left.T @ (2 * w @ walked_text) @ right
    turned /= 2 * strength_w[:, None] * strength_t + penalty
    return left @ turned @ right.T
