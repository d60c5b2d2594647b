"""TADW (Yang et al., IJCAI 2015): DeepWalk as a factorisation of the matrix of short walks, with
the texts as one factor.

min_{W, H} ‖M - W'HT‖² + λ/2 (‖W‖² + ‖H‖²), M = (P + P²)/2 with P the transition matrix of the
network, T (200, n) the TF-IDF of the texts reduced by SVD. The embedding is [W ; HT].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import sparse

from vhe.baselines.matrices import lsa, transition_matrix
from vhe.baselines.tfidf import tfidf_rows
from vhe.data.network import TextNetwork
from vhe.predict.scoring import CosineMethod
from vhe.runtime.arrays import unit_rows

TEXT_DIMENSIONS = 200


@dataclass(kw_only=True)
class TADW(CosineMethod):
    """Alternating least squares with exact steps; M is never computed explicitly.

    The paper does not predict links; here a pair is scored by cosine, after both halves of a row
    are scaled to unit length.

    Parameters
    ----------
    dimensions : dimension of each half, W and HT.
    penalty : λ.
    iterations : solutions for W and then for H.
    random_state : seed.
    """

    dimensions: int = 100
    penalty: float = 0.2
    iterations: int = 10
    random_state: int = 0

    def fit(self, network: TextNetwork) -> Self:
        """Compute the LSA of the texts and factorise M."""
        text = lsa(tfidf_rows(network.texts), TEXT_DIMENSIONS, self.random_state)  # T', (n, f)
        transition = transition_matrix(network.links, len(network))
        rng = np.random.default_rng(self.random_state)
        h = rng.standard_normal((self.dimensions, text.shape[1]))
        walked_text = multiply_m(transition, text)  # M T'
        for _ in range(self.iterations):
            w = solve_w(transition, text, h, self.penalty)
            h = solve_h(walked_text, text, w, self.penalty)
        halves = [unit_rows(w.T), unit_rows(text @ h.T)]
        self.embedding_ = np.concatenate(halves, axis=1).astype(np.float32)
        return self


def multiply_m(transition: sparse.csr_array, rows: np.ndarray) -> np.ndarray:
    """M X for rows X (n, d), with M = (P + P²)/2."""
    one_step = transition @ rows
    return (one_step + transition @ one_step) / 2


def solve_w(
    transition: sparse.csr_array, text: np.ndarray, h: np.ndarray, penalty: float
) -> np.ndarray:
    """The optimal W (k, n) for this H: (2XX' + λI) W = 2XM' with X = HT."""
    x = text @ h.T  # X', (n, k)
    square = 2 * x.T @ x + penalty * np.eye(x.shape[1])
    return np.linalg.solve(square, 2 * multiply_m(transition, x).T)


def solve_h(walked_text: np.ndarray, text: np.ndarray, w: np.ndarray, penalty: float) -> np.ndarray:
    """The optimal H (k, f) for this W: 2WW'H TT' + λH = 2W MT'.

    In the eigenbases of WW' and TT' the equations of the entries of H are independent.
    """
    eigenvalues_w, basis_w = np.linalg.eigh(w @ w.T)
    eigenvalues_t, basis_t = np.linalg.eigh(text.T @ text)
    h = basis_w.T @ (2 * w @ walked_text) @ basis_t
    h /= 2 * eigenvalues_w[:, None] * eigenvalues_t + penalty
    return basis_w @ h @ basis_t.T
