"""What the neural text baselines share: CANE's objective (Tu, Liu, Liu & Sun, ACL 2017) over pairs
of vertices, and an estimator on VHE's own sampler, trainer and averaging over contexts.

With s the structure vector of a vertex and t its text vector beside its partner, the ends of a
pair (i, j) that is linked (w = 1), or was drawn as a negative (w = -1), have

    L_ij = l(s_i·s_j) + a l(t_i·t_j) + b l(t_i·s_j) + c l(s_i·t_j),    l(x) = log σ(w x).

A link has no direction here, so b and c are used both ways round and halved.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from vhe.config import VHEConfig
from vhe.data.sampling import LinkSet, stream
from vhe.data.splits import validation_links
from vhe.data.text import PADDING, Corpus
from vhe.errors import VHEError
from vhe.graph.posterior import MaskedPosterior
from vhe.pair.embedding import global_embedding
from vhe.pair.homophily import PairGaussian
from vhe.pair.integrator import PairPosterior
from vhe.pair.model import TextPairs, joined
from vhe.pair.training import Trainer
from vhe.predict.scoring import CosineMethod
from vhe.text.lsa import WORD_SCALE, lsa_word_vectors

if TYPE_CHECKING:
    from vhe.data.network import TextNetwork

STRUCTURE_START = 0.01  # so small that a vertex without links is judged by its text
MOST_VALIDATION_LINKS = 256
LOG_VARIANCE = -20.0  # these vectors are points


@dataclass(frozen=True, kw_only=True)
class CANEObjective:
    """Weights of the objective beside L_ss; the defaults are CANE's on Cora and Zhihu (on HepTh
    it has .7, .2, .2). ``word_dropout`` is the share of words left out in each step.

    ``layer_pace`` is the rate of the layers over that of words and structure. Layers, which start
    where they keep what the words say, fit the few links of a network long before the words have
    learned from them; held back, they do not.
    """

    text: float = 1.0  # a
    text_structure: float = 0.3  # b
    structure_text: float = 0.3  # c
    word_dropout: float = 0.0
    layer_pace: float = 0.02

    def __post_init__(self) -> None:
        if not 0 <= self.word_dropout < 1:
            raise VHEError(f"word_dropout is {self.word_dropout}, but it has to be in [0, 1)")


class Terms(dict[str, Tensor]):
    """The terms of an objective by name, each (batch,)."""

    def means(self) -> dict[str, float]:
        return {name: float(values.detach().mean()) for name, values in self.items()}


@dataclass(frozen=True)
class Vectors:
    """Vectors of the ends of pairs, in the form that a posterior has."""

    posterior: PairPosterior

    @classmethod
    def of(cls, z_i: Tensor, z_j: Tensor) -> Vectors:
        """Points (batch, d) as Gaussians of hardly any width."""
        narrow = torch.full_like(z_i, LOG_VARIANCE)
        points = PairGaussian(z_i, z_j, narrow, narrow)
        return cls(PairPosterior(points, points, z_i.new_zeros(len(z_i))))


class ContextualPairs(nn.Module, ABC):
    """Structure vectors in a table, text vectors from a pair of texts; a baseline gives `texts`.

    Parameters
    ----------
    config : its sizes; a text vector has ``word_dim`` numbers.
    corpus : the texts, whose vocabulary and number count.
    """

    def __init__(self, config: VHEConfig, weights: CANEObjective, corpus: Corpus) -> None:
        super().__init__()
        self.config, self.weights = config, weights
        self.layer_pace = weights.layer_pace
        self.words = nn.Embedding(len(corpus.vocabulary) + 1, config.word_dim, padding_idx=PADDING)
        self.structure = nn.Embedding(len(corpus), config.structure_dim, sparse=True)

    @abstractmethod
    def texts(self, batch: Sequence[TextPairs]) -> tuple[Tensor, Tensor]:
        """Text vectors t_i, t_j of a batch that comes in parts, each (pairs, word_dim).

        Swapping i and j has to swap the result, and a text without words has the vector 0.
        """

    def start_layers(self, generator: torch.Generator) -> None:
        """Set the weights of a baseline that are neither words nor structure."""

    def see_links(self, links: np.ndarray) -> None:
        """Told the links (m, 2) that may be read from, for baselines that read from them."""

    @torch.no_grad()
    def start(self, corpus: Corpus, seed: int) -> None:
        """Set every weight, from the corpus and the seed."""
        generator = torch.Generator().manual_seed(int(stream(seed, 3).integers(2**63)))
        self.structure.weight.normal_(0, STRUCTURE_START, generator=generator)
        if self.config.word_init == "lsa":
            vectors = lsa_word_vectors(corpus, self.config.word_dim, seed)
            self.words.weight[1:] = torch.from_numpy(vectors)
        else:
            self.words.weight.normal_(0, WORD_SCALE, generator=generator)
        self.words.weight[PADDING] = 0
        self.start_layers(generator)

    def infer(self, batch: Sequence[TextPairs]) -> Vectors:
        """The vectors [s ; t] of both ends of each pair of a batch, which comes in parts."""
        t_i, t_j = self.texts(batch)
        return Vectors.of(
            torch.cat([self.structure(joined(batch, "i")), t_i], dim=1),
            torch.cat([self.structure(joined(batch, "j")), t_j], dim=1),
        )

    def loss(
        self,
        batch: Sequence[TextPairs],
        generator: torch.Generator,
        left_out: MaskedPosterior | None = None,
    ) -> Terms:
        """log σ(±u·v) of each pair and each kind of vector, for a batch that comes in parts."""
        t_i, t_j = self.texts([self.dropped(pairs, generator) for pairs in batch])
        s_i, s_j = self.structure(joined(batch, "i")), self.structure(joined(batch, "j"))
        sign = 2 * joined(batch, "links") - 1
        ss, tt, ts, st = (
            logsigmoid(sign * (u * v).sum(dim=1))
            for u, v in ((s_i, s_j), (t_i, t_j), (t_i, s_j), (s_i, t_j))
        )
        return Terms(structure=ss, text=tt, cross=(ts + st) / 2)

    def dropped(self, pairs: TextPairs, generator: torch.Generator) -> TextPairs:
        """The pairs with a random share of the words of their texts taken out."""
        share = self.weights.word_dropout
        if share == 0:
            return pairs

        def drop(tokens: Tensor) -> Tensor:
            chance = torch.rand(tokens.shape, generator=generator, device=tokens.device)
            return tokens.masked_fill(chance < share, PADDING)

        return replace(pairs, tokens_i=drop(pairs.tokens_i), tokens_j=drop(pairs.tokens_j))

    def objective(self, terms: Terms) -> Tensor:
        """-L of each pair."""
        w = self.weights
        cross = w.text_structure + w.structure_text
        return -(terms["structure"] + w.text * terms["text"] + cross * terms["cross"])


def by_part(
    texts: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]], batch: Sequence[TextPairs]
) -> tuple[Tensor, Tensor]:
    """Text vectors of a batch from a function of the tokens (pairs, L) of one of its parts."""
    parts = [texts(pairs.tokens_i, pairs.tokens_j) for pairs in batch]
    first, second = zip(*parts, strict=True)
    return torch.cat(first), torch.cat(second)


class Bags:
    """The words of all texts, for baselines that need them in no order and for all at once."""

    def __init__(self, corpus: Corpus) -> None:
        self.tokens = torch.from_numpy(np.array(corpus.tokens, dtype=np.int64))
        self.offsets = torch.from_numpy(corpus.offsets[:-1])

    def mean(self, words: Tensor) -> Tensor:
        """The mean of the word vectors (V, d) of each text: (n, d)."""
        return nn.functional.embedding_bag(self.tokens, words, self.offsets, mode="mean")


class Contextual(CosineMethod):
    """Fits a `ContextualPairs`, stops by validation links and averages over contexts.

    ``embedding_`` is [structure half ; text half], the text half being the mean over some random
    contexts; a pair is scored by the cosine of the two rows.

    Parameters
    ----------
    weights : of the objective.
    random_state : seed.
    **settings : fields of `VHEConfig`, as ``learning_rate`` or ``steps``; ``structure_dim`` and
        ``word_dim`` are the sizes of the two halves. Word vectors start from the corpus, as
        VHE's do; ``word_init="random"`` is the start of the papers.

    Attributes
    ----------
    history_ : the terms of the objective and the validation AUC as training went on.
    """

    pairs: ClassVar[type[ContextualPairs]]
    weights: ClassVar[CANEObjective] = CANEObjective()
    settings: ClassVar[dict[str, Any]] = {}  # where a baseline differs from the usual ones

    def __init__(
        self, *, weights: CANEObjective | None = None, random_state: int = 0, **settings: Any
    ) -> None:
        self.objective = weights or self.weights
        self.random_state = random_state
        usual: dict[str, Any] = {
            "structure": "learned",
            "residual": False,
            "link_posterior": "mlp",
            "alpha": 0.0,
            "word_dim": 100,
            "structure_dim": 100,
            "learning_rate": 1e-2,
            "batch_size": 128,
            "steps": 240,
            "validate_every": 20,
            "patience": 3,
            "validation": 0.05,  # a learned table never hears of these links
        }
        self.config = self.sized(VHEConfig.from_dict({**usual, **self.settings, **settings}))

    @staticmethod
    def sized(config: VHEConfig) -> VHEConfig:
        """The settings with the size of the embedding."""
        return config.replace(latent_dim=config.structure_dim + config.word_dim)

    def fit(self, network: TextNetwork) -> Self:
        """Learn from the links; without any, the vectors stay as they start."""
        config, seed = self.config, self.random_state
        corpus = Corpus.build(network.texts, min_count=config.min_count, max_words=config.max_words)
        links, validation = validation_links(
            network.links, config.validation, seed, MOST_VALIDATION_LINKS
        )
        model = self.pairs(config, self.objective, corpus)
        model.start(corpus, seed)
        model.see_links(links)
        self.history_: list[dict[str, float]] = []
        if len(links):
            self.history_ = Trainer(model, corpus, links, validation, seed=seed).run().history
        model.see_links(network.links)  # the validation links have done their duty
        link_set = LinkSet(network.links, len(network))
        self.embedding_ = global_embedding(
            model.eval(), corpus, link_set, contexts=config.contexts, seed=seed
        ).mean
        self.model_, self.corpus_, self.network_ = model, corpus, network
        return self
