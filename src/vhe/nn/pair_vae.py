"""The variational autoencoder over pairs of vertices: infer, reconstruct, loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vhe.config import VHEConfig
from vhe.data.pairs import Pairs, stream
from vhe.data.text import PADDING, Corpus
from vhe.nn.alignment import PhraseToWordAlignment
from vhe.nn.decoder import GaussianDecoder, MultinomialDecoder, pool
from vhe.nn.elbo import ElboTerms, elbo
from vhe.nn.homophily import PairGaussian, kl_to_prior, sample
from vhe.nn.integrator import Integrator, PairPosterior
from vhe.nn.starts import WORD_SCALE, diffuse, lsa_word_vectors, mean_words, text_codes


@dataclass(frozen=True)
class TextPairs:
    """A batch of pairs as the network reads it."""

    i: Tensor  # (batch,)  vertices
    j: Tensor
    tokens_i: Tensor  # (batch, L_i)
    tokens_j: Tensor  # (batch, L_j)
    links: Tensor  # (batch,)  w
    known: Tensor  # (batch,)
    fold: Tensor  # (batch,)

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
            tensor(pairs.fold),
        )


@dataclass(frozen=True)
class Inferred:
    """What inference gives: the posterior, and the words it was read from."""

    posterior: PairPosterior
    words_i: Tensor  # (batch, L_i, d_w)
    words_j: Tensor
    mask_i: Tensor  # (batch, L_i)
    mask_j: Tensor
    weight_i: Tensor  # (batch, L_i)  alignment weights
    weight_j: Tensor


class PairVAE(nn.Module):
    """VHE's network (section 3): alignment, structure embedding, integrator and decoder.

    A learned structure embedding is the paper's look-up table. A diffused one is computed from
    the links by `diffuse_structure`, once with all of them and once without each fold, so that a
    training pair never reads a structure that was made with its own link.
    """

    def __init__(self, config: VHEConfig, vocabulary: int, vertices: int, pi0: float) -> None:
        super().__init__()
        self.config, self.pi0 = config, pi0
        self.words = nn.Embedding(vocabulary + 1, config.word_dim, padding_idx=PADDING)
        structure_dim = 0 if config.structure == "none" else config.structure_dim
        self.structure = nn.Embedding(vertices, structure_dim, sparse=True)
        self.structure.weight.requires_grad_(config.structure == "learned")
        self._without_fold: Tensor | None = None  # (folds, vertices, d_h), for training only
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
    def start(self, corpus: Corpus, seed: int) -> None:
        """Set every weight from the corpus and the seed."""
        config = self.config
        generator = torch.Generator().manual_seed(int(stream(seed, 3).integers(2**63)))
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                nn.init.xavier_uniform_(layer.weight, generator=generator)
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)
        self.alignment.reset(generator)
        self.structure.weight.normal_(0, 0.01, generator=generator)
        if config.word_start == "lsa":
            vectors = lsa_word_vectors(corpus, config.word_dim, seed)
            self.words.weight[1:] = torch.from_numpy(vectors)
        else:
            self.words.weight.normal_(0, WORD_SCALE, generator=generator)
        self.words.weight[PADDING] = 0
        targets = self._pooled(corpus)
        center = targets.mean(dim=0)
        scale = float((targets - center).square().mean().sqrt().clamp(min=1e-6))
        self.integrator.start(center, scale)
        self.decoder.decoding.start()
        if isinstance(self.decoder, GaussianDecoder):
            self.decoder.center.copy_(center)
            self.decoder.scale.fill_(scale)

    def _pooled(self, corpus: Corpus) -> Tensor:
        """The pooled word vectors of every text: (n, d_w)."""
        if self.config.target == "mean":
            return torch.from_numpy(mean_words(corpus, self.words.weight[1:].numpy()))
        parts = []
        for rows in np.array_split(np.arange(len(corpus)), max(1, len(corpus) // 512)):
            tokens = torch.from_numpy(corpus.padded(rows))
            parts.append(pool(self.words(tokens), tokens != PADDING, "max"))
        return torch.cat(parts)

    @torch.no_grad()
    def diffuse_structure(
        self,
        corpus: Corpus,
        links: NDArray[np.int64],
        folds: NDArray[np.int64] | None = None,
    ) -> None:
        """Make the structure embeddings from the texts and the links, where they are diffused."""
        if self.config.structure != "diffused":
            return
        codes = text_codes(mean_words(corpus, self.words.weight[1:].cpu().numpy()))
        self.structure.weight.copy_(torch.from_numpy(diffuse(codes, links)))
        if folds is not None:
            parts = [diffuse(codes, links[folds != fold]) for fold in range(folds.max() + 1)]
            stacked = torch.from_numpy(np.stack(parts))
            self._without_fold = stacked.to(self.structure.weight.device)

    def structure_of(self, vertices: Tensor, fold: Tensor) -> Tensor:
        """h of each vertex, made without the links of ``fold`` where that is not -1."""
        h: Tensor = self.structure(vertices)
        if self._without_fold is None:
            return h
        return torch.where((fold >= 0).unsqueeze(1), self._without_fold[fold, vertices], h)

    def infer(self, pairs: TextPairs) -> Inferred:
        """The approximate posterior of each pair (section 3.2, encoder)."""
        mask_i, mask_j = pairs.tokens_i != PADDING, pairs.tokens_j != PADDING
        words_i, words_j = self.words(pairs.tokens_i), self.words(pairs.tokens_j)
        aligned = self.alignment(words_i, words_j, mask_i, mask_j)
        posterior = self.integrator(
            aligned.text_i,
            aligned.text_j,
            self.structure_of(pairs.i, pairs.fold),
            self.structure_of(pairs.j, pairs.fold),
        )
        return Inferred(
            posterior, words_i, words_j, mask_i, mask_j, aligned.weight_i, aligned.weight_j
        )

    def reconstruct(self, q: PairGaussian, pairs: TextPairs, seen: Inferred, generator: torch.Generator) -> Tensor:
        """One sample of E_q[log p(x_i, x_j | z_i, z_j)] for each pair: (batch,)."""
        z_i, z_j = sample(q, generator)
        if isinstance(self.decoder, MultinomialDecoder):
            table_i = table_j = self.words.weight[1:]
        else:
            table_i, table_j = seen.words_i, seen.words_j
        return self.decoder.log_likelihood(
            z_i, table_i, pairs.tokens_i, seen.mask_i
        ) + self.decoder.log_likelihood(z_j, table_j, pairs.tokens_j, seen.mask_j)

    def loss(self, pairs: TextPairs, generator: torch.Generator) -> ElboTerms:
        """Every term of the bound for each pair."""
        seen = self.infer(pairs)
        q = seen.posterior
        linked = self.reconstruct(q.linked, pairs, seen, generator)
        # log p(x|z) looks at z_i and z_j one by one, so branches with equal margins share it
        unlinked = (
            linked
            if self.config.shared_posterior
            else self.reconstruct(q.unlinked, pairs, seen, generator)
        )
        return elbo(
            links=pairs.links,
            known=pairs.known,
            link_logit=q.link_logit,
            reconstruction_linked=linked,
            reconstruction_unlinked=unlinked,
            kl_linked=kl_to_prior(q.linked, self.config.homophily),
            kl_unlinked=kl_to_prior(q.unlinked, 0.0),
            pi0=self.pi0,
        )

    def objective(self, terms: ElboTerms) -> Tensor:
        """What is minimised, for each pair: the negative bound and the semi-supervised term."""
        return -terms.bound - self.config.link_weight * terms.link
