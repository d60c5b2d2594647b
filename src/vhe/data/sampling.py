"""Training pairs of vertices: linked pairs, unlinked pairs (negatives), and pairs with hidden edge.

A batch depends on the seed and the step only, so that training can resume at any step and several
processes can draw the same batch without communication.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from vhe.runtime.arrays import distinct

TRIES = 8  # attempts to draw a negative that is not a link


def random_stream(seed: int, *key: int) -> np.random.Generator:
    """Return the random generator of one purpose: the same key gives the same numbers."""
    return np.random.default_rng([seed, *key])


@dataclass(frozen=True)
class Pairs:
    """Pairs of vertices (i, j) with w_ij; ``known`` is false where the edge is hidden."""

    i: NDArray[np.int64]  # (batch,)
    j: NDArray[np.int64]
    links: NDArray[np.float32]
    known: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.i)

    def __getitem__(self, rows: NDArray[np.int64]) -> Pairs:
        return Pairs(*(getattr(self, f.name)[rows] for f in fields(self)))


class LinkSet:
    """The links of a network, for testing whether many pairs are linked."""

    def __init__(self, links: NDArray[np.int64], vertices: int) -> None:
        self.vertices = vertices
        self._keys = distinct(self._key(links[:, 0], links[:, 1]))

    def _key(self, i: NDArray[np.int64], j: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.minimum(i, j) * self.vertices + np.maximum(i, j)

    def linked(self, i: NDArray[np.int64], j: NDArray[np.int64]) -> NDArray[np.bool_]:
        if not len(self._keys):
            return np.zeros(np.broadcast(i, j).shape, dtype=bool)
        key = self._key(i, j)
        at = np.minimum(np.searchsorted(self._keys, key), len(self._keys) - 1)
        found: NDArray[np.bool_] = self._keys[at] == key
        return found


class LinkBatches:
    """Passes over all links in random order, ``step_links`` links per step.

    Each epoch has its own order; a step may end one epoch and begin the next. A step takes at most
    as many links as there are.
    """

    def __init__(self, links: NDArray[np.int64], step_links: int, seed: int) -> None:
        self.count, self.seed = len(links), seed
        self.step_links = min(step_links, self.count)
        self._order = lru_cache(maxsize=2)(self._shuffle)

    @property
    def steps_in_epoch(self) -> float:
        return self.count / self.step_links

    def numbers(self, step: int) -> NDArray[np.int64]:
        """Return the row numbers of the links of a step: (step_links,)."""
        position = np.arange(step * self.step_links, (step + 1) * self.step_links)
        epoch, position = np.divmod(position, self.count)
        first, last = self._order(int(epoch[0])), self._order(int(epoch[-1]))
        return np.where(epoch == epoch[0], first[position], last[position])

    def _shuffle(self, epoch: int) -> NDArray[np.int64]:
        return random_stream(self.seed, 2, epoch).permutation(self.count)


class PairSampler:
    """Batches of training pairs.

    A batch takes the next links of a pass over all links in random order (`LinkBatches`). For each
    link it draws ``negatives`` unlinked pairs by replacing one end with a vertex of probability
    ∝ (1 + degree)^0.75, so that vertices without links are drawn, too. A share ``alpha`` of all
    pairs has its edge hidden (section 3.1, 'incomplete edge observations').
    """

    def __init__(
        self,
        links: NDArray[np.int64],
        vertices: int,
        *,
        batch_size: int,
        negatives: int,
        alpha: float,
        seed: int,
    ) -> None:
        self.links, self.seed, self.alpha, self.negatives = links, seed, alpha, negatives
        self.link_set = LinkSet(links, vertices)
        self.batches = LinkBatches(links, max(1, batch_size // (1 + negatives)), seed)
        degree = np.bincount(links.ravel(), minlength=vertices)
        self._cumulative_weight = np.cumsum((1.0 + degree) ** 0.75)

    @property
    def steps_in_epoch(self) -> float:
        return self.batches.steps_in_epoch

    def batch(self, step: int) -> Pairs:
        rng = random_stream(self.seed, 1, step)
        linked = self.links[self.batches.numbers(step)]
        flip = rng.random(len(linked)) < 0.5
        i = np.where(flip, linked[:, 1], linked[:, 0])
        j = np.where(flip, linked[:, 0], linked[:, 1])
        negative_i = np.tile(i, self.negatives)
        negative_j, unlinked = self._unlinked(negative_i, rng)
        negative_i, negative_j = negative_i[unlinked], negative_j[unlinked]
        w = np.repeat(np.array([1, 0], dtype=np.float32), [len(i), len(negative_i)])
        known = rng.random(len(w)) >= self.alpha
        return Pairs(np.append(i, negative_i), np.append(j, negative_j), w, known)

    def _unlinked(
        self, i: NDArray[np.int64], rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Draw a vertex that is not linked with each i; return also where one was found."""
        j = np.zeros_like(i)
        missing = np.ones(len(i), dtype=bool)
        for _ in range(TRIES):
            drawn = rng.random(int(missing.sum())) * self._cumulative_weight[-1]
            j[missing] = np.searchsorted(self._cumulative_weight, drawn, side="right")
            missing = (i == j) | self.link_set.linked(i, j)
            if not missing.any():
                break
        return j, ~missing


def length_buckets(
    pairs: Pairs, lengths: NDArray[np.int64], area: int
) -> Iterator[NDArray[np.int64]]:
    """Divide a batch into buckets of pairs with similar lengths, to reduce padding.

    The word-similarity matrices of the pairs in a bucket have about ``area`` entries in total.
    """
    first, second = lengths[pairs.i], lengths[pairs.j]
    size = np.maximum(first * second, 1)
    parts = max(1, round(float(size.sum()) / area))
    bands = max(1, round(parts**0.5))  # by the first text; each is divided by the second
    by_first = np.argsort(first, kind="stable")
    band = np.empty(len(pairs), dtype=np.int64)
    band[by_first] = _even_cuts(size[by_first], bands)
    order = np.lexsort((first, second, band))
    part = _even_cuts(size[order], parts)
    yield from np.split(order, np.flatnonzero(np.diff(part)) + 1)


def _even_cuts(size: NDArray[np.int64], parts: int) -> NDArray[np.int64]:
    """Return the part of each item when consecutive items are divided into equal-sized parts."""
    before = np.cumsum(size) - size
    return (before * parts) // max(1, int(size.sum()))
