"""Edge and vertex splits under the two protocols, negatives of held-out edges, leak checks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from vhe.errors import VHEError
from vhe.runtime.checks import is_integer, is_number
from vhe.runtime.messages import counted

if TYPE_CHECKING:
    from vhe.data.network import TextNetwork

Protocol = Literal["lines", "clean"]

MOST_VALIDATION_LINKS = 256
NEGATIVES = 100  # per held-out edge
BLOCK = 1024  # held-out edges whose negatives are drawn at a time

# Each use of a seed has its own random stream, so that the draws are independent.
NEGATIVE_STREAM = 1
VALIDATION_STREAM = 2


class NonNeighbourSampler:
    """Draws non-neighbours of given vertices, uniformly and without rejection.

    With the neighbours of a vertex (and itself) sorted as f_0 < f_1 < ..., its non-neighbour of
    rank r is r + #{k : f_k - k <= r}: one vectorised binary search, at any density of the network.

    Parameters
    ----------
    links : (k, 2) array, distinct and without loops.
    vertices : number of vertices.
    """

    def __init__(self, links: np.ndarray, vertices: int) -> None:
        own = np.arange(vertices)
        vertex = np.concatenate([links[:, 0], links[:, 1], own])
        neighbour = np.concatenate([links[:, 1], links[:, 0], own])
        order = np.lexsort((neighbour, vertex))
        vertex, neighbour = vertex[order], neighbour[order]
        excluded = np.bincount(vertex, minlength=vertices)
        self._stride = vertices + 1
        self._start = np.cumsum(excluded) - excluded
        rank = np.arange(len(vertex)) - self._start[vertex]
        self._keys = vertex * self._stride + neighbour - rank
        self.count = vertices - excluded  # (n,) non-neighbours of each vertex

    def draw(self, vertices: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw a non-neighbour of each of ``vertices`` (any shape); each must have at least one."""
        rank = rng.integers(self.count[vertices])
        passed = np.searchsorted(self._keys, vertices * self._stride + rank, side="right")
        return rank + passed - self._start[vertices]


@dataclass(frozen=True, eq=False, repr=False)
class LinkTest:
    """Held-out edges and their negatives.

    Attributes
    ----------
    train : the network to fit on: all vertices, the training edges.
    network : the whole network; negatives of ``clean`` are never links of it.
    pairs : (m, 2) held-out edges, vertex indices of ``network``.
    protocol : ``clean`` or ``lines``.
    ratio, seed : arguments of the split.
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

        ``clean``: all. ``lines``: the vertices of held-out lines (all, if that is only one).
        """
        found = np.unique(self.pairs)
        if self.protocol == "lines" and len(found) > 1:
            return found
        return np.arange(len(self.network))

    @cached_property
    def leak(self) -> dict[str, float]:
        """Fractions of held-out edges that the training network contains; see `count_leaks`."""
        return count_leaks(self.train, self)

    def negatives(self) -> np.ndarray:
        """Return the negatives of every held-out edge, the same at each call: (m, 100, 2) indices.

        ``clean``: the first 50 replace the target, the other 50 the source, by a non-neighbour of
        the other end, drawn uniformly with replacement. If that end is linked with all other
        vertices, the roles of the ends are exchanged; if both are, the negative is an unlinked
        pair that starts at a random vertex.
        ``lines``: all replace the target by one of `candidates` other than the target; as in
        earlier publications, it may be the source or one of its neighbours.
        """
        return np.concatenate(list(self.negative_blocks()))

    def negative_blocks(self) -> Iterator[np.ndarray]:
        """Yield the rows of `negatives` in order, at most `BLOCK` at a time."""
        rng = np.random.default_rng([self.seed, NEGATIVE_STREAM])
        blocks = (self.pairs[start : start + BLOCK] for start in range(0, len(self), BLOCK))
        if self.protocol == "lines":
            for pairs in blocks:
                yield _other_targets(pairs, self.candidates, rng)
            return
        sampler = NonNeighbourSampler(self.network.links, len(self.network))
        if not sampler.count.any():
            raise VHEError(
                f"all pairs of vertices of {self.network.name} are linked, so no negatives exist; "
                "use a network in which some pairs are not linked."
            )
        for pairs in blocks:
            yield _unlinked(pairs, sampler, rng)


@dataclass(frozen=True, eq=False, repr=False)
class UnseenTest(LinkTest):
    """Edges with at least one end outside the training network.

    ``train`` is the subnetwork of the seen vertices. ``network`` is the whole network in another
    order: the vertices of ``train`` first, in their order, then those of `unseen`. The indices of
    ``pairs`` are therefore valid for a model that was fitted on ``train`` and then given the texts
    of `unseen` in order. A transductive method is fitted on ``network.with_edges(train.edges)``.
    """

    @cached_property
    def unseen(self) -> TextNetwork:
        """Ids, texts and labels of the unseen vertices, without edges."""
        vertices = np.arange(len(self.train), len(self.network))
        no_edges = np.empty((0, 2), dtype=np.int64)
        return self.network.subnetwork(vertices).with_edges(no_edges)


