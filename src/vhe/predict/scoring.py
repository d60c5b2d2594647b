"""The contract of VHE and all baselines, which one evaluation serves, and cosine scoring."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

import numpy as np

from vhe.runtime.arrays import unit_rows

if TYPE_CHECKING:
    from scipy import sparse

    from vhe.data.network import TextNetwork

__all__ = ["CosineMethod", "Method"]

PAIRS_AT_ONCE = 2**15  # keeps the gathered rows of long lists of pairs small


class Method(Protocol):
    """A way to embed a text network and to score pairs of its vertices.

    A method takes its seed in its constructor and gives the same result for the same seed. Scores
    are finite for every vertex, with or without links and text; higher means likelier.
    """

    @property
    def embedding_(self) -> np.ndarray | sparse.csr_array:
        """(n, d), rows follow ``network.ids``."""

    def fit(self, network: TextNetwork) -> Self:
        """Learn from the network and return itself."""

    def score_indices(self, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Scores of the pairs (sources[k], targets[k]), vertex numbers: (m,)."""

    def score_matrix(self, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Scores of each source with each target: (len(sources), len(targets))."""


class CosineMethod:
    """Scores a pair by the cosine of its rows of ``embedding_``, which ``fit`` must set.

    A row of zeros has cosine 0 with everything.
    """

    embedding_: np.ndarray  # (n, d)

    def score_indices(self, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Cosines of the pairs (sources[k], targets[k]): (m,)."""
        # Only the requested rows are scaled, so that one pair of a large network is cheap.
        asked, place = np.unique(np.concatenate([sources, targets]), return_inverse=True)
        unit = unit_rows(self.embedding_[asked])
        first, second = place[: len(sources)], place[len(sources) :]
        scores = np.empty(len(sources), dtype=unit.dtype)
        for start in range(0, len(sources), PAIRS_AT_ONCE):
            part = slice(start, start + PAIRS_AT_ONCE)
            scores[part] = np.einsum("md,md->m", unit[first[part]], unit[second[part]])
        return scores

    def score_matrix(self, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Cosines of each source with each target: (len(sources), len(targets))."""
        cosines: np.ndarray = (
            unit_rows(self.embedding_[sources]) @ unit_rows(self.embedding_[targets]).T
        )
        return cosines
