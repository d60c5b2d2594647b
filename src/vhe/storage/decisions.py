"""Decisions on suggested links: accepted, rejected or postponed pairs in a SQLite file.

Pairs are keyed by vertex ids, in either order, so that decisions survive a new fit. Each change is
flushed to disk before the function that makes it returns.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Hashable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, get_args

from vhe.errors import VHEError
from vhe.runtime.messages import shortened, shown
from vhe.storage.keys import decode_key, encode_key

State = Literal["accepted", "rejected", "postponed"]
Pair = tuple[Hashable, Hashable]

APPLICATION = 0x76686564  # "vhed", in the header of the file
FORMAT = 1
TABLE = """
CREATE TABLE decisions (
    source TEXT NOT NULL, target TEXT NOT NULL, state TEXT NOT NULL,
    probability REAL NOT NULL, decided TEXT NOT NULL, PRIMARY KEY (source, target)
) WITHOUT ROWID
"""


@dataclass(frozen=True)
class Decision:
    """What was decided on a pair, and the probability of a link that was predicted then.

    Attributes
    ----------
    source, target : vertex ids
    decided : time in ISO 8601, UTC
    """

    source: Hashable
    target: Hashable
    state: State
    probability: float
    decided: str


class Decisions:
    """The decisions in a file; several processes may use it at the same time."""

    def __init__(self, path: Path, *, create: bool = True) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._seen: int | None = None  # SQLite's data_version of what was read
        self._read: dict[tuple[str, str], Decision] = {}
        self.changes = 0  # number of times that what was read has changed
        if not create and not path.is_file():
            raise VHEError(f"{path}: no such file of decisions; vhe serve writes one")
        try:
            self._database = sqlite3.connect(
                path, timeout=10, check_same_thread=False, isolation_level=None
            )
        except sqlite3.Error as error:
            raise self._error(error) from None
        try:
            self._prepare(create)
            self.all()
        except (sqlite3.Error, UnicodeDecodeError) as error:  # also of a damaged schema
            self._database.close()
            raise self._error(error) from None
        except VHEError:
            self._database.close()
            raise

    def _prepare(self, create: bool) -> None:
        run = self._database.execute
        (application,), (version,) = run("PRAGMA application_id"), run("PRAGMA user_version")
        objects = run("SELECT type, name FROM sqlite_master").fetchall()
        if create and not objects:
            run("PRAGMA journal_mode=WAL")
            run("BEGIN IMMEDIATE")
            if not run("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                run(TABLE)
                run(f"PRAGMA application_id={APPLICATION}")
                run(f"PRAGMA user_version={FORMAT}")
            run("COMMIT")
        elif application[0] != APPLICATION:
            raise VHEError(f"{self.path}: not a file of decisions; choose another file")
        elif version[0] != FORMAT:
            raise VHEError(
                f"{self.path}: decisions in format {version[0]}, but this version of vhe reads "
                f"format {FORMAT}; install a newer vhe"
            )
        elif objects != [("table", "decisions")]:  # a view or a trigger could do anything
            raise VHEError(f"{self.path}: the file of decisions is damaged; restore a copy")
        run("PRAGMA synchronous=FULL")

    def close(self) -> None:
        with self._lock:
            self._database.close()

    def decide(
        self, source: Hashable, target: Hashable, state: State, probability: float
    ) -> Decision:
        """Save a decision, which replaces an earlier one on the same pair."""
        decided = datetime.now(UTC).isoformat(timespec="seconds")
        decision = Decision(source, target, state, float(probability), decided)
        key = pair_key(source, target)
        statement = "INSERT OR REPLACE INTO decisions VALUES (?, ?, ?, ?, ?)"
        with self._lock:
            self._execute(statement, (*key, state, decision.probability, decided))
            self._read = self._read | {key: decision}
            self.changes += 1
        return decision

    def undo(self, source: Hashable, target: Hashable) -> bool:
        """Delete the decision on a pair; False if there is none."""
        key = pair_key(source, target)
        with self._lock:
            self._execute("DELETE FROM decisions WHERE source = ? AND target = ?", key)
            found = key in self._read
            self._read = {k: v for k, v in self._read.items() if k != key}
            self.changes += 1
        return found

    def _execute(self, statement: str, values: tuple[object, ...]) -> None:
        try:
            self._database.execute(statement, values)
        except sqlite3.Error as error:
            raise self._error(error) from None

    def all(self) -> dict[tuple[str, str], Decision]:
        """The decisions by `pair_key`, also those that other processes have saved."""
        with self._lock:
            try:
                (version,) = self._database.execute("PRAGMA data_version").fetchone()
                if version != self._seen:
                    self._read_all()
                    self._seen = version
            except sqlite3.Error as error:
                raise self._error(error) from None
            return self._read

    def _read_all(self) -> None:
        found = {}
        for low, high, state, probability, decided in self._database.execute(
            "SELECT source, target, state, probability, decided FROM decisions"
        ):
            try:
                source, target = (decode_key(json.loads(key)) for key in (low, high))
                sound = (
                    (low, high) == pair_key(source, target)
                    and state in get_args(State)
                    and isinstance(probability, float)
                    and 0 <= probability <= 1
                    and isinstance(decided, str)
                )
            except (ValueError, LookupError, TypeError, RecursionError, VHEError):
                sound = False
            if not sound:
                raise VHEError(
                    f"{self.path}: the decision on {shown(low)} and {shown(high)} is damaged; "
                    "restore a copy or choose another file"
                )
            found[low, high] = Decision(source, target, state, probability, decided)
        self._read = found
        self.changes += 1

    def pairs(self, state: State) -> list[Pair]:
        """The pairs of ids with this state."""
        return [(d.source, d.target) for d in self.all().values() if d.state == state]

    def _error(self, error: sqlite3.Error | UnicodeDecodeError) -> VHEError:
        reason = shortened(" ".join(str(error).split()), 200)
        return VHEError(f"{self.path}: the decisions cannot be read or saved ({reason})")


def pair_key(source: Hashable, target: Hashable) -> tuple[str, str]:
    """The key of a pair of ids, the same in either order."""
    low, high = sorted(json.dumps(encode_key(end)) for end in (source, target))
    return low, high


def decisions_file(model: Path) -> Path:
    """Where the decisions on the suggestions of a model are saved by default."""
    return model.with_name(f"{model.name}.decisions.sqlite")
