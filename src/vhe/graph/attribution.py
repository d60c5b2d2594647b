"""Exact contributions of words to the score of a pair in the graph model.

The posterior mean of a vertex is z = t + s with t = (Λ_i / A_ii) m the part of its own code and s
the part of its neighbours. The cosine of two codes is the sum of

    own part         ½ (t_a·z_b + t_b·z_a) / (‖z_a‖ ‖z_b‖)
    structure part   ½ (s_a·z_b + s_b·z_a) / (‖z_a‖ ‖z_b‖)

which are the Shapley values of both. The code m consists of a text code and of the code of a vector
(`vhe.text.vector_codes`), so the own part splits into the same two. With the normalising length
taken as fixed, a text code is a sum over words plus a constant: each word has an exact contribution
to the text part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vhe.graph.model import Vectors
from vhe.text.lsa import CENTRE_SHARE, EMPTY_CENTRE


@dataclass(frozen=True)
class CodeParts:
    """One end of a pair.

    Attributes
    ----------
    tokens : (L,) words of the text
    vector : (p,) code of the vector
    code : (d + p,) posterior mean
    own_share : Λ_i / A_ii
    """

    tokens: NDArray[np.int32]
    vector: Vectors
    code: Vectors
    own_share: float


@dataclass(frozen=True)
class Attribution:
    """Contributions of the tokens of two texts, (L_a,) and (L_b,), of the texts, and of vectors."""

    source: Vectors
    target: Vectors
    text_score: float
    vector_score: float


def attribute(
    words: Vectors, centre: Vectors, encoder_weight: float, ends: tuple[CodeParts, CodeParts]
) -> Attribution:
    """Contributions to the cosine of two codes, for word vectors (1 + V, d)."""
    parts, constants, vectors = [], [], 0.0
    d = words.shape[1]
    for end, other in (ends, ends[::-1]):
        text, vector = rates(ends, end, encoder_weight)
        partner = other.code[:d]
        found = words[end.tokens] * _damping(end.tokens)[:, None]  # (L, d), summing to u
        norm = max(float(np.linalg.norm(found.sum(axis=0))), 1e-12)
        parts.append((text * d**0.5 / norm * (found @ partner)).astype(np.float32))
        share = -CENTRE_SHARE if len(end.tokens) else EMPTY_CENTRE
        constants.append(text * share * float(centre @ partner))
        vectors += vector * float(end.vector @ other.code[d:])
    total = float(sum(map(np.sum, parts)) + sum(constants))
    return Attribution(parts[0], parts[1], total, vectors)


def rates(
    ends: tuple[CodeParts, CodeParts], end: CodeParts, encoder_weight: float
) -> tuple[float, float]:
    """What a unit of the text code, and of the vector code, of one end adds to the cosine per unit
    of the other end's code."""
    length = float(np.linalg.norm(ends[0].code) * np.linalg.norm(ends[1].code)) or 1.0
    own = end.own_share / (2 * length)
    return own * (1 - encoder_weight) ** 0.5, own * encoder_weight**0.5


def _damping(tokens: NDArray[np.int32]) -> Vectors:
    """(1 + log count) / count of each token, so that its occurrences sum to the damped count."""
    _, position, counts = np.unique(tokens, return_inverse=True, return_counts=True)
    return ((1 + np.log(counts)) / counts)[position].astype(np.float32)
