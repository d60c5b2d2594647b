"""What the neural text baselines share: CANE's objective (Tu, Liu, Liu & Sun, ACL 2017) over pairs
of vertices, and an estimator on the sampler, trainer and contexts of the pair model.

With s the structure vector of a vertex and t its text vector in the context of its partner, the
ends of a pair (i, j) that is linked (w = 1), or was drawn as a negative (w = -1), have

    L_ij = l(s_i·s_j) + a l(t_i·t_j) + b l(t_i·s_j) + c l(s_i·t_j),    l(x) = log σ(w x).

Links are undirected here, so b and c are applied in both directions and halved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag

from vhe.data.network import TextNetwork
from vhe.data.sampling import LinkSet
from vhe.data.splits import validation_links
from vhe.data.text import PADDING, Corpus
from vhe.errors import VHEError
from vhe.pair.elbo import Terms, log_bernoulli
from vhe.pair.embedding import global_embedding
from vhe.pair.homophily import PairGaussian
from vhe.pair.integrator import PairPosterior
from vhe.pair.model import STRUCTURE_SCALE, PairModel, TextPairs, joined, weight_generator
from vhe.pair.training import PairTrainer, train
from vhe.predict.scoring import CosineMethod

LOG_VARIANCE = -20.0  # these vectors are points


@dataclass(frozen=True, kw_only=True)
class CANEObjective:
    """Weights of the other terms relative to L_ss.

    The defaults are CANE's on Cora and Zhihu (on HepTh it has .7, .2, .2). ``word_dropout`` is the
    fraction of words that are masked in each step.

    ``layer_pace`` is the learning rate of the layers relative to that of words and structure.
    Layers, which start where they preserve what the words say, fit the few links of a network long
    before the words have learned from them; a lower rate prevents that.
    """

    text: float = 1.0  # a
    text_structure: float = 0.3  # b
    structure_text: float = 0.3  # c
    word_dropout: float = 0.0
    layer_pace: float = 0.02

    def __post_init__(self) -> None:
        if not 0 <= self.word_dropout < 1:
            raise VHEError(f"word_dropout is {self.word_dropout}, but must be in [0, 1)")


@dataclass(frozen=True, kw_only=True)
class ContextualSettings:
    """Settings of a contextual baseline; those that `PairVHEConfig` has mean the same."""

    max_words: int = 300
    min_count: int = 2
    word_init: Literal["lsa", "random"] = "lsa"
    word_dim: int = 100  # of the text half
    structure_dim: int = 100  # of the structure half
    kernels: int = 200
    kernel_width: int = 5
    alpha: float = 0.0
    negatives: int = 1
    batch_size: int = 128
    near_pairs: int = 0
    learning_rate: float = 1e-2
    table_rate: float | None = None  # of the structure table; None: the learning rate, sparse Adam
    warmup: int = 0
    decay: bool = False
    steps: int = 240
    epochs: float = 0.0
    validate_every: int = 20
    patience: int | None = 3  # None: train all steps
    validation: float = 0.05
    contexts: int = 8

    @property
    def latent_dim(self) -> int:
        return self.structure_dim + self.word_dim

    @property
    def structure_rate(self) -> float:
        return self.learning_rate if self.table_rate is None else self.table_rate


def points(z_i: Tensor, z_j: Tensor) -> PairPosterior:
    """Vectors (batch, d) of the ends of pairs as Gaussians of negligible variance."""
    narrow = torch.full_like(z_i, LOG_VARIANCE)
    gaussian = PairGaussian(z_i, z_j, narrow, narrow)
    return PairPosterior(gaussian, gaussian, z_i.new_zeros(len(z_i)))


class ContextualPairs(PairModel):
    """Structure vectors in a table, text vectors from a pair of texts; a baseline gives
    `text_vectors`, or `texts` if it does not read the texts part by part."""

    config: ContextualSettings

    def __init__(self, config: ContextualSettings, weights: CANEObjective, corpus: Corpus) -> None:
        super().__init__()
        self.config, self.weights = config, weights
        self.layer_pace = weights.layer_pace
        self.words = nn.Embedding(len(corpus.vocabulary) + 1, config.word_dim, padding_idx=PADDING)
        sparse = config.table_rate is None
        self.structure = nn.Embedding(len(corpus), config.structure_dim, sparse=sparse)
        tokens = torch.from_numpy(np.array(corpus.tokens, dtype=np.int64))
        self.bags = tokens, torch.from_numpy(corpus.offsets[:-1])  # of all texts
        self.add_layers()

    def add_layers(self) -> None:
        """Add the weights of a baseline that are neither words nor structure."""

    def initialise_layers(self, generator: torch.Generator) -> None:
        """Set the weights that `add_layers` has added."""

    def texts(self, batch: Sequence[TextPairs]) -> tuple[Tensor, Tensor]:
        """Text vectors t_i, t_j of a batch that comes in parts, each (pairs, word_dim).

        Swapping i and j must swap the result, and an empty text must have the vector 0.
        """
        parts = [self.text_vectors(pairs.tokens_i, pairs.tokens_j) for pairs in batch]
        first, second = zip(*parts, strict=True)
        return torch.cat(first), torch.cat(second)

    def text_vectors(self, tokens_i: Tensor, tokens_j: Tensor) -> tuple[Tensor, Tensor]:
        """Text vectors of one part of a batch from its tokens, (pairs, L) each."""
        raise NotImplementedError

    def mean_words(self) -> Tensor:
        """The mean word vector of each text: (n, word_dim)."""
        tokens, offsets = self.bags
        return embedding_bag(tokens, self.words.weight, offsets, mode="mean")

    def use_links(self, links: np.ndarray) -> None:
        """Set the links (m, 2) that a baseline reads from, if it does."""

    @torch.no_grad()
    def initialise(self, corpus: Corpus, seed: int) -> None:
        """Set every weight from the corpus and the seed."""
        generator = weight_generator(seed)
        # so small that a vertex without links is scored by its text
        self.structure.weight.normal_(0, STRUCTURE_SCALE, generator=generator)
        self.initialise_words(corpus, seed, generator)
        self.initialise_layers(generator)

    def infer(self, batch: Sequence[TextPairs]) -> PairPosterior:
        """The vectors [s ; t] of both ends of each pair of a batch, which comes in parts."""
        t_i, t_j = self.texts(batch)
        return points(
            torch.cat([self.structure(joined(batch, "i")), t_i], dim=1),
            torch.cat([self.structure(joined(batch, "j")), t_j], dim=1),
        )

    def loss(self, batch: Sequence[TextPairs], generator: torch.Generator) -> Terms:
        """log σ(±u·v) of each pair and each kind of vector, for a batch that comes in parts."""
        t_i, t_j = self.texts([self.dropped(pairs, generator) for pairs in batch])
        s_i, s_j = self.structure(joined(batch, "i")), self.structure(joined(batch, "j"))
        w = self.labels(batch, t_i, t_j)
        ss, tt, ts, st = (
            log_bernoulli(w, (u * v).sum(dim=1))
            for u, v in ((s_i, s_j), (t_i, t_j), (t_i, s_j), (s_i, t_j))
        )
        return Terms(structure=ss, text=tt, cross=(ts + st) / 2)

    def labels(self, batch: Sequence[TextPairs], t_i: Tensor, t_j: Tensor) -> Tensor:
        """P(w = 1) of each pair of a batch with the text vectors t: (pairs,)."""
        return joined(batch, "links")

    def dropped(self, pairs: TextPairs, generator: torch.Generator) -> TextPairs:
        """The pairs with a random fraction of the words of their texts masked."""
        fraction = self.weights.word_dropout
        if fraction == 0:
            return pairs

        def drop(tokens: Tensor) -> Tensor:
            drawn = torch.rand(tokens.shape, generator=generator, device=tokens.device)
            return tokens.masked_fill(drawn < fraction, PADDING)

        return replace(pairs, tokens_i=drop(pairs.tokens_i), tokens_j=drop(pairs.tokens_j))

    def objective(self, terms: Terms) -> Tensor:
        """-L of each pair."""
        w = self.weights
        cross = w.text_structure + w.structure_text
        return -(terms["structure"] + w.text * terms["text"] + cross * terms["cross"])


class Contextual(CosineMethod):
    """Fits a `ContextualPairs` and averages its vectors over contexts.

    ``embedding_`` is [structure half ; text half], the text half being the mean over some random
    contexts; a pair is scored by the cosine of the two rows. Training stops early by validation
    links.

    Parameters
    ----------
    weights : of the objective.
    random_state : seed.
    **settings : fields of `ContextualSettings`. Word vectors start from the corpus, as those of
        `PairVHE`; ``word_init="random"`` is the start of the papers.

    Attributes
    ----------
    history_ : the terms of the objective and the validation AUC during training.
    """

    pairs: ClassVar[type[ContextualPairs]]
    weights: ClassVar[CANEObjective] = CANEObjective()
    settings: ClassVar[dict[str, Any]] = {}  # where a baseline differs from the defaults
    config_class: ClassVar[type[ContextualSettings]] = ContextualSettings

    def __init__(
        self, *, weights: CANEObjective | None = None, random_state: int = 0, **settings: Any
    ) -> None:
        self.objective = weights or self.weights
        self.random_state = random_state
        try:
            self.config = self.config_class(**self.settings | settings)
        except TypeError as error:
            raise VHEError(f"{type(self).__name__}: {error}") from None

    def fit(self, network: TextNetwork) -> Self:
        """Learn from the links; without any, the vectors stay as they are initialised."""
        config, seed = self.config, self.random_state
        corpus = Corpus.build(network.texts, min_count=config.min_count, max_words=config.max_words)
        links, validation = validation_links(network.links, config.validation, seed)
        model = self.pairs(config, self.objective, corpus)
        model.initialise(corpus, seed)
        model.use_links(links)
        self.history_: list[dict[str, float]] = []
        if len(links):
            state = train(
                PairTrainer(model, corpus, links, validation, seed=seed),
                validate_every=config.validate_every,
                patience=config.patience,
            )
            if state.interrupted:
                raise KeyboardInterrupt
            self.history_ = state.history
        model.use_links(network.links)
        link_set = LinkSet(network.links, len(network))
        self.embedding_ = global_embedding(
            model.eval(), corpus, link_set, contexts=config.contexts, seed=seed
        ).mean
        self.model_, self.corpus_, self.network_ = model, corpus, network
        return self
