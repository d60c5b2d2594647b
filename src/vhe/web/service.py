"""The state of the server: one snapshot after another, and the decisions on suggested links."""

from __future__ import annotations

import logging
import os
import threading
import zlib
from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vhe.errors import VHEError
from vhe.storage.decisions import Decisions, State
from vhe.storage.derived import Arrays
from vhe.storage.journal import Journal, journal_file, read_journal
from vhe.web.background import Background, Task, compute
from vhe.web.changes import Change, Pending, recorded_changes
from vhe.web.explorer import Answer, Explorer
from vhe.web.loading import Loaded, load, store, valid_layout, valid_ranking
from vhe.web.overlay import arranged, reranked
from vhe.web.ranking import Review
from vhe.web.snapshot import Snapshot

if TYPE_CHECKING:
    from vhe.data.network import TextNetwork
    from vhe.fitted import FittedModel

log = logging.getLogger("vhe.web")


class ConflictError(VHEError):
    """A request that does not fit the present state."""


class UnavailableError(VHEError):
    """A request that this server cannot carry out now."""


class ReadOnlyError(VHEError):
    """A change that is not allowed."""


@dataclass(frozen=True)
class Base:
    """What was read from a folder.

    Attributes
    ----------
    given, folder : the folder as it was named, and where it was then if it is a symbolic link
    """

    given: Path
    folder: Path
    loaded: Loaded


def read_base(folder: Path, seed: int | None) -> Base:
    real = Path(os.path.realpath(folder))
    return Base(folder, real, load(real, seed))


def first_snapshot(loaded: Loaded, changes: Iterable[Change] = ()) -> Snapshot:
    """A model as its folder has it, with the changes of a journal."""
    network = loaded.model.network_
    pending = Pending(network)
    for change in changes:
        pending.replay(change)
    model = pending.applied(loaded.model)
    ranking = loaded.ranking
    if ranking is not None and model is not loaded.model:
        ranking = reranked(model, network, ranking)
    numbering = first_numbering(model.network_.ids)
    if loaded.coordinates is None:
        return Snapshot(Explorer(model), "quick", ranking, numbering=numbering)
    explorer = Explorer(model, arranged(model, network, loaded.coordinates))
    return Snapshot(explorer, "final", ranking, numbering=numbering)


def first_numbering(ids: Sequence[Hashable]) -> int:
    """A number that depends on the ids, so that a restart with other vertices is noticed, too."""
    return zlib.crc32("\n".join(map(repr, ids)).encode("utf-8", "replace"))


def saved_changes(folder: Path, journal: Journal | None) -> list[Change]:
    """The changes of the network of a model; a read-only server reads those of the last one."""
    if journal is not None:
        return recorded_changes(journal.records, journal.path)
    path = journal_file(folder)
    return recorded_changes(read_journal(path)[0], path) if path.exists() else []


