"""The variational autoencoder over pairs of vertices: infer, reconstruct, loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import normalize

from vhe.config import PairVHEConfig
from vhe.data.sampling import Pairs, random_stream
from vhe.data.text import PADDING, Corpus
from vhe.pair.alignment import Aligned, PhraseToWordAlignment
from vhe.pair.decoder import GaussianDecoder, MultinomialDecoder, pool
from vhe.pair.elbo import ElboTerms, elbo
from vhe.pair.homophily import PairGaussian, kl_to_prior, sample
from vhe.pair.integrator import Integrator, PairPosterior, ends
from vhe.pair.protocol import PairModel
from vhe.text.lsa import WORD_SCALE, lsa_word_vectors

POOLED_AT_ONCE = 512  # texts
STRUCTURE_SCALE = 0.01  # standard deviation of the initial structure table of the paper's form


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


def joined(batch: Sequence[TextPairs], name: str) -> Tensor:
    """A field of all parts of a batch, concatenated."""
    return torch.cat([getattr(pairs, name) for pairs in batch])


@dataclass(frozen=True)
class Inferred:
    """The posterior of the pairs of a batch, all parts concatenated."""

    posterior: PairPosterior
    weights: list[tuple[Tensor, Tensor]]  # alignment of each part: (batch, L_i), (batch, L_j)


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
        config = self.config
        generator = torch.Generator().manual_seed(int(random_stream(seed, 3).integers(2**63)))
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                nn.init.xavier_uniform_(layer.weight, generator=generator)
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)
        self.alignment.reset(generator)
        if config.residual:
            self.structure.weight.zero_()
        else:
            self.structure.weight.normal_(0, STRUCTURE_SCALE, generator=generator)
        if config.word_init == "lsa":
            vectors = lsa_word_vectors(corpus, config.word_dim, seed)
            self.words.weight[1:] = torch.from_numpy(vectors)
        else:
            self.words.weight.normal_(0, WORD_SCALE, generator=generator)
        self.words.weight[PADDING] = 0
        self.integrator.initialise(self._centre(corpus, "mean"))
        self.decoder.decoding.initialise()
        if isinstance(self.decoder, GaussianDecoder):
            self.decoder.centre.copy_(self._centre(corpus, config.target))

    def _centre(self, corpus: Corpus, how: str) -> Tensor:
        """The mean of the pooled texts at unit length, without empty texts: (d_w,)."""
        total = torch.zeros(self.config.word_dim)
        for rows in np.array_split(np.arange(len(corpus)), len(corpus) // POOLED_AT_ONCE + 1):
            pooled = pool(self.words.weight, [torch.from_numpy(corpus.padded(rows))], how)
            total += normalize(pooled, dim=1).sum(dim=0)
        return total / max(1, int(np.count_nonzero(corpus.lengths)))

    def infer(self, batch: Sequence[TextPairs]) -> Inferred:
        """The approximate posterior of each pair (section 3.2, encoder)."""
        aligned = self.align(batch)
        i, j = joined(batch, "i"), joined(batch, "j")
        posterior = self.integrator(
            aligned.text_i, aligned.text_j, self.structure(i), self.structure(j)
        )
        return Inferred(posterior, aligned.weights)

    def align(self, batch: Sequence[TextPairs]) -> Aligned:
        texts = [(pairs.tokens_i, pairs.tokens_j) for pairs in batch]
        aligned: Aligned = self.alignment(self.words.weight, texts)
        return aligned

    def reconstruct(
        self, q: PairGaussian, words: Tensor, texts: Sequence[Tensor], generator: torch.Generator
    ) -> Tensor:
        """One sample of E_q[log p(x_i, x_j | z_i, z_j)] for each pair: (pairs,).

        ``texts`` are the tokens of all first ends and then of all second ends, in parts.
        """
        z = torch.cat(sample(q, generator))
        first, second = ends(self.decoder.log_likelihood(z, words, texts))
        return first + second

    def loss(self, batch: Sequence[TextPairs], generator: torch.Generator) -> ElboTerms:
        """Every term of the objective for each pair of a batch, which comes in parts."""
        texts = [pairs.tokens_i for pairs in batch] + [pairs.tokens_j for pairs in batch]
        return self.terms(
            self.infer(batch).posterior,
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
    ) -> ElboTerms:
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

    def objective(self, terms: ElboTerms) -> Tensor:
        """What is minimised, for each pair: the negative ELBO and the link term."""
        return -terms.bound - self.config.link_weight * terms.link