def split_edges(
    network: TextNetwork,
    ratio: float,
    seed: int = 0,
    protocol: Protocol = "clean",
    *,
    time: ArrayLike | None = None,
) -> tuple[TextNetwork, LinkTest]:
    """Split the edges into a training network and a test; both have at least one edge.

    Parameters
    ----------
    ratio : float
        Share of the edges for training, between 0 and 1.
    seed : int
        Random seed of the split and of the negatives.
    protocol : {"clean", "lines"}
        ``clean`` splits the links (undirected, distinct, no loops). ``lines`` splits the edge lines
        as given, which leaks (`LinkTest.leak`) and serves only for comparison with published
        figures.
    time : (m,) array, optional
        Times of ``network.edges``, numbers or dates. Instead of at random, the edges are split at
        the time at which the share of earlier ones is nearest to ``ratio``; a link begins with its
        earliest edge. ``seed`` is then for the negatives only.

    Returns
    -------
    train : TextNetwork
        All vertices, with the training edges.
    test : LinkTest
        The other edges; see `vhe.evaluate`.
    """
    _check(network, ratio, seed, protocol)
    whole = _as_links(network) if protocol == "clean" else network
    edges = whole.edges
    if len(edges) < 2:
        raise VHEError(
            f"{network.name} has {counted(len(edges), 'edge')}; splitting needs at least two."
        )
    if time is None:
        seen, held_out = _divide(len(edges), ratio, seed)
        train = _with_rows(whole, seen)
    else:
        times = _time_ranks(time, len(network.edges))
        begin = _link_times(network, times) if protocol == "clean" else times
        last = _last_training_time(begin, ratio)
        train = _with_rows(network, np.flatnonzero(times <= last))  # weights of the past only
        train = _as_links(train) if protocol == "clean" else train
        held_out = np.flatnonzero(begin > last)
    test = LinkTest(train, network, edges[held_out], protocol, float(ratio), int(seed))
    assert_no_leak(train, test)
    return train, test


def split_vertices(
    network: TextNetwork, ratio: float, seed: int = 0, protocol: Protocol = "clean"
) -> tuple[TextNetwork, UnseenTest]:
    """Split the vertices at random into seen and unseen ones.

    Parameters
    ----------
    ratio : float
        Share of the vertices that are seen, between 0 and 1.
    seed : int
        Random seed of the split and of the negatives.
    protocol : {"clean", "lines"}
        As in `split_edges`.

    Returns
    -------
    train : TextNetwork
        The seen vertices and the edges among them.
    test : UnseenTest
        All links (``lines``: all edge lines) with at least one unseen end.
    """
    _check(network, ratio, seed, protocol)
    seen, unseen = _divide(len(network), ratio, seed)
    train = network.subnetwork(seen)
    whole = network.subnetwork(np.concatenate([seen, unseen]))
    edges = whole.links if protocol == "clean" else whole.edges
    pairs = edges[edges.max(axis=1, initial=0) >= len(seen)]
    if not len(pairs):
        raise VHEError(
            f"none of the {counted(len(unseen), 'unseen vertex', 'unseen vertices')} of "
            f"{network.name} has an edge; use another seed or a smaller ratio."
        )
    test = UnseenTest(train, whole, pairs, protocol, float(ratio), int(seed))
    assert_no_leak(train, test)
    return train, test


def validation_links(
    links: np.ndarray, share: float, seed: int, at_most: int = MOST_VALIDATION_LINKS
) -> tuple[np.ndarray, np.ndarray]:
    """Split training links into training and validation links.

    A share ``share``, but no more than ``at_most``, is for validation. At least one link remains
    for training; with a positive share and two links or more, at least one is for validation.
    Both parts are in the order of ``links``.
    """
    if not 0 <= share < 1:
        raise VHEError(
            f"the share of validation links is {share}; it must be at least 0 and less than 1."
        )
    wanted = max(round(share * len(links)), 1) if share > 0 else 0
    taken = max(min(wanted, at_most, len(links) - 1), 0)
    order = np.random.default_rng([seed, VALIDATION_STREAM]).permutation(len(links))
    return links[np.sort(order[taken:])], links[np.sort(order[:taken])]


def count_leaks(train: TextNetwork, test: LinkTest) -> dict[str, float]:
    """Return the fractions of held-out edges that are trivial to predict from ``train``.

    ``repeated``: the same edge is in ``train``; ``reversed``: its reverse is; ``loops``: source
    and target are the same vertex. Vertices are matched by id.
    """
    size = len(test.network)
    edges = test.network.indices(train.ids)[train.edges].reshape(-1, 2)
    source, target = test.pairs[:, 0], test.pairs[:, 1]
    keys = edges[:, 0] * size + edges[:, 1]
    loop = source == target
    return {
        "repeated": float(np.isin(source * size + target, keys).mean()),
        "reversed": float((np.isin(target * size + source, keys) & ~loop).mean()),
        "loops": float(loop.mean()),
    }


