"""What a method may see and what it is asked about: edge and vertex splits under the two
protocols, the negatives of each held-out edge, and the checks that nothing leaks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from vhe.errors import VHEError

if TYPE_CHECKING:
    from vhe.data.network import TextNetwork

Protocol = Literal["lines", "clean"]

NEGATIVES = 100  # of each held-out edge
BLOCK = 1024  # held-out edges whose negatives are drawn at once

# Each use of a seed has its own stream, so that no choice follows another.
NEGATIVE_STREAM = 1
VALIDATION_STREAM = 2


class NonNeighbourSampler:
    """Draws vertices that a given vertex is not linked with, uniformly and without rejection.

    With the neighbours of a vertex (and itself) sorted as f_0 < f_1 < ..., its r-th stranger is
    r + #{k : f_k - k <= r}: one binary search for all draws together, however dense the network.

    Parameters
    ----------
    links : (k, 2) array, distinct and without loops.
    vertices : number of vertices.
    """

    def __init__(self, links: np.ndarray, vertices: int) -> None:
        own = np.arange(vertices)
        owner = np.concatenate([links[:, 0], links[:, 1], own])
        known = np.concatenate([links[:, 1], links[:, 0], own])
        order = np.lexsort((known, owner))
        owner, known = owner[order], known[order]
        occupied = np.bincount(owner, minlength=vertices)
        self._stride = vertices + 1
        self._start = np.cumsum(occupied) - occupied
        place = np.arange(len(owner)) - self._start[owner]
        self._keys = owner * self._stride + known - place
        self.count = vertices - occupied  # (n,) strangers of each vertex

    def draw(self, vertices: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """One stranger for each of ``vertices`` (any shape); each must have at least one."""
        rank = rng.integers(self.count[vertices])
        passed = np.searchsorted(self._keys, vertices * self._stride + rank, side="right")
        return rank + passed - self._start[vertices]


@dataclass(frozen=True, eq=False, repr=False)
class LinkTest:
    """Held-out edges and how to ask about them.

    Attributes
    ----------
    train : what a method is fitted on: all vertices, the training edges.
    network : the whole network; its links are what ``clean`` negatives are checked against.
    pairs : (m, 2) held-out edges, vertex numbers of ``network``.
    protocol : ``clean`` or ``lines``.
    ratio, seed : how the split was made.
    """

    train: TextNetwork
    network: TextNetwork
    pairs: np.ndarray
    protocol: Protocol
    ratio: float
    seed: int

    def __len__(self) -> int:
        return len(self.pairs)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({len(self)} held-out edges of {self.network.name}, "
            f"protocol={self.protocol!r}, ratio={self.ratio}, seed={self.seed})"
        )

    @cached_property
    def candidates(self) -> np.ndarray:
        """Sorted vertices that negatives are drawn from.

        ``clean``: all of them. ``lines``: those in a held-out line (all, where that is only one).
        """
        found = np.unique(self.pairs)
        if self.protocol == "lines" and len(found) > 1:
            return found
        return np.arange(len(self.network))

    @cached_property
    def leak(self) -> dict[str, float]:
        """Shares of held-out edges that training gives away; see `count_leaks`."""
        return count_leaks(self.train, self)

    def negatives(self) -> np.ndarray:
        """Negatives of every held-out edge, the same at each call: (m, 100, 2) vertex numbers.

        ``clean``: the first 50 replace the target, the other 50 the source, by a vertex drawn
        from all that are not linked with the end that stays (and are not that end), with
        replacement. An end that is linked with every other vertex has no such negative: then the
        other end stays instead, and where that is full as well, the negative is an unlinked pair
        that starts at a random vertex.
        ``lines``: all replace the target by one of `candidates` other than the target, the source
        and its neighbours included, as earlier scripts do.
        """
        table = np.empty((len(self), NEGATIVES, 2), dtype=np.int64)
        start = 0
        for block in self.negative_blocks():
            table[start : start + len(block)] = block
            start += len(block)
        return table

    def negative_blocks(self) -> Iterator[np.ndarray]:
        """The rows of `negatives`, in order, a bounded number at a time."""
        rng = np.random.default_rng([self.seed, NEGATIVE_STREAM])
        blocks = (self.pairs[start : start + BLOCK] for start in range(0, len(self), BLOCK))
        if self.protocol == "lines":
            for pairs in blocks:
                yield _other_targets(pairs, self.candidates, rng)
            return
        strangers = NonNeighbourSampler(self.network.links, len(self.network))
        if not strangers.count.any():
            raise VHEError(
                f"All pairs of vertices of {self.network.name} are linked, so there is nothing to "
                "compare a held-out edge with; use a network in which some pairs are not linked."
            )
        for pairs in blocks:
            yield _unlinked(pairs, strangers, rng)


@dataclass(frozen=True, eq=False, repr=False)
class UnseenTest(LinkTest):
    """Edges with at least one end that was not there at training.

    ``train`` is the network that the seen vertices induce. ``network`` is the whole network in
    another order: the vertices of ``train`` first, in their order, then those of `unseen`. So a
    method that was fitted on ``train`` and has been given the texts of `unseen`, in order, is
    asked by the numbers of ``pairs`` as they are; and ``network.with_edges(train.edges)`` is what
    a method may see that needs all texts at once.
    """

    @cached_property
    def unseen(self) -> TextNetwork:
        """Ids and texts (and labels) of the unseen vertices, without any edge."""
        vertices = np.arange(len(self.train), len(self.network))
        no_edges = np.empty((0, 2), dtype=np.int64)
        return self.network.subnetwork(vertices).with_edges(no_edges)


def split_edges(
    network: TextNetwork, ratio: float, seed: int = 0, protocol: Protocol = "clean"
) -> tuple[TextNetwork, LinkTest]:
    """Hold out edges at random; ``ratio`` of them stay for training (at least one on each side).

    ``clean`` splits the links (undirected, distinct, no loops); ``lines`` splits the lines as they
    were given, which leaks (`LinkTest.leak`) and is_available comparison with published figures only.
    """
    _check(network, ratio, seed, protocol)
    edges = network.links if protocol == "clean" else network.edges
    if len(edges) < 2:
        raise VHEError(
            f"{network.name} has {len(edges)} edge(s), too few to hold one out; "
            "splitting needs at least two."
        )
    seen, held_out = _divide(len(edges), ratio, seed)
    directed = network.directed and protocol == "lines"
    train = network.with_edges(edges[seen], directed=directed)
    test = LinkTest(train, network, edges[held_out], protocol, float(ratio), int(seed))
    assert_no_leak(train, test)
    return train, test


def split_vertices(
    network: TextNetwork, ratio: float, seed: int = 0, protocol: Protocol = "clean"
) -> tuple[TextNetwork, UnseenTest]:
    """Hold out vertices at random; ``ratio`` of them are seen, with the edges among themselves.

    The test has every link (``lines``: every line) with at least one unseen end.
    """
    _check(network, ratio, seed, protocol)
    seen, unseen = _divide(len(network), ratio, seed)
    train = network.subnetwork(seen)
    whole = network.subnetwork(np.concatenate([seen, unseen]))
    edges = whole.links if protocol == "clean" else whole.edges
    pairs = edges[edges.max(axis=1, initial=0) >= len(seen)]
    if not len(pairs):
        raise VHEError(
            f"None of the {len(unseen)} unseen vertices of {network.name} has an edge, so there is "
            "nothing to ask; use another seed or a smaller ratio."
        )
    test = UnseenTest(train, whole, pairs, protocol, float(ratio), int(seed))
    assert_no_leak(train, test)
    return train, test


def validation_links(
    links: np.ndarray, share: float, seed: int, at_most: int
) -> tuple[np.ndarray, np.ndarray]:
    """Take ``share`` of the training links out for validation, ``at_most`` that many.

    At least one link stays for training; with a positive share and two links or more, at least
    one is taken out. Both parts keep the order of ``links``.
    """
    if not 0 <= share < 1:
        raise VHEError(f"The share of validation links is {share}; it must be at least 0 and < 1.")
    wanted = max(round(share * len(links)), 1) if share > 0 else 0
    taken = max(min(wanted, at_most, len(links) - 1), 0)
    order = np.random.default_rng([seed, VALIDATION_STREAM]).permutation(len(links))
    return links[np.sort(order[taken:])], links[np.sort(order[:taken])]


def count_leaks(train: TextNetwork, test: LinkTest) -> dict[str, float]:
    """Shares of held-out edges that ``train`` gives away.

    ``repeated``: the same edge is in ``train``; ``reversed``: its reverse is; ``loops``: source
    and target are the same vertex, so that any similarity finds it. Vertices are matched by id.
    """
    size = len(test.network)
    known = test.network.indices(train.ids)[train.edges].reshape(-1, 2)
    source, target = test.pairs[:, 0], test.pairs[:, 1]
    keys = known[:, 0] * size + known[:, 1]
    loop = source == target
    return {
        "repeated": float(np.isin(source * size + target, keys).mean()),
        "reversed": float((np.isin(target * size + source, keys) & ~loop).mean()),
        "loops": float(loop.mean()),
    }


def assert_no_leak(train: TextNetwork, test: LinkTest) -> dict[str, float]:
    """Raise `VHEError` when ``train`` has a held-out edge of a ``clean`` test, in any direction.

    ``lines`` is known to leak: there it only counts. Returns the shares of `count_leaks`.
    """
    leak = count_leaks(train, test)
    if test.protocol == "clean" and any(leak.values()):
        found = ", ".join(f"{share:.1%} {kind}" for kind, share in leak.items() if share)
        raise VHEError(
            f"Training gives away held-out edges of {test.network.name} ({found}); "
            "fit on the training network that came with this test."
        )
    return leak


def _check(network: TextNetwork, ratio: float, seed: int, protocol: str) -> None:
    if protocol not in get_args(Protocol):
        raise VHEError(f"Unknown protocol {protocol!r}; use 'clean' or 'lines'.")
    if not 0 < ratio < 1:
        raise VHEError(f"The ratio is {ratio}; it must lie between 0 and 1, such as 0.55.")
    if seed < 0:
        raise VHEError(f"The seed is {seed}; it must be 0 or greater.")
    if len(network) < 2:
        raise VHEError(f"{network.name} has {len(network)} vertex; splitting needs at least two.")


def _divide(count: int, ratio: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two sorted, disjoint, non-empty sets of row numbers; the first has ``ratio`` of them."""
    order = np.random.default_rng(seed).permutation(count)
    kept = min(max(round(ratio * count), 1), count - 1)
    return np.sort(order[:kept]), np.sort(order[kept:])


