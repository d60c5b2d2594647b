"""Random walks over the links of a network, uniform or biased as in node2vec; all walks are
extended by one vertex at a time, vectorised."""

from __future__ import annotations

import numpy as np

from vhe.data.sampling import LinkSet


class Walker:
    """Walks over undirected links; a vertex without links is its own only neighbour.

    Parameters
    ----------
    links : (k, 2) array, distinct and without loops.
    vertices : number of vertices.
    """

    def __init__(self, links: np.ndarray, vertices: int) -> None:
        isolated = np.setdiff1d(np.arange(vertices), links)
        own = isolated.repeat(2).reshape(-1, 2)
        ends = np.concatenate([links, links[:, ::-1], own])
        source, self._neighbours = np.unique(ends, axis=0).T
        self._degrees = np.bincount(source, minlength=vertices)  # (n,) at least 1
        self._first = np.cumsum(self._degrees) - self._degrees
        self.vertices = vertices
        self._link_set = LinkSet(links, vertices)
        self.linked = np.setdiff1d(np.arange(vertices), isolated)  # vertices with links

    def walks(
        self,
        starts: np.ndarray,
        length: int,
        rng: np.random.Generator,
        p: float = 1.0,
        q: float = 1.0,
    ) -> np.ndarray:
        """A walk from each of ``starts``, which is its first vertex: (len(starts), length) int32.

        After a step from t to v, the next vertex is a neighbour x of v with probability
        proportional to 1/p if x = t, to 1 if x and t are linked, and to 1/q otherwise (Grover &
        Leskovec 2016, section 3.2). With p = q = 1 all neighbours are equally likely.
        """
        walks = [starts]
        while len(walks) < length:
            if len(walks) == 1 or p == q == 1:
                walks.append(self._uniform_step(walks[-1], rng))
            else:
                walks.append(self._biased_step(walks[-2], walks[-1], p, q, rng))
        return np.stack(walks, axis=1, dtype=np.int32, casting="same_kind")

    def corpus(
        self,
        repetitions: int,
        length: int,
        rng: np.random.Generator,
        p: float = 1.0,
        q: float = 1.0,
    ) -> np.ndarray:
        """``repetitions`` walks from each linked vertex, in random order: (walks, length)."""
        starts = (rng.permutation(self.linked) for _ in range(repetitions))
        return np.concatenate([self.walks(each, length, rng, p, q) for each in starts])

    def _uniform_step(self, at: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return self._neighbours[self._first[at] + rng.integers(self._degrees[at])]

    def _biased_step(
        self, before: np.ndarray, at: np.ndarray, p: float, q: float, rng: np.random.Generator
    ) -> np.ndarray:
        """Rejection sampling: a uniform proposal is accepted in proportion to its weight."""
        following = np.empty_like(at)
        highest = max(1 / p, 1.0, 1 / q)
        waiting = np.arange(len(at))
        while len(waiting):
            t, v = before[waiting], at[waiting]
            x = self._uniform_step(v, rng)
            weight = np.where(x == t, 1 / p, np.where(self._link_set.linked(t, x), 1.0, 1 / q))
            accepted = (rng.random(len(x)) * highest < weight) | (self._degrees[v] == 1)
            following[waiting[accepted]] = x[accepted]
            waiting = waiting[~accepted]
        return following
