"""A graph of nine vertices, small enough for dense linear algebra."""

from dataclasses import dataclass

import numpy as np
import pytest

from vhe.graph.model import TextNeighbours
from vhe.graph.prior import GraphPrior

STRENGTH = 1.5


@dataclass(frozen=True)
class SmallGraph:
    """Vertices 7 and 8 have no link, vertex 8 has no near text."""

    links: np.ndarray
    lengths: np.ndarray
    neighbours: TextNeighbours

    def prior(self, text_knn_weight: float = 0.0, links: np.ndarray | None = None) -> GraphPrior:
        return GraphPrior(
            self.links if links is None else links,
            self.lengths,
            self.neighbours,
            link_strength=STRENGTH,
            text_knn_weight=text_knn_weight,
        )

    def dense(
        self, text_knn_weight: float = 0.0, masked: list[int] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Λ (n,) and A (n, n), entry by entry as the module's docstring has them."""
        n = len(self.lengths)
        degree = [sum(v in link for link in self.links.tolist()) for v in range(n)]
        near = [sum(v in pair for pair in self.neighbours.pairs.tolist()) for v in range(n)]
        weights = np.zeros((n, n))
        for number, (i, j) in enumerate(self.links):
            if number not in (masked or []):
                weights[i, j] += STRENGTH / ((degree[i] + 1) * (degree[j] + 1)) ** 0.25
        for (i, j), cosine in zip(self.neighbours.pairs, self.neighbours.cosines, strict=True):
            weights[i, j] += text_knn_weight * cosine / ((near[i] + 1) * (near[j] + 1)) ** 0.5
        weights += weights.T
        precision = np.sqrt(1 + self.lengths)
        precision = precision / np.exp(np.log(precision).mean())
        return precision, np.diag(precision + weights.sum(axis=1)) - weights


@pytest.fixture(scope="session")
def small() -> SmallGraph:
    return SmallGraph(
        links=np.array([[0, 1], [0, 2], [0, 3], [1, 2], [4, 5], [5, 6], [2, 6]]),
        lengths=np.array([3, 0, 10, 5, 1, 40, 7, 2, 300]),
        neighbours=TextNeighbours(
            np.array([[0, 1], [3, 7], [4, 6], [6, 7]]), np.array([0.9, 0.2, 0.5, 0.7], np.float32)
        ),
    )
