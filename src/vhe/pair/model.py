"""The variational autoencoder over pairs of vertices: infer, reconstruct, loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vhe.config import VHEConfig
from vhe.data.sampling import Pairs, stream
from vhe.data.text import PADDING, Corpus
from vhe.graph.posterior import MaskedPosterior
from vhe.pair.alignment import PhraseToWordAlignment
from vhe.pair.decoder import GaussianDecoder, MultinomialDecoder, pool
from vhe.pair.elbo import ElboTerms, elbo, partner_log_probability
from vhe.pair.homophily import PairGaussian, kl_to_prior, sample
from vhe.pair.integrator import Integrator, PairPosterior, ends
from vhe.text.lsa import WORD_SCALE, lsa_word_vectors, mean_words


@dataclass(frozen=True)
class TextPairs:
    """A batch of pairs as the network reads it."""

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
    """A field of all parts of a batch."""
    return torch.cat([getattr(pairs, name) for pairs in batch])


@dataclass(frozen=True)
class Inferred:
    """What inference gives for the pairs of a batch, all parts after each other."""

    posterior: PairPosterior
    weights: list[tuple[Tensor, Tensor]]  # of the words of each part: (batch, L_i), (batch, L_j)


class PairVAE(nn.Module):
    """VHE's network (section 3): alignment, structure embedding, integrator and decoder.

    The paper's structure embedding is a learned look-up table. The joint one is the posterior
    mean of every vertex under the prior of the whole graph (`graph_prior`); while training it is
    made anew in each step, without the links of the step, and the table holds the last one.
    """

    def __init__(self, config: VHEConfig, vocabulary: int, vertices: int, pi0: float) -> None:
        super().__init__()
        self.config, self.pi0 = config, pi0
        self.words = nn.Embedding(vocabulary + 1, config.word_dim, padding_idx=PADDING)
        structure_dim = 0 if config.structure == "none" else config.structure_dim
        self.structure = nn.Embedding(vertices, structure_dim, sparse=True)
        self.structure.weight.requires_grad_(config.structure == "learned")
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
        """Set every weight that does not start at a constant, from the corpus and the seed."""
        config = self.config
        generator = torch.Generator().manual_seed(int(stream(seed, 3).integers(2**63)))
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                nn.init.xavier_uniform_(layer.weight, generator=generator)
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)
        self.alignment.reset(generator)
        self.structure.weight.normal_(0, 0.01, generator=generator)
        if config.word_init == "lsa":
            vectors = lsa_word_vectors(corpus, config.word_dim, seed)
            self.words.weight[1:] = torch.from_numpy(vectors)
        else:
            self.words.weight.normal_(0, WORD_SCALE, generator=generator)
        self.words.weight[PADDING] = 0
        targets = self._pooled(corpus)
        center = targets.mean(dim=0)
        spread = float((targets - center).square().mean().sqrt())
        scale = spread if spread > 1e-4 else 1.0  # texts that all say the same have none
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
            parts.append(torch.from_numpy(corpus.padded(rows)))
        return pool(self.words.weight, parts, "max")

    def infer(
        self, batch: Sequence[TextPairs], structure: Callable[[Tensor], Tensor] | None = None
    ) -> Inferred:
        """The approximate posterior of each pair (section 3.2, encoder).

        ``structure`` gives the structure embeddings (k, d_h) of k vertices instead of the table.
        """
        aligned = self.alignment(
            self.words.weight, [(pairs.tokens_i, pairs.tokens_j) for pairs in batch]
        )
        i, j = joined(batch, "i"), joined(batch, "j")
        h = structure or self.structure
        posterior = self.integrator(aligned.text_i, aligned.text_j, h(i), h(j))
        return Inferred(posterior, aligned.weights)

    def reconstruct(
        self, q: PairGaussian, words: Tensor, texts: Sequence[Tensor], generator: torch.Generator
    ) -> Tensor:
        """One sample of E_q[log p(x_i, x_j | z_i, z_j)] for each pair: (pairs,).

        ``texts`` are the tokens of all first ends and then of all second ends, in parts.
        """
        z = torch.cat(sample(q, generator))
        first, second = ends(self.decoder.log_likelihood(z, words, texts))
        return first + second

    def loss(
        self,
        batch: Sequence[TextPairs],
        generator: torch.Generator,
        left_out: MaskedPosterior | None = None,
    ) -> ElboTerms:
        """Every term of the objective for each pair of a batch, which comes in parts.

        ``left_out`` is the joint posterior without the links of the step, where there is one: then
        the ends of these links have to find each other in it, otherwise those of the batch.
        """
        q = self.infer(batch, None if left_out is None else left_out.of).posterior
        words = self.words.weight
        texts = [pairs.tokens_i for pairs in batch] + [pairs.tokens_j for pairs in batch]
        linked = self.reconstruct(q.linked, words, texts, generator)
        # log p(x|z) looks at z_i and z_j one by one, so branches with equal margins share it
        unlinked = (
            linked
            if self.config.shared_posterior
            else self.reconstruct(q.unlinked, words, texts, generator)
        )
        links, known, i, j = (joined(batch, name) for name in ("links", "known", "i", "j"))
        partner = torch.zeros_like(q.link_logit).sum()
        if self.config.link_posterior == "latent":
            if left_out is not None:
                vertices, places = left_out.links.unique(return_inverse=True)
                codes, part, weight = left_out.of(vertices), left_out.part, left_out.weight
            else:  # the mean of a vertex over its pairs, of which only the direction counts
                rows = (known & (links > 0)).nonzero().squeeze(1)
                vertices, places = torch.stack([i, j])[:, rows].unique(return_inverse=True)
                means = torch.cat([q.linked.mean_i[rows], q.linked.mean_j[rows]])
                codes = means.new_zeros(len(vertices), means.shape[1])
                codes, places = codes.index_add(0, places.flatten(), means), places.T
                part, weight = (0, 1), 1.0
            scale = self.integrator.link_scale.exp()
            partner = weight * partner_log_probability(codes, places, scale, part)
        return elbo(
            links=links,
            known=known,
            link_logit=q.link_logit,
            reconstruction_linked=linked,
            reconstruction_unlinked=unlinked,
            kl_linked=kl_to_prior(q.linked, self.config.homophily),
            kl_unlinked=kl_to_prior(q.unlinked, 0.0),
            partner=partner,
            pi0=self.pi0,
        )

    def objective(self, terms: ElboTerms) -> Tensor:
        """What is minimised, for each pair: the negative bound and the semi-supervised terms."""
        return -terms.bound - self.config.link_weight * (terms.link + terms.partner)
