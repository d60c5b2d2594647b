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
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
import torch
from scipy import sparse
from scipy.sparse.linalg import splu
from torch import Tensor, nn

from vhe.data.sampling import LinkSet, Pairs, random_stream
from vhe.data.text import Corpus
from vhe.graph.model import NEIGHBOURS
from vhe.pair.decoder import GaussianDecoder, pool, pool_corpus
from vhe.pair.embedding import Vectors, Vertices, local_embedding
from vhe.pair.model import PairModel, PairVAE, TextPairs, in_parts, joined, known_links
from vhe.runtime.adam import Adam
from vhe.runtime.arrays import unit_rows

InductiveMethod = Literal["fast", "paper"]
Model = TypeVar("Model", bound=PairModel)

AT_ONCE = 256  # new vertices that are embedded together
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
    n, k, table = len(corpus), len(new), _table(model)
    texts, known = corpus.joined(new), LinkSet(new_links, n + k)
    chosen = random_stream(seed, 9).permutation(n)[:contexts]
    mean, variance = np.zeros((2, k, model.config.latent_dim), dtype=np.float32)
    structure = neighbours_structure(model, corpus, new, new_links) if k else table[:0]
    new_links = np.sort(new_links, axis=1)[:, ::-1]  # the new vertex first
    beyond = new_links[(new_links[:, 1] < n) & ~np.isin(new_links[:, 1], chosen)]
    for start in range(0, k, AT_ONCE):
        rows = np.arange(start, min(start + AT_ONCE, k))
        i, j = np.repeat(n + rows, len(chosen)), np.tile(chosen, len(rows))
        if method == "paper":
            own = beyond[np.isin(beyond[:, 0], n + rows)]  # links with others than the contexts
            pairs = known_links(np.append(i, own[:, 0]), np.append(j, own[:, 1]), known)
            structure[rows] = _optimise(model, texts, pairs, structure[rows], seed)
        extended = with_structure(model, np.concatenate([table, structure]))
        mean[rows], variance[rows] = _moments(extended, texts, known, i, j, len(chosen))
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
        codes, own = _codes(model, texts, table), _codes(model, new_texts, np.zeros_like(new_texts))
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
    text, h = torch.from_numpy(texts), torch.from_numpy(structure)
    return model.integrator(text, text, h, h).linked.mean_i.numpy()


def pooled(model: PairVAE, corpus: Corpus) -> Vectors:
    """The mean word vector of each text, with damped counts: (n, d_w)."""
    words = model.words.weight.detach().cpu()
    return torch.cat(list(pool_corpus(words, corpus, "mean"))).numpy()


def _table(model: PairVAE) -> Vectors:
    """The structure embeddings of the fitted vertices: (n, d_h)."""
    return model.structure.weight.detach().cpu().numpy()


def _moments(
    model: PairVAE, texts: Corpus, links: LinkSet, i: Vertices, j: Vertices, contexts: int
) -> tuple[Vectors, Vectors]:
    """Mean and variance of i over its contexts j, as in `global_embedding`: (k, d)."""
    half = np.arange(len(i)) % 2 == 0  # a new vertex is in turn the first and the second
    local = local_embedding(model, texts, links, np.where(half, i, j), np.where(half, j, i))
    shape = (-1, contexts, model.config.latent_dim)
    means = np.where(half[:, None], local.mean_i, local.mean_j).reshape(shape)
    variances = np.where(half[:, None], local.variance_i, local.variance_j).reshape(shape)
    return means.mean(axis=1), variances.mean(axis=1) + means.var(axis=1)


def _optimise(model: PairVAE, texts: Corpus, pairs: Pairs, start: Vectors, seed: int) -> Vectors:
    """h* that maximises the mean ELBO over pairs of new vertices and fitted ones, from ``start``.

    The first end of each pair is new; ``start`` (k, d_h) begins with that of the first pair.
    """
    device = model.words.weight.device
    order, batch = in_parts(pairs, texts, device)
    vertex = pairs.i[order] - pairs.i[0]
    share = torch.from_numpy(1 / np.bincount(vertex)[vertex]).float().to(device)
    number = torch.from_numpy(vertex).to(device)
    bound = Bound(model, batch)
    fitted = model.structure.weight.detach()[joined(batch, "j")]
    h = nn.Parameter(torch.from_numpy(start).to(device))
    optimiser = Adam(([h], RATE))
    for _ in range(STEPS):
        optimiser.zero_grad()
        # the same noise in every step, so that one fixed function is maximised
        noise = torch.Generator(device).manual_seed(seed)
        (-(share * bound(h[number], fitted, noise)).sum()).backward()
        optimiser.step()
    return h.detach().cpu().numpy()


class Bound:
    """The ELBO of some pairs (appendix A) as a function of the structure embeddings alone.

    Texts are aligned, and their words pooled, once.
    """

    def __init__(self, model: PairVAE, batch: Sequence[TextPairs]) -> None:
        self.model, self.words = model, model.words.weight.detach()
        self.links, self.known = joined(batch, "links"), joined(batch, "known")
        with torch.no_grad():
            self.aligned = model.align(batch)
        self.texts = [getattr(pairs, f"tokens_{end}") for end in "ij" for pairs in batch]
        if isinstance(model.decoder, GaussianDecoder):
            # each text is replaced by one word whose vector is the target: the same likelihood in
            # less memory
            target = pool(self.words, self.texts, model.config.target)
            self.words = torch.cat([self.words[:1], target])
            self.texts = [torch.arange(1, len(self.words), device=self.words.device).unsqueeze(1)]

    def __call__(self, h_i: Tensor, h_j: Tensor, noise: torch.Generator) -> Tensor:
        """(pairs,) for the structure embeddings (pairs, d_h) of both ends."""
        q = self.model.integrator(self.aligned.text_i, self.aligned.text_j, h_i, h_j)
        return self.model.terms(q, self.words, self.texts, self.links, self.known, noise)["bound"]


def with_structure(model: Model, rows: Vectors) -> Model:
    """The model with another structure table (n, d_h); it shares all other weights."""
    other = copy.copy(model)
    other._modules = dict(model._modules)
    table = torch.from_numpy(rows).to(model.words.weight.device)
    other.structure = nn.Embedding.from_pretrained(table)
    return other
