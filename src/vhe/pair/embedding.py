"""From a trained pair model to vectors: local embeddings of a pair, global ones of a vertex.

Section 3.3 of the paper. The global embedding of v_i is the average over contexts v_j of the local
posterior q(z_i | x_i, x_j, w_ij): exactly, over all j, or by Monte Carlo over some of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vhe.data.sampling import LinkSet, Pairs, length_buckets, longer_first, stream
from vhe.data.text import Corpus
from vhe.pair.integrator import PairPosterior
from vhe.pair.model import TextPairs, joined
from vhe.pair.protocol import PairModel
from vhe.runtime import process_group as distributed

PAIRS_AT_A_TIME = 4096  # sorted by length together
AREA = 1 << 16  # entries of the similarity tables that are computed at a time

Vectors = NDArray[np.float32]
Vertices = NDArray[np.int64]


@dataclass(frozen=True)
class LocalEmbedding:
    """Mean and variance of z_i beside v_j and of z_j beside v_i, each (m, d)."""

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
    """The posterior of each pair; the edge of a pair that is no known link counts as unknown."""
    linked = links.linked(i, j)
    pairs = Pairs(i, j, linked.astype(np.float32), linked)
    pairs, swapped = longer_first(pairs, corpus.lengths)
    device = model.words.weight.device
    # mean and variance of the longer and of the shorter text: (4, m, d)
    found = np.empty((4, len(i), model.config.latent_dim), dtype=np.float32)
    buckets = list(length_buckets(pairs, corpus.lengths, AREA))
    batch = [TextPairs.of(pairs[rows], corpus, device) for rows in buckets]
    if batch:
        found[:, np.concatenate(buckets)] = _margins(model.infer(batch).posterior, batch).cpu()
    back = swapped[:, None]
    mean, other_mean, variance, other_variance = found
    return LocalEmbedding(
        np.where(back, other_mean, mean),
        np.where(back, mean, other_mean),
        np.where(back, other_variance, variance),
        np.where(back, variance, other_variance),
    )


def _margins(q: PairPosterior, batch: Sequence[TextPairs]) -> Tensor:
    """Means of z_i and z_j, then their variances, of the mixture w q1 + (1-w) q0: (4, m, d)."""
    known, links = joined(batch, "known"), joined(batch, "links")
    share = torch.where(known, links, torch.sigmoid(q.link_logit)).unsqueeze(1)
    means, variances = [], []
    for one, none in (
        (
            (q.linked.mean_i, q.linked.log_variance_i),
            (q.unlinked.mean_i, q.unlinked.log_variance_i),
        ),
        (
            (q.linked.mean_j, q.linked.log_variance_j),
            (q.unlinked.mean_j, q.unlinked.log_variance_j),
        ),
    ):
        means.append(share * one[0] + (1 - share) * none[0])
        within = share * one[1].exp() + (1 - share) * none[1].exp()
        variances.append(within + share * (1 - share) * (one[0] - none[0]).square())
    return torch.stack(means + variances)


def global_embedding(
    model: PairModel,
    corpus: Corpus,
    links: LinkSet,
    *,
    contexts: int | None,
    seed: int,
    progress: Callable[[int], None] | None = None,
) -> GlobalEmbedding:
    """The average over contexts of the local embeddings, and its variance.

    ``contexts`` None is exact (all other vertices, quadratic in time); otherwise each vertex
    meets that many others at random. The variance is that of the mixture of the local posteriors,
    by the law of total variance: the mean of the variances and the variance of the means.
    Several processes (`train.distributed`) share the contexts.
    """
    n, d = len(corpus), model.config.latent_dim
    total = np.zeros((2, n, d), dtype=np.float64)  # of z and of z²
    met = np.zeros(n, dtype=np.int64)
    alone = [(np.zeros(1, np.int64),) * 2]
    for done, (i, j) in enumerate(context_pairs(n, contexts, seed) if n > 1 else alone):
        if done % distributed.size() != distributed.rank():
            continue  # another process does it
        local = local_embedding(model, corpus, links, i, j)
        for at, mean, variance in (
            (i, local.mean_i, local.variance_i),
            (j, local.mean_j, local.variance_j),
        ):
            total[0, at] += mean  # no vertex comes twice on one side of these pairs
            total[1, at] += variance + mean.astype(np.float64) ** 2
            met[at] += 1
        if progress:
            progress(done + 1)
    mean, square = distributed.summed(total) / np.maximum(distributed.summed(met), 1)[:, None]
    return GlobalEmbedding(
        mean.astype(np.float32), np.maximum(square - mean**2, 0).astype(np.float32)
    )


def context_pairs(n: int, contexts: int | None, seed: int) -> Iterator[tuple[Vertices, Vertices]]:
    """Pairs in which each of n vertices meets ``contexts`` (even) others, or all of them (None).

    The vertices stand in a random circle and each meets those 1, 2, … places further on; a pair
    is_available both of its ends.
    """
    ring = stream(seed, 4).permutation(n)
    reach = (n - 1) // 2 if contexts is None else min((contexts + 1) // 2, (n - 1) // 2)
    for shift in range(1, reach + 1):
        yield from _pieces(ring, np.roll(ring, -shift))
    if n % 2 == 0 and (contexts is None or contexts >= n - 1):
        yield from _pieces(ring[: n // 2], ring[n // 2 :])  # those who stand opposite


def _pieces(i: Vertices, j: Vertices) -> Iterator[tuple[Vertices, Vertices]]:
    for start in range(0, len(i), PAIRS_AT_A_TIME):
        yield i[start : start + PAIRS_AT_A_TIME], j[start : start + PAIRS_AT_A_TIME]


def embedding_of(
    model: PairModel,
    corpus: Corpus,
    links: LinkSet,
    vertices: Vertices,
    *,
    contexts: int,
    seed: int,
) -> Vectors:
    """The mean code of some vertices as their global embedding has it: (k, d).

    For a few vertices of a large network. An average is over ``contexts`` others at random; the
    same seed meets the same.
    """
    if model.config.embeds_jointly:
        rows: Vectors = model.structure.weight[torch.from_numpy(vertices)].detach().cpu().numpy()
        return rows
    n = len(corpus)
    total = np.zeros((len(vertices), model.config.latent_dim), dtype=np.float32)
    rng = stream(seed, 6)
    for _ in range(contexts):
        others = (vertices + rng.integers(1, max(n, 2), len(vertices))) % n  # never itself
        total += local_embedding(model, corpus, links, vertices, others).mean_i
    return total / np.float32(contexts)