def assert_no_leak(train: TextNetwork, test: LinkTest) -> dict[str, float]:
    """Raise `VHEError` if ``train`` contains a held-out edge of a ``clean`` test in any direction.

    ``lines`` is known to leak and never raises. Returns the fractions of `count_leaks`.
    """
    leak = count_leaks(train, test)
    if test.protocol == "clean" and any(leak.values()):
        found = ", ".join(f"{share:.1%} {kind}" for kind, share in leak.items() if share)
        raise VHEError(
            f"the training network contains held-out edges of {test.network.name} ({found}); "
            "fit on the training network that was returned with this test."
        )
    return leak


def _check(network: TextNetwork, ratio: float, seed: int, protocol: str) -> None:
    if protocol not in get_args(Protocol):
        raise VHEError(f"unknown protocol {protocol!r}; use 'clean' or 'lines'.")
    if not (is_number(ratio) and 0 < ratio < 1):
        raise VHEError(f"the ratio is {ratio}; it must be between 0 and 1, for example 0.55.")
    if not (is_integer(seed) and seed >= 0):
        raise VHEError(f"the seed is {seed}; it must be an integer of at least 0.")
    if len(network) < 2:
        raise VHEError(f"{network.name} has one vertex; splitting needs at least two.")


def _as_links(network: TextNetwork) -> TextNetwork:
    """Return the network whose edges are the links."""
    weights = network.link_weights
    return network.with_edges(network.links, directed=False, edge_weights=weights)


def _with_rows(network: TextNetwork, rows: np.ndarray) -> TextNetwork:
    """Return the network with some of its edges, by row number."""
    weights = None if network.edge_weights is None else network.edge_weights[rows]
    return network.with_edges(network.edges[rows], edge_weights=weights)


def _time_ranks(time: ArrayLike, count: int) -> np.ndarray:
    """Replace times by their ranks, equal for equal times: (m,)."""
    times = np.asarray(time)
    if times.shape != (count,):
        raise VHEError(
            f"time has the shape {times.shape} for {counted(count, 'edge')}; give one time per "
            "edge of the network."
        )
    missing = np.flatnonzero(times != times)  # NaN and NaT
    if times.dtype.kind == "O":
        missing = np.flatnonzero([t is None or t != t for t in times])
    if len(missing):
        raise VHEError(f"edge {missing[0]} has no time; give one time per edge of the network.")
    mixed = VHEError("time must consist of numbers or of dates; convert other values first.")
    if times.dtype.kind in "USV" or any(isinstance(t, str) for t in times[:1]):
        raise mixed
    try:
        return np.unique(times, return_inverse=True)[1]
    except TypeError:  # values that cannot be compared
        raise mixed from None


def _link_times(network: TextNetwork, times: np.ndarray) -> np.ndarray:
    """Return the earliest time of each link, given those of the edges: (k,)."""
    order = np.argsort(times, kind="stable")
    ends = np.sort(network.edges[order], axis=1)
    proper = ends[:, 0] != ends[:, 1]
    _, first = np.unique(ends[proper], axis=0, return_index=True)  # sorted as `links` are
    return times[order][proper][first]


def _last_training_time(times: np.ndarray, ratio: float) -> int:
    """Return the time up to which the share of edges is nearest to ``ratio``."""
    found, counts = np.unique(times, return_counts=True)
    if len(found) < 2:
        raise VHEError("all edges have the same time; a split by time needs at least two times.")
    distance = np.abs(np.cumsum(counts)[:-1] - ratio * len(times))
    return int(found[distance.argmin()])


def _divide(count: int, ratio: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Split row numbers at random into two sorted, non-empty parts; ``ratio`` in the first."""
    order = np.random.default_rng(seed).permutation(count)
    first = min(max(round(ratio * count), 1), count - 1)
    return np.sort(order[:first]), np.sort(order[first:])


def _other_targets(
    pairs: np.ndarray, candidates: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Draw negatives of the protocol ``lines``: (b, 100, 2)."""
    rank = rng.integers(len(candidates) - 1, size=(len(pairs), NEGATIVES))
    rank += rank >= np.searchsorted(candidates, pairs[:, 1])[:, None]  # skips the target
    sources = np.broadcast_to(pairs[:, :1], rank.shape)
    return np.stack([sources, candidates[rank]], axis=-1)


def _unlinked(
    pairs: np.ndarray, sampler: NonNeighbourSampler, rng: np.random.Generator
) -> np.ndarray:
    """Draw negatives of the protocol ``clean``: (b, 100, 2)."""
    rows = np.arange(len(pairs))[:, None]
    keep_target = np.broadcast_to(np.arange(NEGATIVES) >= NEGATIVES // 2, (len(pairs), NEGATIVES))
    full = sampler.count == 0  # linked with all other vertices
    keep_target = keep_target ^ full[pairs[rows, keep_target.astype(np.int64)]]
    anchors = pairs[rows, keep_target.astype(np.int64)]
    both_full = full[anchors]
    anchors[both_full] = rng.choice(np.flatnonzero(~full), size=int(both_full.sum()))
    drawn = sampler.draw(anchors, rng)
    sources, targets = np.where(keep_target, drawn, anchors), np.where(keep_target, anchors, drawn)
    return np.stack([sources, targets], axis=-1)