def _other_targets(
    pairs: np.ndarray, candidates: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Negatives of the line protocol: (b, 100, 2)."""
    rank = rng.integers(len(candidates) - 1, size=(len(pairs), NEGATIVES))
    rank += rank >= np.searchsorted(candidates, pairs[:, 1])[:, None]  # steps over the target
    sources = np.broadcast_to(pairs[:, :1], rank.shape)
    return np.stack([sources, candidates[rank]], axis=-1)


def _unlinked(
    pairs: np.ndarray, strangers: NonNeighbourSampler, rng: np.random.Generator
) -> np.ndarray:
    """Negatives of the clean protocol: (b, 100, 2)."""
    rows = np.arange(len(pairs))[:, None]
    stays = np.broadcast_to(np.arange(NEGATIVES) >= NEGATIVES // 2, (len(pairs), NEGATIVES))
    full = strangers.count == 0
    stays = stays ^ full[pairs[rows, stays.astype(np.int64)]]
    column = stays.astype(np.int64)
    anchors = pairs[rows, column]
    lost = full[anchors]  # both ends are linked with everything
    anchors[lost] = rng.choice(np.flatnonzero(~full), size=int(lost.sum()))
    drawn = strangers.draw(anchors, rng)
    return np.stack([np.where(stays, drawn, anchors), np.where(stays, anchors, drawn)], axis=-1)
