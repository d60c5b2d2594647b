"""Which words make the score of a pair: exact contributions in the graph model.

The posterior mean of a vertex is z = t + s with t = (Λ_i / A_ii) m the part of its own text and s
the part of its neighbours. The cosine of two codes is the sum of

    text part        ½ (t_a·z_b + t_b·z_a) / (‖z_a‖ ‖z_b‖)
    structure part   ½ (s_a·z_b + s_b·z_a) / (‖z_a‖ ‖z_b‖)

which are the Shapley values of text and structure. The text code m is, with its length as given, a
sum over words and a constant, so that each word has an exact contribution to the text part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vhe.graph.model import Vectors
from vhe.text.lsa import CENTRE_SHARE, EMPTY_CENTRE


@dataclass(frozen=True)
class Attribution:
    """Contributions of the tokens of two texts, (L_a,) and (L_b,), and the whole text part."""

    source: Vectors
    target: Vectors
    text_score: float


def attribute(
    words: Vectors,
    centre: Vectors,
    tokens: tuple[NDArray[np.int32], NDArray[np.int32]],
    codes: tuple[Vectors, Vectors],
    own_shares: tuple[float, float],
) -> Attribution:
    """Contributions to the cosine of two codes (d,), for word vectors (1 + V, d)."""
    length = float(np.linalg.norm(codes[0]) * np.linalg.norm(codes[1])) or 1.0
    parts, constants = [], []
    for own, these, other in zip(own_shares, tokens, codes[::-1], strict=True):
        vectors = words[these] * _damping(these)[:, None]  # (L, d), summing to u
        norm = max(float(np.linalg.norm(vectors.sum(axis=0))), 1e-12)
        scale = own * words.shape[1] ** 0.5 / norm / (2 * length)
        parts.append((scale * (vectors @ other)).astype(np.float32))
        share = -CENTRE_SHARE if len(these) else EMPTY_CENTRE
        constants.append(own * share * float(centre @ other) / (2 * length))
    return Attribution(parts[0], parts[1], float(sum(map(np.sum, parts)) + sum(constants)))


def _damping(tokens: NDArray[np.int32]) -> Vectors:
    """(1 + log count) / count of each token, so that its occurrences sum to the damped count."""
    _, position, counts = np.unique(tokens, return_inverse=True, return_counts=True)
    return ((1 + np.log(counts)) / counts)[position].astype(np.float32)