class Service:
    """All that changes while the server runs.

    Snapshots are replaced by one thread, the keeper, in the order in which the work is submitted;
    requests read ``snapshot`` once.

    Parameters
    ----------
    base : what was read from the folder; the snapshot is that with the changes of the journal
    journal : where changes of the network are saved; None if they are not allowed
    """

    def __init__(
        self,
        snapshot: Snapshot,
        *,
        base: Base | None = None,
        seed: int | None = None,
        decisions: Decisions | None = None,
        journal: Journal | None = None,
    ) -> None:
        self.snapshot, self.base, self.seed = snapshot, base, seed
        self.decisions, self.journal = decisions, journal
        self.ready = threading.Event()
        self._keeper = ThreadPoolExecutor(1, "vhe-keeper")
        self._background: dict[Task, Background] = {}
        self._writes: deque[tuple[Change, Future[Snapshot]]] = deque()
        self._reviewed: tuple[Snapshot | None, int, Review | None] = None, -1, None

    # --- starting and stopping

    def start(self) -> Future[None]:
        """Start the work that the first answers do not need."""
        return self._keeper.submit(self._warm_up)

    def _warm_up(self) -> None:
        self.snapshot.explorer.warm_up()
        self.ready.set()
        self._start_missing()  # after what the first answers need

    def close(self) -> None:
        for process in self._background.values():
            process.stop()
        self._keeper.shutdown(wait=True, cancel_futures=True)
        if self.decisions is not None:
            self.decisions.close()
        if self.journal is not None:
            self.journal.close()

    def summary(self) -> Answer:
        """Name, size and state of the network."""
        snapshot = self.snapshot
        state = {"version": snapshot.version, "numbering": snapshot.numbering}
        return snapshot.explorer.summary() | state | {"writable": self.journal is not None}

    # --- work in the background

    def _start_missing(self) -> None:
        missing: list[Task] = []
        if self.snapshot.layout == "quick":
            missing.append("layout")
        if self.snapshot.ranking is None:
            missing.append("ranking")
        for task in missing:
            threading.Thread(target=self._run, args=(task,), daemon=True).start()

    def _run(self, task: Task) -> None:
        base, explorer = self.base, self.snapshot.explorer
        if base is None:
            arrays: Arrays | None = compute(task, explorer.model, self.seed or 0)
        else:
            try:
                process = Background(task, base.folder, base.loaded.fingerprint, self.seed or 0)
            except OSError as error:  # such as a limit of processes
                log.warning("the %s is not computed: %s", task, error.strerror or error)
                return
            self._background[task] = process
            arrays = process.result()
        if arrays is not None:
            with suppress(RuntimeError):  # the server has stopped meanwhile
                self._keeper.submit(self._accept, task, base, explorer.network, arrays)

    def _accept(self, task: Task, base: Base | None, network: TextNetwork, arrays: Arrays) -> None:
        """Use what was computed, and store it with the model."""
        if self.base is not base:  # the model was replaced meanwhile
            return
        if base is not None:
            network = base.loaded.model.network_
        model = self.snapshot.explorer.model
        if task == "layout":
            found = valid_layout(arrays, len(network), None)
            if found is not None:
                explorer = self.snapshot.explorer.following(model, arranged(model, network, found))
                self.snapshot = self.snapshot.followed_by(explorer=explorer, layout="final")
        else:
            ranking = valid_ranking(arrays, network.links, len(network))
            if ranking is not None:
                ranking = reranked(model, network, ranking)
                self.snapshot = self.snapshot.followed_by(ranking=ranking)
        if base is not None:
            store(base.folder, base.loaded.fingerprint, task, arrays)

    # --- changes

    def write(self, change: Change) -> Future[Snapshot]:
        """Save and apply a change; the future is the snapshot that has it."""
        if self.journal is None:
            raise ReadOnlyError("This server is read-only; start it with --writable.")
        future: Future[Snapshot] = Future()
        self._writes.append((change, future))
        self._keeper.submit(self._commit)
        return future

    @property
    def waiting_changes(self) -> int:
        return len(self._writes)

    def _commit(self) -> None:
        """Apply all waiting changes at once: one flush to disk serves all of them."""
        self._commit_together([self._writes.popleft() for _ in range(len(self._writes))])

    def _commit_together(self, waiting: list[tuple[Change, Future[Snapshot]]]) -> None:
        pending, good = Pending(self.snapshot.explorer.network), []
        for change, future in waiting:
            try:
                pending.add(change)
                good.append((change, future))
            except VHEError as error:
                future.set_exception(error)
        if not good:
            return
        assert self.journal is not None
        try:
            model = pending.applied(self.snapshot.explorer.model)
            following = self._following(model)
            self.journal.append([{"changes": [change.record() for change, _ in good]}])
        except Exception as error:
            if len(good) > 1 and not self.journal.failed:  # one must not fail for another
                for one in good:
                    self._commit_together([one])
                return
            if not isinstance(error, VHEError):
                log.exception("a change failed")
            failure = error if isinstance(error, VHEError) else VHEError("The change failed.")
            for _, future in good:
                future.set_exception(failure)
            return
        self.snapshot = following
        for _, future in good:
            future.set_result(following)

    def _following(self, model: FittedModel) -> Snapshot:
        """The snapshot after a change of the network."""
        present = self.snapshot
        before = present.explorer.network
        moved = model.network_.ids[: len(before)] != before.ids
        return present.followed_by(
            explorer=present.explorer.following(
                model, arranged(model, before, present.explorer.coordinates)
            ),
            ranking=None if present.ranking is None else reranked(model, before, present.ranking),
            numbering=present.numbering + moved,
        )

    def reload(self) -> Future[Snapshot]:
        """Read the model folder again, and use it when it is ready."""
        return self._keeper.submit(self._reload)

    def _reload(self) -> Snapshot:
        if self.base is None:
            raise UnavailableError("The model was not read from a folder.")
        base = read_base(self.base.given, self.seed)
        if base.loaded.fingerprint == self.base.loaded.fingerprint:
            return self.snapshot
        fresh = first_snapshot(base.loaded, saved_changes(base.given, self.journal))
        before, after = self.snapshot.explorer.network, fresh.explorer.network
        moved = after.ids[: len(before)] != before.ids
        fresh.explorer.warm_up()
        for process in self._background.values():
            process.stop()
        self.base = base
        self.snapshot = self.snapshot.followed_by(
            explorer=fresh.explorer,
            layout=fresh.layout,
            ranking=fresh.ranking,
            numbering=self.snapshot.numbering + moved,
        )
        self._start_missing()
        log.info("model reloaded from %s", base.given)
        return self.snapshot

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
            raise UnavailableError(
                "Decisions cannot be saved: start vhe serve with --state FILE, or "
                "model.explore(state=FILE)."
            )
        return self.decisions

    @staticmethod
    def check_numbering(snapshot: Snapshot, numbering: int | None) -> None:
        if numbering is not None and numbering != snapshot.numbering:
            raise ConflictError(
                "Vertex numbers have changed since this numbering; read the map again."
            )
