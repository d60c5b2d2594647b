"""Pairs of vertices to learn from: linked ones, unlinked ones, and some whose edge is hidden.

Every batch is a function of the seed and the step alone, so a run can go on from any step and
several processes can share the work without telling each other what they drew.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

TRIES = 8  # rounds of drawing negatives again that turned out to be links


def stream(seed: int, *key: int) -> np.random.Generator:
    """Random numbers that belong to one purpose: the same key gives the same numbers."""
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
    """The links of a network, for asking of many pairs at once whether they are linked."""

    def __init__(self, links: NDArray[np.int64], vertices: int) -> None:
        self.vertices = vertices
        self._keys = np.unique(self._key(links[:, 0], links[:, 1]))

    def _key(self, i: NDArray[np.int64], j: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.minimum(i, j) * self.vertices + np.maximum(i, j)

    def linked(self, i: NDArray[np.int64], j: NDArray[np.int64]) -> NDArray[np.bool_]:
        if not len(self._keys):
            return np.zeros(np.broadcast(i, j).shape, dtype=bool)
        key = self._key(i, j)
        at = np.minimum(np.searchsorted(self._keys, key), len(self._keys) - 1)
        found: NDArray[np.bool_] = self._keys[at] == key
        return found


class PairSampler:
    """Batches of training pairs.

    A batch takes the next links of a shuffled pass over all links. For each it draws
    ``negatives`` unlinked pairs by atomic_write one end with a vertex of probability
    ∝ (1 + degree)^0.75, so that a vertex without links takes part too. A share ``alpha`` of all
    pairs has its edge hidden (section 3.1, 'incomplete edge observations').

    A step takes ``step_links`` links of the pass, or as many as a batch has if that is more;
    those of its batch come first.
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
        step_links: int = 0,
    ) -> None:
        self.links, self.seed, self.alpha, self.negatives = links, seed, alpha, negatives
        self.link_set = LinkSet(links, vertices)
        self.links_in_batch = min(len(links), max(1, batch_size // (1 + negatives)))
        self.step_links = max(self.links_in_batch, min(step_links, len(links) // 3))
        degree = np.bincount(links.ravel(), minlength=vertices)
        self._cumulated = np.cumsum((1.0 + degree) ** 0.75)
        self._order = lru_cache(maxsize=2)(self._shuffle)

    @property
    def steps_in_epoch(self) -> float:
        return len(self.links) / self.step_links

    def link_numbers(self, step: int) -> NDArray[np.int64]:
        """Which links a step learns from, by their numbers: (step_links,)."""
        place = np.arange(step * self.step_links, (step + 1) * self.step_links)
        epoch, place = np.divmod(place, len(self.links))
        first, last = self._order(int(epoch[0])), self._order(int(epoch[-1]))
        return np.where(epoch == epoch[0], first[place], last[place])

    def batch(self, step: int) -> Pairs:
        rng = stream(self.seed, 1, step)
        linked = self.links[self.link_numbers(step)[: self.links_in_batch]]
        flip = rng.random(len(linked)) < 0.5
        i = np.where(flip, linked[:, 1], linked[:, 0])
        j = np.where(flip, linked[:, 0], linked[:, 1])
        negative_i = np.tile(i, self.negatives)
        negative_j, unlinked = self._unlinked(negative_i, rng)
        negative_i, negative_j = negative_i[unlinked], negative_j[unlinked]
        w = np.concatenate([np.ones(len(i)), np.zeros(len(negative_i))]).astype(np.float32)
        return Pairs(
            np.concatenate([i, negative_i]),
            np.concatenate([j, negative_j]),
            w,
            rng.random(len(w)) >= self.alpha,
        )

    def _unlinked(
        self, i: NDArray[np.int64], rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """A vertex for each i that is not linked to it, and where one was found."""
        j = np.zeros_like(i)
        wanting = np.ones(len(i), dtype=bool)
        for _ in range(TRIES):
            drawn = rng.random(int(wanting.sum())) * self._cumulated[-1]
            j[wanting] = np.searchsorted(self._cumulated, drawn, side="right")
            wanting = (i == j) | self.link_set.linked(i, j)
            if not wanting.any():
                break
        return j, ~wanting

    def _shuffle(self, epoch: int) -> NDArray[np.int64]:
        return stream(self.seed, 2, epoch).permutation(len(self.links))


def longer_first(pairs: Pairs, lengths: NDArray[np.int64]) -> tuple[Pairs, NDArray[np.bool_]]:
    """The pairs with their longer text as i (both ends play the same part), and which swapped."""
    swap = lengths[pairs.i] < lengths[pairs.j]
    i, j = np.where(swap, pairs.j, pairs.i), np.where(swap, pairs.i, pairs.j)
    return replace(pairs, i=i, j=j), swap


def length_buckets(
    pairs: Pairs, lengths: NDArray[np.int64], area: int
) -> Iterator[NDArray[np.int64]]:
    """Cut a batch into rows of pairs with similar lengths, so that little padding is computed.

    A bucket holds pairs whose tables of word similarities have about ``area`` entries together.
    """
    first, second = lengths[pairs.i], lengths[pairs.j]
    size = np.maximum(first * second, 1)
    parts = max(1, round(float(size.sum()) / area))
    bands = max(1, round(parts**0.5))  # by the first text; in each, parts by the second
    by_first = np.argsort(first, kind="stable")
    band = np.empty(len(pairs), dtype=np.int64)
    band[by_first] = _even_cuts(size[by_first], bands)
    order = np.lexsort((first, second, band))
    part = _even_cuts(size[order], parts)
    yield from np.split(order, np.flatnonzero(np.diff(part)) + 1)


def _even_cuts(size: NDArray[np.int64], parts: int) -> NDArray[np.int64]:
    """The part each item belongs to when a row of items is cut into parts of equal size."""
    before = np.cumsum(size) - size
    return (before * parts) // max(1, int(size.sum()))
