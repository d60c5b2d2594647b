"""What the server answers from: a model with its map and ranking, replaced as a whole."""

from __future__ import annotations

import gzip
import threading
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from vhe.web.explorer import Explorer
from vhe.web.guard import json_bytes
from vhe.web.ranking import Ranking
from vhe.web.worker import AnswerCache


@dataclass(frozen=True)
class Snapshot:
    """A state of the service. A request reads one snapshot, whatever happens meanwhile.

    Attributes
    ----------
    ranking : None until it has been computed
    version : increases with every change of the map
    numbering : another one when vertex numbers change their meaning
    """

    explorer: Explorer
    layout: Literal["quick", "final"] = "final"
    ranking: Ranking | None = None
    version: int = 1
    numbering: int = 1
    cache: AnswerCache = field(default_factory=AnswerCache, compare=False)
    _compressing: threading.Lock = field(default_factory=threading.Lock, compare=False)

    def followed_by(self, **changes: Any) -> Snapshot:
        """The next snapshot; answers are cached anew if the explorer changes."""
        if "explorer" in changes:
            changes.setdefault("cache", AnswerCache())
        return replace(self, version=self.version + 1, _compressing=threading.Lock(), **changes)

    @property
    def state(self) -> dict[str, Any]:
        return {"layout": self.layout, "version": self.version, "numbering": self.numbering}

    def map_if_compressed(self) -> bytes | None:
        """The compressed map, if another request has compressed it already."""
        return self.__dict__.get("_compressed")

    def compressed_map(self) -> bytes:
        with self._compressing:
            return self._compressed

    @cached_property
    def _compressed(self) -> bytes:
        level = 6 if self.layout == "final" else 1  # a quick layout is soon replaced
        return gzip.compress(json_bytes(self.explorer.map | self.state), level, mtime=0)
