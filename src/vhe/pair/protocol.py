"""What a model over pairs of vertices must offer to be trained and to give embeddings: `PairVAE`
and the contextual baselines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from torch import Tensor, nn

if TYPE_CHECKING:
    import torch

    from vhe.pair.integrator import PairPosterior
    from vhe.pair.model import TextPairs


class PairSettings(Protocol):
    """The settings that the trainer and the embeddings read."""

    @property
    def latent_dim(self) -> int: ...
    @property
    def kernel_width(self) -> int: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def near_pairs(self) -> int: ...
    @property
    def negatives(self) -> int: ...
    @property
    def alpha(self) -> float: ...
    @property
    def learning_rate(self) -> float: ...
    @property
    def structure_rate(self) -> float: ...
    @property
    def warmup(self) -> int: ...
    @property
    def decay(self) -> bool: ...
    @property
    def steps(self) -> int: ...
    @property
    def epochs(self) -> float: ...


class Terms(Protocol):
    """The terms of an objective for the pairs of a batch."""

    def means(self) -> dict[str, float]: ...


class Inference(Protocol):
    """What a model infers from a batch of pairs."""

    @property
    def posterior(self) -> PairPosterior: ...


class PairModel(nn.Module, ABC):
    """A module that learns from pairs and gives each end of a pair a ``latent_dim`` code."""

    config: PairSettings
    words: nn.Embedding
    structure: nn.Embedding
    layer_pace: float = 1.0  # learning rate of the layers over that of the words

    @abstractmethod
    def loss(self, batch: Sequence[TextPairs], generator: torch.Generator) -> Terms:
        """The terms of the objective for a batch, which comes in parts."""

    @abstractmethod
    def objective(self, terms: Any) -> Tensor:
        """What is minimised: for each pair, or as one mean."""

    @abstractmethod
    def infer(self, batch: Sequence[TextPairs]) -> Inference:
        """The posterior of the codes of each pair of a batch, which comes in parts."""
