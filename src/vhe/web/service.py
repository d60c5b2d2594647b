"""The state of the server: one snapshot after another, and the decisions on suggested links."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vhe.errors import VHEError
from vhe.storage.decisions import Decisions, State
from vhe.storage.derived import write_derived
from vhe.web.background import Arrays, Background, Task, compute
from vhe.web.explorer import Answer, Explorer
from vhe.web.loading import valid_layout, valid_ranking
from vhe.web.ranking import Ranking, Review
from vhe.web.snapshot import Snapshot

log = logging.getLogger("vhe.web")


class ConflictError(VHEError):
    """A request that does not fit the present state."""


class UnavailableError(VHEError):
    """A request that this server cannot carry out now."""


@dataclass(frozen=True)
class Source:
    """The folder that the model was read from, and the fingerprint of the model."""

    folder: Path
    fingerprint: str


class Service:
    """All that changes while the server runs.

    Snapshots are replaced by one thread, the keeper, in the order in which the work is submitted;
    requests read ``snapshot`` once.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        *,
        source: Source | None = None,
        seed: int = 0,
        decisions: Decisions | None = None,
    ) -> None:
        self.snapshot, self.source, self.seed = snapshot, source, seed
        self.decisions = decisions
        self.ready = threading.Event()
        self._keeper = ThreadPoolExecutor(1, "vhe-keeper")
        self._background: dict[Task, Background] = {}
        self._reviewed: tuple[Snapshot | None, int, Review | None] = None, -1, None

    # --- starting and stopping

    def start(self) -> Future[None]:
        """Start the work that the first answers do not need."""
        for task in self._missing():
            threading.Thread(target=self._run, args=(task,), daemon=True).start()
        return self._keeper.submit(self._warm_up)

    def _warm_up(self) -> None:
        self.snapshot.explorer.warm_up()
        self.ready.set()

    def close(self) -> None:
        for process in self._background.values():
            process.stop()
        self._keeper.shutdown(wait=True, cancel_futures=True)
        if self.decisions is not None:
            self.decisions.close()

    def _missing(self) -> list[Task]:
        found: list[Task] = []
        if self.snapshot.layout == "quick":
            found.append("layout")
        if self.snapshot.ranking is None:
            found.append("ranking")
        return found

    # --- work in the background

    def _run(self, task: Task) -> None:
        source, explorer = self.source, self.snapshot.explorer
        if source is None:
            arrays: Arrays | None = compute(task, explorer.model, self.seed)
        else:
            self._background[task] = Background(task, source.folder, self.seed)
            arrays = self._background[task].result()
        if arrays is not None:
            with suppress(RuntimeError):  # the server has stopped meanwhile
                self._keeper.submit(self._accept, task, source, explorer, arrays)

    def _accept(
        self, task: Task, source: Source | None, explorer: Explorer, arrays: dict[str, np.ndarray]
    ) -> None:
        """Use what was computed, and store it with the model."""
        if self.source is not source:  # the model was replaced meanwhile
            return
        n = len(explorer)
        if task == "layout" and (found := valid_layout(arrays, n, self.seed)) is not None:
            self._use_layout(found)
        elif task == "ranking" and (ranking := valid_ranking(arrays, explorer.network.links, n)):
            self._use_ranking(ranking)
        if source is not None:
            try:
                write_derived(source.folder, source.fingerprint, task, arrays)
            except VHEError as error:
                log.info("the %s is not stored: %s", task, error)

    def _use_layout(self, coordinates: np.ndarray) -> None:
        explorer = Explorer(self.snapshot.explorer.model, coordinates)
        self.snapshot = self.snapshot.followed_by(explorer=explorer, layout="final")

    def _use_ranking(self, ranking: Ranking) -> None:
        self.snapshot = self.snapshot.followed_by(ranking=ranking)

    def summary(self) -> Answer:
        """Name, size and state of the network."""
        snapshot = self.snapshot
        state = {"version": snapshot.version, "numbering": snapshot.numbering}
        return snapshot.explorer.summary() | state | {"writable": False}

    # --- decisions

    def review(self, snapshot: Snapshot) -> Review:
        """The ranking of a snapshot with the decisions on it."""
        saved = {} if self.decisions is None else self.decisions.all()
        changes = 0 if self.decisions is None else self.decisions.changes
        reviewed, at, review = self._reviewed
        if reviewed is not snapshot or at != changes or review is None:
            review = Review.of(snapshot.ranking, saved.values(), snapshot.explorer.network)
            self._reviewed = snapshot, changes, review
        return review

    def suggestions(
        self, state: Any, label: str | None, min_probability: float, offset: int, limit: int
    ) -> Answer:
        """A part of the ranked missing links of the whole network."""
        snapshot = self.snapshot
        explorer, review = snapshot.explorer, self.review(snapshot)
        labelled = None if label is None else explorer.labelled(label)
        part = slice(offset, offset + limit)
        items, counts, total = review.select(
            state, min_probability, labelled, explorer.duplicates, part
        )
        return {
            "ready": snapshot.ranking is not None,
            "total": total,
            "reviewed": sum(d.state != "postponed" for d in review.decisions.values()),
            "counts": counts,
            "items": [explorer.suggested_link(item) for item in items],
        }

    def decide(
        self, source: int, target: int, state: State | None, numbering: int | None
    ) -> Answer:
        """Save a decision on a pair, or undo it (None); return the pair as in `suggestions`."""
        snapshot = self.snapshot
        self.check_numbering(snapshot, numbering)
        explorer = snapshot.explorer
        probability = explorer.probability(source, target)
        if source == target:
            raise VHEError("A vertex has no link with itself; give two vertices.")
        decisions = self.saved_decisions()
        ids = explorer.network.ids[source], explorer.network.ids[target]
        if state is None:
            decisions.undo(*ids)
        else:
            decisions.decide(*ids, state, probability)
        pair = min(source, target), max(source, target)
        review = self.review(snapshot)
        decision = review.decisions.get(pair)
        row = review.ranking.rows.get(pair)
        return explorer.suggested_link(
            {
                "pair": pair,
                "probability": probability,
                "duplicate": bool(
                    explorer.duplicates(np.array([pair]))[0]
                    if row is None
                    else review.ranking.duplicate[row]
                ),
                "state": "open" if decision is None else decision.state,
                "decided": None if decision is None else decision.decided,
            }
        )

    def saved_decisions(self) -> Decisions:
        if self.decisions is None:
            raise UnavailableError("Decisions cannot be saved; start vhe serve with --state FILE.")
        return self.decisions

    @staticmethod
    def check_numbering(snapshot: Snapshot, numbering: int | None) -> None:
        if numbering is not None and numbering != snapshot.numbering:
            raise ConflictError(
                "Vertex numbers have changed since this numbering; read the map again."
            )
