"""What a network over pairs of vertices has to offer to be trained and read: VHE's own, and those
it is compared with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from torch import Tensor, nn

if TYPE_CHECKING:
    import torch

    from vhe.config import VHEConfig
    from vhe.graph.posterior import MaskedPosterior
    from vhe.pair.integrator import PairPosterior
    from vhe.pair.model import TextPairs


class Terms(Protocol):
    """The terms of an objective for the pairs of a batch."""

    def means(self) -> dict[str, float]: ...


class Read(Protocol):
    """What a model infers from a batch of pairs."""

    @property
    def posterior(self) -> PairPosterior: ...


class PairModel(Protocol):
    """An `nn.Module` that learns from pairs and gives each end of a pair ``latent_dim`` numbers."""

    config: VHEConfig
    words: nn.Embedding
    structure: nn.Embedding  # with sparse gradients

    def loss(
        self,
        batch: Sequence[TextPairs],
        generator: torch.Generator,
        left_out: MaskedPosterior | None = None,
    ) -> Terms: ...

    def objective(self, terms: Any) -> Tensor:
        """What is minimised, for each pair."""

    def infer(self, batch: Sequence[TextPairs]) -> Read: ...

    def parameters(self) -> Iterator[nn.Parameter]: ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> Any: ...
