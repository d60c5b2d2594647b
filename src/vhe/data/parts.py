"""The result of a reader: the parts of a network, not yet validated."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

from vhe.data.checks import Integers


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


class NetworkLike(Protocol):
    """What a writer needs; `TextNetwork` and `NetworkParts` have it."""

    @property
    def ids(self) -> Sequence[Hashable]: ...
    @property
    def texts(self) -> Sequence[str]: ...
    @property
    def edges(self) -> Integers: ...
    @property
    def labels(self) -> Sequence[Hashable | None] | None: ...
    @property
    def directed(self) -> bool: ...
    @property
    def name(self) -> str: ...
