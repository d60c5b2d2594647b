"""Models over pairs of vertices, and the variational autoencoder: infer, reconstruct, loss."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import normalize

from vhe.config import PairVHEConfig
from vhe.data.sampling import LinkSet, Pairs, length_buckets, random_stream
from vhe.data.text import PADDING, Corpus
from vhe.pair.alignment import Aligned, PhraseToWordAlignment
from vhe.pair.decoder import GaussianDecoder, MultinomialDecoder, pool_corpus
from vhe.pair.elbo import Terms, elbo
from vhe.pair.homophily import PairGaussian, kl_to_prior, sample
from vhe.pair.integrator import Integrator, PairPosterior, ends
from vhe.text.lsa import WORD_SCALE, lsa_word_vectors

BUCKET_AREA = 1 << 16  # entries of the similarity matrices of a part of a batch
STRUCTURE_SCALE = 0.01  # standard deviation of an initial structure table


@dataclass(frozen=True)
class TextPairs:
    """A batch of pairs, or a part of it, as tensors."""

    i: Tensor  # (batch,)  vertices
    j: Tensor
    tokens_i: Tensor  # (batch, L_i)
    tokens_j: Tensor  # (batch, L_j)
    links: Tensor  # (batch,)  w
    known: Tensor  # (batch,)

    @classmethod
    def of(cls, pairs: Pairs, corpus: Corpus, device: torch.device) -> TextPairs:
        def tensor(array: NDArray[np.generic]) -> Tensor:
            return torch.from_numpy(array).to(device)

        return cls(
            tensor(pairs.i),
            tensor(pairs.j),
            tensor(corpus.padded(pairs.i)),
            tensor(corpus.padded(pairs.j)),
            tensor(pairs.links),
            tensor(pairs.known),
        )


def in_parts(
    pairs: Pairs, corpus: Corpus, device: torch.device
) -> tuple[NDArray[np.int64], list[TextPairs]]:
    """Pairs as tensors, in parts of texts of about equal length, and the order of their rows."""
    parts = list(length_buckets(pairs, corpus.lengths, BUCKET_AREA))
    return np.concatenate(parts), [TextPairs.of(pairs[rows], corpus, device) for rows in parts]


def known_links(i: NDArray[np.int64], j: NDArray[np.int64], links: LinkSet) -> Pairs:
    """Pairs of which the links are known; the edges of all others are unknown."""
    linked = links.linked(i, j)
    return Pairs(i, j, linked.astype(np.float32), linked)


def joined(batch: Sequence[TextPairs], name: str) -> Tensor:
    """A field of all parts of a batch, concatenated."""
    return torch.cat([getattr(pairs, name) for pairs in batch])


def weight_generator(seed: int) -> torch.Generator:
    """The random generator of the initial weights."""
    return torch.Generator().manual_seed(int(random_stream(seed, 3).integers(2**63)))


class PairModel(nn.Module, ABC):
    """Base class of `PairVAE` and the contextual baselines, which are trained on pairs.

    It computes a code of dimension ``latent_dim`` for each end of a pair. A batch is a list of
    parts (`in_parts`).
    """

    config: Any  # with the fields of `PairVHEConfig` that training and embeddings read
    words: nn.Embedding
    structure: nn.Embedding
    layer_pace: float = 1.0  # learning rate of the layers over that of the words

    @abstractmethod
    def loss(self, batch: Sequence[TextPairs], generator: torch.Generator) -> Terms:
        """The terms of the objective for each pair of a batch."""

    @abstractmethod
    def objective(self, terms: Terms) -> Tensor:
        """What is minimised: for each pair, or as one mean."""

    @abstractmethod
    def infer(self, batch: Sequence[TextPairs]) -> PairPosterior:
        """The posterior of the codes of each pair of a batch, all parts concatenated."""

    def forward(
        self, batch: Sequence[TextPairs], generator: torch.Generator
    ) -> tuple[Tensor, dict[str, float]]:
        """The mean of the objective over a batch, and the mean of each term."""
        terms = self.loss(batch, generator)
        return self.objective(terms).mean(), terms.means()

    def initialise_words(self, corpus: Corpus, seed: int, generator: torch.Generator) -> None:
        if self.config.word_init == "lsa":
            vectors = lsa_word_vectors(corpus, self.config.word_dim, seed)
            self.words.weight[1:] = torch.from_numpy(vectors)
        else:
            self.words.weight.normal_(0, WORD_SCALE, generator=generator)
        self.words.weight[PADDING] = 0


class PairVAE(PairModel):
    """VHE's network (section 3): alignment, structure embeddings, integrator and decoder."""

    config: PairVHEConfig

    def __init__(self, config: PairVHEConfig, vocabulary: int, vertices: int, pi0: float) -> None:
        super().__init__()
        self.config, self.pi0 = config, pi0
        self.words = nn.Embedding(vocabulary + 1, config.word_dim, padding_idx=PADDING)
        learned = config.structure == "learned"
        self.structure = nn.Embedding(vertices, config.structure_dim if learned else 0)
        self.structure.weight.requires_grad_(learned)
        self.alignment = PhraseToWordAlignment(
            config.kernels, config.kernel_width, config.max_words
        )
        self.integrator = Integrator(config)
        self.decoder: GaussianDecoder | MultinomialDecoder = (
            GaussianDecoder(config)
            if config.decoder == "gaussian"
            else MultinomialDecoder(config, vocabulary)
        )

    @torch.no_grad()
    def initialise(self, corpus: Corpus, seed: int) -> None:
        """Set every weight from the corpus and the seed."""
        generator = weight_generator(seed)
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                nn.init.xavier_uniform_(layer.weight, generator=generator)
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)
        self.alignment.reset(generator)
        if self.config.residual:
            self.structure.weight.zero_()
        else:
            self.structure.weight.normal_(0, STRUCTURE_SCALE, generator=generator)
        self.initialise_words(corpus, seed, generator)
        self.integrator.initialise(self._centre(corpus, "mean"))
        self.decoder.decoding.initialise()
        if isinstance(self.decoder, GaussianDecoder):
            self.decoder.centre.copy_(self._centre(corpus, self.config.target))

    def _centre(self, corpus: Corpus, how: str) -> Tensor:
        """The mean of the pooled texts at unit length, without empty texts: (d_w,)."""
        total = torch.zeros(self.config.word_dim)
        for pooled in pool_corpus(self.words.weight, corpus, how):
            total += normalize(pooled, dim=1).sum(dim=0)
        return total / max(1, int(np.count_nonzero(corpus.lengths)))

    def infer(self, batch: Sequence[TextPairs]) -> PairPosterior:
        """The approximate posterior of each pair (section 3.2, encoder)."""
        aligned = self.align(batch)
        h_i, h_j = self.structure(joined(batch, "i")), self.structure(joined(batch, "j"))
        return self.integrator(aligned.text_i, aligned.text_j, h_i, h_j)

    def align(self, batch: Sequence[TextPairs]) -> Aligned:
        texts = [(pairs.tokens_i, pairs.tokens_j) for pairs in batch]
        return self.alignment(self.words.weight, texts)

    def reconstruct(
        self, q: PairGaussian, words: Tensor, texts: Sequence[Tensor], generator: torch.Generator
    ) -> Tensor:
        """One sample of E_q[log p(x_i, x_j | z_i, z_j)] for each pair: (pairs,).

        ``texts`` are the tokens of all first ends and then of all second ends, in parts.
        """
        z = torch.cat(sample(q, generator))
        first, second = ends(self.decoder.log_likelihood(z, words, texts))
        return first + second

    def loss(self, batch: Sequence[TextPairs], generator: torch.Generator) -> Terms:
        texts = [pairs.tokens_i for pairs in batch] + [pairs.tokens_j for pairs in batch]
        return self.terms(
            self.infer(batch),
            self.words.weight,
            texts,
            joined(batch, "links"),
            joined(batch, "known"),
            generator,
        )

    def terms(
        self,
        q: PairPosterior,
        words: Tensor,
        texts: Sequence[Tensor],
        links: Tensor,
        known: Tensor,
        generator: torch.Generator,
    ) -> Terms:
        """The terms for the posterior of some pairs; the other arguments as in `reconstruct`."""
        linked = self.reconstruct(q.linked, words, texts, generator)
        # log p(x|z) depends on z_i and z_j separately, so branches with equal marginals share it
        unlinked = (
            linked
            if self.config.shared_posterior
            else self.reconstruct(q.unlinked, words, texts, generator)
        )
        return elbo(
            links=links,
            known=known,
            link_logit=q.link_logit,
            reconstruction_linked=linked,
            reconstruction_unlinked=unlinked,
            kl_linked=kl_to_prior(q.linked, self.config.homophily),
            kl_unlinked=kl_to_prior(q.unlinked, 0.0),
            pi0=self.pi0,
            fixed_pi=self.config.link_posterior == "text",
        )

    def objective(self, terms: Terms) -> Tensor:
        """The negative ELBO and the link term, for each pair."""
        return -terms["bound"] - self.config.link_weight * terms["link"]
