"""Ranking scores of held-out links."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def ranking_auc(codes: NDArray[np.float32], links: NDArray[np.int64]) -> float | None:
    """P(cosine of a link > cosine of one of its ends with a vertex that it is not linked with).

    ``codes`` (n, d) belong to the vertices at the ends of the links (m, 2), given by row numbers;
    each end is compared with all of these vertices. None where there is nothing to compare.
    """
    wins = win_rates(codes, links)
    found = wins[np.isfinite(wins)]
    return float(found.mean()) if len(found) else None


def win_rates(codes: NDArray[np.float32], links: NDArray[np.int64]) -> NDArray[np.float64]:
    """For both ends of each link the share of other vertices that score below its partner: (2m,).

    A tie counts one half; NaN where an end has no other vertex to be compared with.
    """
    unit = codes / np.maximum(np.linalg.norm(codes, axis=1, keepdims=True), 1e-12)
    scores = unit @ unit.T
    allowed = ~np.eye(len(codes), dtype=bool)
    allowed[links[:, 0], links[:, 1]] = allowed[links[:, 1], links[:, 0]] = False
    ends, partners = links.ravel(), links[:, ::-1].ravel()
    reached = scores[ends, partners][:, None]
    wins = (scores[ends] < reached) + 0.5 * (scores[ends] == reached)
    counted = allowed[ends]
    with np.errstate(invalid="ignore"):
        return (wins * counted).sum(axis=1) / counted.sum(axis=1)
