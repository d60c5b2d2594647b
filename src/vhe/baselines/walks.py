"""Random walks over the links of a network, all walkers taking a step together: uniform ones, and
node2vec's, which weigh going back, staying near and going away."""

from __future__ import annotations

import numpy as np

from vhe.data.sampling import LinkSet


class Walker:
    """Walks over undirected links; a vertex without links leads to itself only.

    Parameters
    ----------
    links : (k, 2) array, distinct and without loops.
    vertices : number of vertices.
    """

    def __init__(self, links: np.ndarray, vertices: int) -> None:
        alone = np.setdiff1d(np.arange(vertices), links)
        source = np.concatenate([links[:, 0], links[:, 1], alone])
        target = np.concatenate([links[:, 1], links[:, 0], alone])
        self._neighbours = target[np.lexsort((target, source))]
        self._choices = np.bincount(source, minlength=vertices)  # (n,) at least 1
        self._first = np.cumsum(self._choices) - self._choices
        self.vertices = vertices
        self._link_set = LinkSet(links, vertices)
        self.linked = np.setdiff1d(np.arange(vertices), alone)  # the vertices that have links

    def walks(
        self,
        starts: np.ndarray,
        length: int,
        rng: np.random.Generator,
        p: float = 1.0,
        q: float = 1.0,
    ) -> np.ndarray:
        """A walk from each of ``starts``, its start first: (len(starts), length) int32.

        From v, come from t, the next vertex is a neighbour x of v with probability proportional
        to 1/p where x = t, 1 where x and t are linked, and 1/q elsewhere (Grover & Leskovec 2016,
        section 3.2). With p = q = 1 every neighbour is as likely.
        """
        walks = np.empty((length, len(starts)), dtype=np.int32)
        walks[0] = starts
        for k in range(1, length):
            if k == 1 or p == q == 1:
                walks[k] = self._any_neighbour(walks[k - 1].astype(np.int64), rng)
            else:
                walks[k] = self._biased(
                    walks[k - 2].astype(np.int64), walks[k - 1].astype(np.int64), p, q, rng
                )
        return np.ascontiguousarray(walks.T)

    def corpus(
        self,
        rounds: int,
        length: int,
        rng: np.random.Generator,
        p: float = 1.0,
        q: float = 1.0,
    ) -> np.ndarray:
        """``rounds`` walks from each linked vertex, shuffled in each round: (walks, length)."""
        return np.concatenate(
            [
                np.empty((0, length), dtype=np.int32),
                *(
                    self.walks(rng.permutation(self.linked), length, rng, p, q)
                    for _ in range(rounds)
                ),
            ]
        )

    def _any_neighbour(self, at: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return self._neighbours[self._first[at] + rng.integers(self._choices[at])]

    def _biased(
        self, before: np.ndarray, at: np.ndarray, p: float, q: float, rng: np.random.Generator
    ) -> np.ndarray:
        """By rejection: any neighbour is proposed, and taken as often as its weight says."""
        following = np.empty_like(at)
        highest = max(1 / p, 1.0, 1 / q)
        waiting = np.arange(len(at))
        while len(waiting):
            t, v = before[waiting], at[waiting]
            x = self._any_neighbour(v, rng)
            weight = np.where(x == t, 1 / p, np.where(self._link_set.linked(t, x), 1.0, 1 / q))
            taken = (rng.random(len(x)) * highest < weight) | (self._choices[v] == 1)
            following[waiting[taken]] = x[taken]
            waiting = waiting[~taken]
        return following
