"""New vertices: embeddings of vertices that were not part of the fit.

Everything that was learned is fixed; only the structure embedding h* of a new vertex is to be
found, by one of two methods:

paper   h* maximises the mean ELBO over some contexts, with unknown edges, and over the vertex's
        links (section 3.3)
fast    h* from its neighbours: the fitted vertices that it is linked with, and those with the
        nearest texts, weighted by their cosine. For a residual posterior, the stationary point of
        the ELBO in the code of the new vertex given all other codes is about

            z* = (2ρ(1+r) m* + κ w z̄) / (2ρ(1+r) + κ w + 1),    κ = λ / (1 - λ²)

        with z̄ the mean code of the neighbours, w ≤ 1 the sum of their weights, r the unlinked pairs
        per linked one, and m* the code of its text; h* = z* - m*. Otherwise h* is the mean of the
        neighbours' structure embeddings.

Then the new vertex is embedded in the contexts of some fitted vertices, as in the global embedding.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from scipy import sparse
from scipy.sparse.linalg import splu
from torch import Tensor, nn

from vhe.data.sampling import LinkSet, Pairs, length_buckets, random_stream
from vhe.data.text import Corpus, concatenated_ranges
from vhe.graph.neighbours import NEIGHBOURS
from vhe.pair.decoder import GaussianDecoder, pool
from vhe.pair.embedding import BUCKET_AREA, Vectors, Vertices, local_embedding
from vhe.pair.model import PairVAE, TextPairs, joined
from vhe.runtime.arrays import unit_rows

InductiveMethod = Literal["fast", "paper"]

AT_ONCE = 256  # new vertices that are embedded together
POOLED_AT_ONCE = 1024  # texts
STEPS, RATE = 40, 0.05  # of Adam, which maximises the ELBO


@dataclass(frozen=True)
class InductivePairs:
    """Embedding of k new vertices."""

    mean: Vectors  # (k, d)
    variance: Vectors  # (k, d)
    structure: Vectors  # (k, d_h)


def embed_new(
    model: PairVAE,
    corpus: Corpus,
    links: Vertices,
    new: Corpus,
    new_links: Vertices,
    *,
    method: InductiveMethod,
    contexts: int,
    seed: int,
    progress: Callable[[int], None] = lambda done: None,
) -> InductivePairs:
    """Embed new vertices, all in the same random contexts.

    Parameters
    ----------
    corpus, links : of the n fitted vertices; links (m, 2)
    new : k new texts in the same vocabulary
    new_links : (m, 2) vertex numbers; new vertices are numbered from n on
    contexts : number of fitted vertices that serve as contexts
    progress : called with the number of new vertices done
    """
    n, k, d = len(corpus), len(new), model.config.latent_dim
    chosen = random_stream(seed, 9).permutation(n)[:contexts]
    mean, variance = np.zeros((2, k, d), dtype=np.float32)
    structure = neighbours_structure(model, corpus, new, new_links) if k else _table(model)[:0]
    new_links = np.sort(new_links, axis=1)[:, ::-1]  # the new vertex first
    for start in range(0, k, AT_ONCE):
        rows = np.arange(start, min(start + AT_ONCE, k))
        visit = _Visit(model, corpus, new, rows, chosen, new_links)
        if method == "paper":
            structure[rows] = visit.optimise(structure[rows], seed)
        mean[rows], variance[rows] = visit.moments(structure[rows])
        progress(int(rows[-1]) + 1)
    return InductivePairs(mean, variance, structure)


@torch.no_grad()
def neighbours_structure(
    model: PairVAE, corpus: Corpus, new: Corpus, new_links: Vertices
) -> Vectors:
    """h* of new vertices by the method "fast": (k, d_h)."""
    n, k, table = len(corpus), len(new), _table(model)
    if not table.shape[1]:
        return np.zeros((k, 0), dtype=np.float32)
    texts, new_texts = pooled(model, corpus), pooled(model, new)
    weights = _neighbour_weights(texts, new_texts, new_links)  # (k, n + k)
    total = weights.sum(axis=1)
    share = sparse.diags_array(1 / np.maximum(total, 1e-12)) @ weights
    config = model.config
    if config.residual:
        codes, own = _codes(model, texts, table), _codes(model, new_texts, 0 * table[:1])
        text = 2 * config.precision * (1 + config.negatives)
        link = config.homophily / (1 - config.homophily**2) * np.minimum(total, 1)
    else:
        codes, own = table, np.zeros((k, table.shape[1]), dtype=np.float32)
        text, link = 0.0, np.ones(k)
    # linked new vertices depend on each other: one linear system for all of them
    right = text * own + link[:, None] * (share[:, :n] @ codes)
    diagonal = text + link + float(config.residual)
    system = sparse.diags_array(diagonal) - sparse.diags_array(link) @ share[:, n:]
    return (splu(system.tocsc()).solve(right) - own).astype(np.float32)


def _neighbour_weights(texts: Vectors, new_texts: Vectors, new_links: Vertices) -> sparse.csr_array:
    """Weights of the neighbours of new vertices: (k, n + k).

    A link has the weight 1, each of the 10 nearest texts a tenth of its cosine.
    """
    n, k = len(texts), len(new_texts)
    table, rows = (
        torch.from_numpy(unit_rows(np.where(t.any(axis=1, keepdims=True), t - texts.mean(0), 0)))
        for t in (texts, new_texts)
    )
    found = [
        (part @ table.T).topk(min(NEIGHBOURS, n), dim=1)
        for part in rows.split(max(1, (1 << 24) // n))
    ]
    near = torch.cat([best.indices for best in found]).numpy()
    cosine = torch.cat([best.values for best in found]).numpy()
    ends = np.concatenate([new_links, new_links[:, ::-1]])
    ends = ends[ends[:, 0] >= n]
    i = np.concatenate([ends[:, 0] - n, np.repeat(np.arange(k), near.shape[1])])
    j = np.concatenate([ends[:, 1], near.ravel()])
    near_weight = np.maximum(cosine, 0).astype(np.float64).ravel() / NEIGHBOURS
    weight = np.concatenate([np.ones(len(ends)), near_weight])
    return sparse.csr_array((weight, (i, j)), shape=(k, n + k))


def _codes(model: PairVAE, texts: Vectors, structure: Vectors) -> Vectors:
    """Posterior means (k, d) for pooled texts and structure embeddings, in no context."""
    text = torch.from_numpy(texts)
    h = torch.from_numpy(np.broadcast_to(structure, (len(texts), structure.shape[1])).copy())
    mean: Vectors = model.integrator(text, text, h, h).linked.mean_i.numpy()
    return mean


def pooled(model: PairVAE, corpus: Corpus) -> Vectors:
    """The mean word vector of each text, with damped counts: (n, d_w)."""
    words = model.words.weight.detach().cpu()
    parts = np.array_split(np.arange(len(corpus)), len(corpus) // POOLED_AT_ONCE + 1)
    texts = [torch.from_numpy(corpus.padded(rows)) for rows in parts]
    found: Vectors = pool(words, texts, "mean").numpy()
    return found


def _table(model: PairVAE) -> Vectors:
    """The structure embeddings of the fitted vertices: (n, d_h)."""
    table: Vectors = model.structure.weight.detach().cpu().numpy()
    return table


class _Visit:
    """Some new vertices, their contexts, and the fitted vertices that they are linked with.

    Here the fitted vertices have the first numbers, the contexts before the others.
    """

    def __init__(
        self,
        model: PairVAE,
        corpus: Corpus,
        new: Corpus,
        rows: Vertices,
        contexts: Vertices,
        new_links: Vertices,
    ) -> None:
        n = len(corpus)
        links = new_links[np.isin(new_links[:, 0], rows + n) & (new_links[:, 1] < n)]
        fitted = np.concatenate([contexts, np.setdiff1d(links[:, 1], contexts)])
        number = np.zeros(n, dtype=np.int64)
        number[fitted] = np.arange(len(fitted))
        self.model, self.fitted = model, _table(model)[fitted]
        self.corpus = concatenated(selected(corpus, fitted), selected(new, rows))
        self.count, self.contexts = len(rows), len(contexts)
        vertices = len(fitted) + np.arange(self.count)
        self.i = np.repeat(vertices, self.contexts)
        self.j = np.tile(number[contexts], self.count)
        own = np.column_stack([vertices[links[:, 0] - n - rows[0]], number[links[:, 1]]])
        self.links = LinkSet(own, len(self.corpus))
        self.beyond = own[own[:, 1] >= self.contexts]  # links with vertices that are no contexts

    def moments(self, structure: Vectors) -> tuple[Vectors, Vectors]:
        """Mean and variance over the contexts, as in `global_embedding`: (k, d)."""
        model = with_structure(self.model, np.concatenate([self.fitted, structure]))
        half = np.arange(len(self.i)) % 2 == 0  # a new vertex is in turn the first and the second
        i, j = np.where(half, self.i, self.j), np.where(half, self.j, self.i)
        local = local_embedding(model, self.corpus, self.links, i, j)
        shape = (self.count, self.contexts, -1)
        means = np.where(half[:, None], local.mean_i, local.mean_j).reshape(shape)
        variances = np.where(half[:, None], local.variance_i, local.variance_j).reshape(shape)
        return means.mean(axis=1), variances.mean(axis=1) + means.var(axis=1)

    def optimise(self, start: Vectors, seed: int) -> Vectors:
        """h* that maximises the mean ELBO over the contexts and the known links."""
        device = self.model.words.weight.device
        i, j = np.append(self.i, self.beyond[:, 0]), np.append(self.j, self.beyond[:, 1])
        linked = self.links.linked(i, j)
        pairs = Pairs(i, j, linked.astype(np.float32), linked)
        rows = list(length_buckets(pairs, self.corpus.lengths, BUCKET_AREA))
        batch = [TextPairs.of(pairs[part], self.corpus, device) for part in rows]
        vertex = i[np.concatenate(rows)] - len(self.fitted)
        share = torch.from_numpy(1 / np.bincount(vertex)[vertex]).float().to(device)
        bound = Bound(self.model, batch)
        fitted = torch.from_numpy(self.fitted).to(device)
        h = nn.Parameter(torch.from_numpy(start).to(device))
        optimiser = torch.optim.Adam([h], lr=RATE)
        for _ in range(STEPS):
            optimiser.zero_grad()
            # the same noise in every step, so that one fixed function is maximised
            noise = torch.Generator(device).manual_seed(seed)
            (-(share * bound(torch.cat([fitted, h]), noise)).sum()).backward()
            optimiser.step()
        found: Vectors = h.detach().cpu().numpy()
        return found


class Bound:
    """The ELBO of some pairs (appendix A) as a function of the structure embeddings alone.

    Texts are aligned, and their words pooled, once.
    """

    def __init__(self, model: PairVAE, batch: Sequence[TextPairs]) -> None:
        self.model, self.words = model, model.words.weight.detach()
        self.i, self.j = joined(batch, "i"), joined(batch, "j")
        self.links, self.known = joined(batch, "links"), joined(batch, "known")
        with torch.no_grad():
            self.aligned = model.align(batch)
        self.texts = [getattr(pairs, f"tokens_{end}") for end in "ij" for pairs in batch]
        if isinstance(model.decoder, GaussianDecoder):
            # a text of one word that is its pooled words has the same target and is small
            target = pool(self.words, self.texts, model.config.target)
            self.words = torch.cat([self.words[:1], target])
            self.texts = [torch.arange(1, len(self.words), device=self.words.device).unsqueeze(1)]

    def __call__(self, structure: Tensor, noise: torch.Generator) -> Tensor:
        """(pairs,) for structure embeddings (n, d_h)."""
        aligned = self.aligned
        q = self.model.integrator(
            aligned.text_i, aligned.text_j, structure[self.i], structure[self.j]
        )
        return self.model.terms(q, self.words, self.texts, self.links, self.known, noise).bound


def with_structure(model: PairVAE, rows: Vectors) -> PairVAE:
    """The model with another structure table (n, d_h); it shares all other weights."""
    other = copy.copy(model)
    other._modules = dict(model._modules)
    table = torch.from_numpy(rows).to(model.words.weight.device)
    other.structure = nn.Embedding.from_pretrained(table)
    return other


def selected(corpus: Corpus, texts: Vertices) -> Corpus:
    """Some texts of a corpus, in the given order."""
    lengths = corpus.lengths[texts]
    tokens = corpus.tokens[concatenated_ranges(corpus.offsets[texts], lengths)]
    return replace(corpus, tokens=tokens, offsets=np.append(0, np.cumsum(lengths)))


def concatenated(first: Corpus, second: Corpus) -> Corpus:
    """The texts of one corpus, then those of another in the same vocabulary."""
    return replace(
        first,
        tokens=np.concatenate([first.tokens, second.tokens]),
        offsets=np.concatenate([first.offsets, first.offsets[-1] + second.offsets[1:]]),
        truncated=first.truncated + second.truncated,
    )
