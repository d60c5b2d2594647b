"""Changes of the network: what a write asks for, and the net effect of many writes on a model."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vhe.data.network import TextNetwork
from vhe.errors import VHEError
from vhe.runtime.messages import shown
from vhe.storage.keys import decode_key, encode_key

if TYPE_CHECKING:
    from vhe.fitted import FittedModel

Link = tuple[Hashable, Hashable]
Texts = dict[Hashable, tuple[str, Hashable | None]]  # text and label of each new id


@dataclass(frozen=True)
class Change:
    """New vertices, removed vertices and new links, by id."""

    texts: Texts = field(default_factory=dict)
    links: Sequence[Link] = ()
    removed: Sequence[Hashable] = ()

    def record(self) -> dict[str, Any]:
        """As a record of the journal."""
        return {
            "texts": [
                [encode_key(vertex), text, encode_key(label)]
                for vertex, (text, label) in self.texts.items()
            ],
            "links": [[encode_key(a), encode_key(b)] for a, b in self.links],
            "removed": [encode_key(vertex) for vertex in self.removed],
        }

    @classmethod
    def of(cls, record: dict[str, Any]) -> Change:
        """The change of a record; `LookupError`, `TypeError` or `ValueError` if it is none."""
        texts = {decode_key(v): (text, decode_key(label)) for v, text, label in record["texts"]}
        if not all(isinstance(text, str) for text, _ in texts.values()):
            raise TypeError("a text that is none")
        links = [(decode_key(a), decode_key(b)) for a, b in record["links"]]
        return cls(texts, links, [decode_key(vertex) for vertex in record["removed"]])


def recorded_changes(records: Sequence[dict[str, Any]], path: Path) -> list[Change]:
    """The changes of the records of a journal, which is input also when its checksums are right."""
    changes = []
    for number, record in enumerate(records):
        try:
            changes += [Change.of(change) for change in record["changes"]]
        except (LookupError, TypeError, ValueError, RecursionError) as error:
            raise VHEError(
                f"{path}:{number + 2}: not a change of a network ({shown(error)}); restore a copy"
            ) from None
    return changes


class Pending:
    """The net effect of changes of a network."""

    def __init__(self, network: TextNetwork) -> None:
        self.network = network
        self.texts: Texts = {}
        self.links: dict[frozenset[Hashable], Link] = {}
        self.removed: set[Hashable] = set()

    def __contains__(self, vertex: Hashable) -> bool:
        return vertex in self.texts or (vertex in self.network and vertex not in self.removed)

    def add(self, change: Change) -> None:
        """Add a change; raise `VHEError`, without any effect, if it does not fit."""
        for vertex in change.removed:
            if vertex not in self:
                raise VHEError(f"Unknown vertex id {vertex!r}.")
        for vertex in change.texts:
            if vertex in self:
                raise VHEError(f"Duplicate id {vertex!r}; give new vertices new ids.")
        for link in change.links:
            for vertex in link:
                if vertex not in self and vertex not in change.texts:
                    raise VHEError(f"Unknown vertex id {vertex!r} of a link.")
            if link[0] == link[1]:
                raise VHEError(f"A link of {link[0]!r} with itself; give two vertices.")
        if len(self.network) + len(self.texts) + len(change.texts) - len(self.removed) <= len(
            change.removed
        ):
            raise VHEError("A network needs at least one vertex.")
        self._apply(change)

    def replay(self, change: Change) -> None:
        """Add what still fits of a change that was made to another model."""
        texts = {v: text for v, text in change.texts.items() if v not in self}
        known = {*texts, *(v for link in change.links for v in link if v in self)}
        links = [link for link in change.links if {*link} <= known]
        self._apply(Change(texts, links, [v for v in change.removed if v in self]))

    def _apply(self, change: Change) -> None:
        for vertex in change.removed:
            self.links = {pair: link for pair, link in self.links.items() if vertex not in pair}
            if vertex in self.texts:
                del self.texts[vertex]
            else:
                self.removed.add(vertex)
        self.texts |= change.texts
        self.links |= {frozenset(link): link for link in change.links}

    def applied(self, model: FittedModel) -> FittedModel:
        """The model with these changes; the given one stays as it is."""
        if not (self.texts or self.links or self.removed):
            return model
        changed = copy.copy(model)
        outer = [link for link in self.links.values() if {*link} & self.texts.keys()]
        inner = [link for link in self.links.values() if not {*link} & self.texts.keys()]
        if len(self.removed) == len(self.network):
            raise VHEError("A network needs at least one vertex that was part of the fit.")
        if self.removed:
            changed.remove_vertices(self.removed)
        if inner:
            changed.add_links(inner)
        if self.texts:
            texts = {vertex: text for vertex, (text, _) in self.texts.items()}
            labels = {v: label for v, (_, label) in self.texts.items() if label is not None}
            changed.add_vertices(texts, outer, labels or None)
        return changed
