"""The result of a reader: the parts of a network, not yet validated."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from vhe.data.attributes import Vectors, Weights
from vhe.data.checks import Integers

if TYPE_CHECKING:
    from vhe.data.network import TextNetwork


@dataclass(frozen=True)
class NetworkParts:
    """What a reader returns; see `TextNetwork` for the meaning of each part."""

    ids: Sequence[Hashable]
    texts: Sequence[str]
    edges: Integers
    labels: Sequence[Hashable | None] | None = None
    directed: bool = False
    name: str = "network"
    notes: Sequence[str] = ()
    vectors: Vectors | None = None
    edge_weights: Weights | None = None


NetworkLike: TypeAlias = "NetworkParts | TextNetwork"  # what a writer takes
