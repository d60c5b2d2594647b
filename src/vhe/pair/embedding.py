"""Embeddings of a trained pair model: local ones of a pair, global ones of a vertex.

Section 3.3 of the paper. The global embedding of v_i is the average over contexts v_j of the local
posterior q(z_i | x_i, x_j, w_ij): over all j, or over a random sample of them (Monte Carlo).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vhe.data.sampling import LinkSet, random_stream
from vhe.data.text import Corpus
from vhe.pair.integrator import PairPosterior
from vhe.pair.model import PairModel, in_parts, joined, known_links
from vhe.runtime import process_group

PAIRS_AT_ONCE = 4096  # pairs that are sorted by length together

Vectors = NDArray[np.float32]
Vertices = NDArray[np.int64]


@dataclass(frozen=True)
class LocalEmbedding:
    """Mean and variance of z_i in the context v_j and of z_j in the context v_i, each (m, d)."""

    mean_i: Vectors
    mean_j: Vectors
    variance_i: Vectors
    variance_j: Vectors


@dataclass(frozen=True)
class GlobalEmbedding:
    """Mean and variance of each vertex's code over its contexts, each (n, d)."""

    mean: Vectors
    variance: Vectors


@torch.inference_mode()
def local_embedding(
    model: PairModel, corpus: Corpus, links: LinkSet, i: Vertices, j: Vertices
) -> LocalEmbedding:
    """The posterior of each pair; the edge of a pair that is not a known link is unknown."""
    found = np.empty((4, len(i), model.config.latent_dim), dtype=np.float32)
    if len(i):
        order, batch = in_parts(known_links(i, j, links), corpus, model.words.weight.device)
        q = model.infer(batch)
        known, linked = joined(batch, "known"), joined(batch, "links")
        share = torch.where(known, linked, torch.sigmoid(q.link_logit)).unsqueeze(1)
        found[:, order] = _marginals(q, share).cpu()
    return LocalEmbedding(*found)


def _marginals(q: PairPosterior, share: Tensor) -> Tensor:
    """Means of z_i and z_j, then their variances, of share q1 + (1 - share) q0: (4, m, d)."""
    mean_1, mean_0 = (torch.stack([g.mean_i, g.mean_j]) for g in (q.linked, q.unlinked))
    variance_1, variance_0 = (
        torch.stack([g.log_variance_i, g.log_variance_j]).exp() for g in (q.linked, q.unlinked)
    )
    mean = share * mean_1 + (1 - share) * mean_0
    within = share * variance_1 + (1 - share) * variance_0
    return torch.cat([mean, within + share * (1 - share) * (mean_1 - mean_0).square()])


def global_embedding(
    model: PairModel,
    corpus: Corpus,
    links: LinkSet,
    *,
    contexts: int | None,
    seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> GlobalEmbedding:
    """The average over contexts of the local embeddings, and its variance.

    ``contexts`` None takes all other vertices (quadratic time), otherwise each vertex has that many
    random contexts. The variance is that of the mixture of the local posteriors, by the law of
    total variance: the mean of the variances plus the variance of the means. Several processes
    share the pairs. ``progress`` is called with the pieces done and their number.
    """
    n, d = len(corpus), model.config.latent_dim
    total = np.zeros((2, n, d), dtype=np.float64)  # of z and of z²
    count = np.zeros(n, dtype=np.int64)
    pieces = len(context_pieces(n, contexts))
    for done, (i, j) in enumerate(context_pairs(n, contexts, seed)):
        if done % process_group.size() == process_group.rank():
            local = local_embedding(model, corpus, links, i, j)
            for vertices, mean, variance in (
                (i, local.mean_i, local.variance_i),
                (j, local.mean_j, local.variance_j),
            ):
                total[0, vertices] += mean  # no vertex occurs twice on one side of these pairs
                total[1, vertices] += variance + mean.astype(np.float64) ** 2
                count[vertices] += 1
        if progress:
            progress(done + 1, pieces)
    total, count = process_group.all_reduce(total), process_group.all_reduce(count)
    mean, square = total / np.maximum(count, 1)[:, None]
    variance = np.clip(square - mean**2, 0, np.finfo(np.float32).max)
    return GlobalEmbedding(mean.astype(np.float32), variance.astype(np.float32))


def context_pairs(n: int, contexts: int | None, seed: int) -> Iterator[tuple[Vertices, Vertices]]:
    """Pairs in which each of n vertices has ``contexts`` (even) others, or all others (None).

    The vertices are arranged in a random circle, and each is paired with those 1, 2, … positions
    after it: each vertex is as often the first as the second of a pair. One vertex alone is paired
    with itself.
    """
    ring = random_stream(seed, 4).permutation(n)
    for shift, part in context_pieces(n, contexts):
        yield ring[part], np.roll(ring, -shift)[part]


def context_pieces(n: int, contexts: int | None) -> list[tuple[int, slice]]:
    """The pieces of `context_pairs`: the distance on the circle, and positions of first ends."""
    most = n - 1 if contexts is None else contexts
    pieces = []
    for shift in range(1, min((most + 1) // 2, n // 2) + 1) or [0]:
        count = n // 2 if 2 * shift == n else n  # opposite positions are paired once
        for start in range(0, count, PAIRS_AT_ONCE):
            pieces.append((shift, slice(start, min(start + PAIRS_AT_ONCE, count))))
    return pieces


def embedding_of(
    model: PairModel,
    corpus: Corpus,
    links: LinkSet,
    vertices: Vertices,
    *,
    contexts: int,
    seed: int,
) -> Vectors:
    """The mean codes of some vertices, as in the global embedding: (k, d).

    For a few vertices of a large network: an average over ``contexts`` random others, in which a
    vertex is in turn the first and the second of a pair. The same seed draws the same contexts.
    """
    n = len(corpus)
    total: Vectors = np.zeros((len(vertices), model.config.latent_dim), dtype=np.float32)
    rng = random_stream(seed, 6)
    for number in range(contexts):
        others = (vertices + rng.integers(1, max(n, 2), len(vertices))) % n  # never the vertex
        if number % 2 == 0:
            total += local_embedding(model, corpus, links, vertices, others).mean_i
        else:
            total += local_embedding(model, corpus, links, others, vertices).mean_j
    return total / np.float32(contexts)
