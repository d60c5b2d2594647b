"""Vertices that were not there at training: from a text, and perhaps some links, to an embedding.

Everything that was learned stays as it is. What has to be found is the structure embedding h* of
a newcomer, by one of two ways:

fast    under the prior of the whole graph (`nn.graph_prior`) the posterior of one vertex, given
        all others, is Gaussian with precision Λ + Σ s and mean (Λ m + Σ s h) / (Λ + Σ s), the sums
        over its links and, softly, over its nearest texts
paper   h* maximises the mean bound with unknown edges over some contexts (section 3.3)

Where the joint posterior is the embedding of every vertex, the first is all. Otherwise the newcomer
is then read beside a few of the vertices that were there, as every vertex is.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import splu
from torch import Tensor, nn

from vhe.data.sampling import LinkSet, Pairs, length_buckets, stream
from vhe.data.text import Corpus, ranges
from vhe.graph.prior import NEIGHBOURS, STRENGTH, USUAL, link_weights
from vhe.pair.decoder import GaussianDecoder, pool
from vhe.pair.elbo import elbo
from vhe.pair.embedding import AREA, Vectors, Vertices, local_embedding
from vhe.pair.homophily import kl_to_prior
from vhe.pair.model import PairVAE, TextPairs
from vhe.pair.model import joined as stacked
from vhe.predict.scoring import unit_rows
from vhe.text.lsa import word_counts

InductiveMethod = Literal["fast", "paper"]

AT_ONCE = 256  # new_vertices that are read together
CONTEXTS = 4  # residents that each is read beside; with 8 or 1 the ranking is the same
SOFTNESS = 4.0  # of near texts as links: a newcomer has few others
STEPS, RATE = 40, 0.05  # of Adam, up the bound


@dataclass(frozen=True)
class InductiveEmbedding:
    """Where new_vertices stand."""

    structure: Vectors  # (k, d_h)
    own: Vectors  # (k,) share of its own text in each structure embedding
    mean: Vectors  # (k, d)
    variance: Vectors  # (k, d)


class TrainingGraph:
    """The vertices that new_vertices come to: their texts, links and structure embeddings.

    Parameters
    ----------
    links : (m, 2)
    text_knn_weight, link_strength : weights of near texts and of links in the residents' joint posterior
    """

    def __init__(
        self,
        model: PairVAE,
        corpus: Corpus,
        links: Vertices,
        text_knn_weight: float = 0.0,
        link_strength: float = STRENGTH,
    ) -> None:
        self.model, self.corpus, self.links = model, corpus, links
        self.text_knn_weight, self.link_strength = text_knn_weight, link_strength
        self.degrees = np.bincount(links.ravel(), minlength=len(corpus))

    def __len__(self) -> int:
        return len(self.corpus)

    @cached_property
    def structure(self) -> Vectors:
        """(n, d_h)"""
        table: Vectors = self.model.structure.weight.detach().cpu().numpy()
        return table

    @cached_property
    def _codes(self) -> Vectors:
        return text_codes(self.corpus, self._words)

    @cached_property
    def center(self) -> Vectors:
        """The mean code of a text that has words: (d,)."""
        total: Vectors = self._codes.sum(axis=0) / max(1, np.count_nonzero(self.corpus.lengths))
        return total

    @cached_property
    def unit(self) -> Vectors:
        """Centred codes of unit length, by which texts are near: (n, d)."""
        return unit_rows(self._off_center(self._codes, 1.0))

    @cached_property
    def log_length(self) -> float:
        """The mean of log(1 + words of a text)."""
        return float(np.log1p(self.corpus.lengths).mean())

    @property
    def _words(self) -> Vectors:
        vectors: Vectors = self.model.words.weight[1:].detach().cpu().numpy()
        return vectors

    def encode(self, texts: Sequence[str]) -> Corpus:
        return Corpus.encode(texts, self.corpus.vocabulary, max_words=self.model.config.max_words)

    def structure_of(self, texts: Corpus, links: Vertices) -> tuple[Vectors, Vectors, Vectors]:
        """The posterior of new_vertices' structure embeddings given those of the residents.

        Parameters
        ----------
        texts : k new_vertices
        links : (m, 2), a newcomer (from n on) and a resident, or two new_vertices

        Returns
        -------
        mean (k, d_h), variance given all others (k,), and the share of its own text (k,)
        """
        n, k = len(self), len(texts)
        if not self.structure.shape[1]:
            return np.zeros((k, 0), np.float32), np.zeros(k, np.float32), np.ones(k, np.float32)
        codes = text_codes(texts, self._words)
        if self.model.config.structure == "joint":
            own = self._off_center(codes, 0.5, USUAL)
            precision = self._precision(texts.lengths)
        else:  # a learned table knows no texts: who has no neighbour stands in the middle
            own, precision = self.structure.mean(axis=0, keepdims=True), np.full(k, 1e-6)
        degree = np.append(self.degrees, np.zeros(k)) + np.bincount(links.ravel(), minlength=n + k)
        link_strength = link_weights(links, degree, self.link_strength)
        near, text_knn_weight = self._soft_links(codes, SOFTNESS)
        i = np.concatenate([links.ravel(), np.repeat(np.arange(n, n + k), near.shape[1])])
        j = np.concatenate([links[:, ::-1].ravel(), near.ravel()])
        weight = np.concatenate([np.repeat(link_strength, 2), text_knn_weight.ravel()])
        theirs = i >= n
        coupling = sparse.csr_array((weight[theirs], (i[theirs] - n, j[theirs])), shape=(k, n + k))
        total: NDArray[np.float64] = precision + coupling.sum(axis=1)
        inflow = precision[:, None] * own + coupling[:, :n] @ self.structure
        system = sparse.diags_array(total) - coupling[:, n:]
        mean = splu(system.tocsc()).solve(inflow.astype(np.float64))
        variance, share = (1 / total).astype(np.float32), (precision / total).astype(np.float32)
        return mean.astype(np.float32), variance, share

    def own_share(self, vertex: int) -> float:
        """The share of its own text in the joint posterior of a resident: Λ / (Λ + Σ s)."""
        links = self.links[(self.links == vertex).any(axis=1)]
        link_strength = link_weights(links, self.degrees, self.link_strength)
        codes = self._codes[[vertex]]
        _, text_knn_weight = self._soft_links(codes, self.text_knn_weight, beside=vertex)
        precision = float(self._precision(self.corpus.lengths[vertex]))
        return precision / (precision + float(link_strength.sum() + text_knn_weight.sum()))

    def _off_center(self, codes: Vectors, share: float, silent: float = 0.0) -> Vectors:
        """Codes without a share of the mean code; a text without a word has ``silent`` of it."""
        speaks = codes.any(axis=1, keepdims=True)
        return codes + np.where(speaks, -share, silent).astype(np.float32) * self.center

    def _precision(self, lengths: Vertices) -> NDArray[np.float64]:
        """Λ, which grows with the words of a text."""
        return np.exp((np.log1p(lengths) - self.log_length) / 2)

    def _soft_links(
        self, codes: Vectors, text_knn_weight: float, beside: int | None = None
    ) -> tuple[Vertices, Vectors]:
        """The residents with the nearest texts, and their weights as links: (k, 10) each."""
        unit = unit_rows(self._off_center(codes, 1.0))
        count = min(NEIGHBOURS + (beside is not None), len(self))
        table = torch.from_numpy(self.unit)
        best = [
            (torch.from_numpy(part) @ table.T).topk(count, dim=1)
            for part in np.array_split(unit, max(1, len(unit) * len(self) >> 24))
        ]
        near = torch.cat([found.indices for found in best]).numpy()
        cosine = torch.cat([found.values for found in best]).numpy()
        # a text has about so many near ones, whichever it is
        weight = text_knn_weight * np.maximum(cosine, 0) / (NEIGHBOURS + 1)
        return near, np.where(near == beside, 0, weight)


def text_codes(corpus: Corpus, vectors: Vectors) -> Vectors:
    """The codes of texts as `graph_prior.TextCodes` has them, before they are centred: (k, d)."""
    counts = word_counts(corpus)
    counts.data = 1 + np.log(counts.data)
    totals = np.asarray(counts @ vectors, dtype=np.float32)
    return unit_rows(totals) * np.float32(vectors.shape[1] ** 0.5)


def place(
    residents: TrainingGraph,
    texts: Corpus,
    links: Vertices,
    *,
    way: InductiveMethod,
    contexts: int,
    seed: int,
    progress: Callable[[int], None] = lambda done: None,
) -> InductiveEmbedding:
    """Embed new_vertices; each is read beside the same few residents.

    Parameters
    ----------
    texts : k new_vertices, in the residents' vocabulary
    links : (m, 2) vertex numbers; new_vertices are numbered from ``len(residents)`` on
    contexts : how many residents a newcomer is read beside
    """
    n, k, d = len(residents), len(texts), residents.model.config.latent_dim
    chosen = stream(seed, 9).permutation(n)[:contexts]
    mean, variance = np.zeros((2, k, d), dtype=np.float32)
    if not k:
        return InductiveEmbedding(residents.structure[:0], mean[:, 0], mean, variance)
    links = np.sort(links, axis=1)[:, ::-1]  # the newcomer first
    structure, spread, own = residents.structure_of(texts, links)
    if way == "fast" and residents.model.config.embeds_jointly:
        return InductiveEmbedding(structure, own, structure, np.repeat(spread[:, None], d, axis=1))
    for start in range(0, k, AT_ONCE):
        here = np.arange(start, min(start + AT_ONCE, k))
        meeting = _Meeting(residents, texts, here, chosen, links)
        if way == "paper":
            structure[here] = meeting.climb(structure[here], seed)
        mean[here], variance[here] = meeting.moments(structure[here])
        progress(int(here[-1]) + 1)
    carried = residents.model.integrator.structure
    if way == "fast" and carried is not None:
        # h* is uncertain too: law of total variance, through the part of z that is linear in h
        variance += np.outer(spread, carried.weight.detach().square().sum(dim=1).cpu())
    return InductiveEmbedding(structure, own, mean, variance)


class _Meeting:
    """Some new_vertices beside the contexts and the residents that they are linked to.

    Here the residents have the first numbers, the contexts before the others.
    """

    def __init__(
        self,
        residents: TrainingGraph,
        texts: Corpus,
        new_vertices: Vertices,
        contexts: Vertices,
        links: Vertices,
    ) -> None:
        n = len(residents)
        links = links[np.isin(links[:, 0], new_vertices + n) & (links[:, 1] < n)]
        others = np.setdiff1d(links[:, 1], contexts)
        hosts = np.concatenate([contexts, others])
        number = np.zeros(n, dtype=np.int64)
        number[hosts] = np.arange(len(hosts))
        self.model, self.hosts = residents.model, residents.structure[hosts]
        self.corpus = joined(taken(residents.corpus, hosts), taken(texts, new_vertices))
        self.count, self.contexts = len(new_vertices), len(contexts)
        guests = len(hosts) + np.arange(self.count)
        self.i, self.j = np.repeat(guests, self.contexts), np.tile(number[contexts], self.count)
        own_links = np.column_stack(
            [guests[links[:, 0] - n - new_vertices[0]], number[links[:, 1]]]
        )
        self.links = LinkSet(own_links, len(self.corpus))
        self.beyond = own_links[own_links[:, 1] >= self.contexts]

    def moments(self, structure: Vectors) -> tuple[Vectors, Vectors]:
        """Mean and variance over the contexts, as `embed.global_embedding` has them: (k, d)."""
        model = with_structure(self.model, np.concatenate([self.hosts, structure]))
        local = local_embedding(model, self.corpus, self.links, self.i, self.j)
        shape = (self.count, self.contexts, -1)
        means, variances = local.mean_i.reshape(shape), local.variance_i.reshape(shape)
        return means.mean(axis=1), variances.mean(axis=1) + means.var(axis=1)

    def climb(self, start: Vectors, seed: int) -> Vectors:
        """h* that maximises the mean of the bound over the contexts and the known links."""
        device = self.model.words.weight.device
        i, j = np.append(self.i, self.beyond[:, 0]), np.append(self.j, self.beyond[:, 1])
        linked = self.links.linked(i, j)
        pairs = Pairs(i, j, linked.astype(np.float32), linked)
        rows = list(length_buckets(pairs, self.corpus.lengths, AREA))
        batch = [TextPairs.of(pairs[part], self.corpus, device) for part in rows]
        newcomer = i[np.concatenate(rows)] - len(self.hosts)
        share = torch.from_numpy(1 / np.bincount(newcomer)[newcomer]).float().to(device)
        bound = Bound(self.model, batch)
        hosts = torch.from_numpy(self.hosts).to(device)
        h = nn.Parameter(torch.from_numpy(start).to(device))
        optimiser = torch.optim.Adam([h], lr=RATE)
        for _ in range(STEPS):
            optimiser.zero_grad()
            # the same noise in every step: it is one function that is climbed
            noise = torch.Generator(device).manual_seed(seed)
            (-(share * bound(torch.cat([hosts, h]), noise)).sum()).backward()
            optimiser.step()
        found: Vectors = h.detach().cpu().numpy()
        return found


class Bound:
    """The bound of some pairs (appendix A) as a function of the structure embeddings alone.

    Texts are aligned, and their words pooled, once.
    """

    def __init__(self, model: PairVAE, batch: Sequence[TextPairs]) -> None:
        self.model, self.words = model, model.words.weight.detach()
        self.i, self.j = stacked(batch, "i"), stacked(batch, "j")
        self.links, self.known = stacked(batch, "links"), stacked(batch, "known")
        texts = [(pairs.tokens_i, pairs.tokens_j) for pairs in batch]
        with torch.no_grad():
            self.aligned = model.alignment(self.words, texts)
        self.texts = [pair[k] for k in (0, 1) for pair in texts]
        if isinstance(model.decoder, GaussianDecoder):
            # a text of one word, which is its pooled words, has the same target and is small
            pooled = pool(self.words, self.texts, model.config.target)
            self.words = torch.cat([self.words[:1], pooled])
            self.texts = [torch.arange(1, len(self.words), device=self.words.device).unsqueeze(1)]

    def __call__(self, structure: Tensor, noise: torch.Generator) -> Tensor:
        """(pairs,) for structure embeddings (n, d_h)."""
        model, aligned = self.model, self.aligned
        q = model.integrator(aligned.text_i, aligned.text_j, structure[self.i], structure[self.j])
        known = self.words, self.texts, noise
        linked = model.reconstruct(q.linked, *known)
        shared = model.config.shared_posterior
        return elbo(
            links=self.links,
            known=self.known,
            link_logit=q.link_logit,
            reconstruction_linked=linked,
            reconstruction_unlinked=linked if shared else model.reconstruct(q.unlinked, *known),
            kl_linked=kl_to_prior(q.linked, model.config.homophily),
            kl_unlinked=kl_to_prior(q.unlinked, 0.0),
            partner=torch.zeros_like(linked),
            pi0=model.pi0,
        ).bound


def with_structure(model: PairVAE, rows: Vectors) -> PairVAE:
    """The same model with another structure table; it shares everything else."""
    other = copy.copy(model)
    other._modules = dict(model._modules)
    table = torch.from_numpy(rows).to(model.words.weight.device)
    other.structure = nn.Embedding.from_pretrained(table, sparse=True)
    return other


def taken(corpus: Corpus, texts: Vertices) -> Corpus:
    """Some texts of a corpus, in the order given."""
    lengths = corpus.lengths[texts]
    tokens = corpus.tokens[ranges(corpus.offsets[texts], lengths)]
    return replace(corpus, tokens=tokens, offsets=np.append(0, np.cumsum(lengths)))


def joined(first: Corpus, second: Corpus) -> Corpus:
    """The texts of one corpus and then those of another in the same vocabulary."""
    return replace(
        first,
        tokens=np.concatenate([first.tokens, second.tokens]),
        offsets=np.concatenate([first.offsets, first.offsets[-1] + second.offsets[1:]]),
        cut=first.cut + second.cut,
    )
