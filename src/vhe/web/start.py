"""The service for a model folder, with what is stored beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from vhe.errors import VHEError
from vhe.storage.decisions import Decisions, decisions_file
from vhe.storage.journal import Journal, journal_file
from vhe.web.service import Service, first_snapshot, read_base, saved_changes


def start_service(
    folder: Path,
    *,
    state: Path | None = None,
    seed: int | None = None,
    writable: bool = False,
    note: Callable[[str], None] = lambda message: None,
) -> Service:
    """Read a model folder; `Service.start` begins the work in the background.

    Parameters
    ----------
    state : file of decisions; default: beside the folder, or none if it cannot be written there
    seed : of the layout; default: that of the stored layout
    writable : whether vertices and links can be added and removed
    note : called with messages to the user
    """
    try:
        decisions = Decisions(state or decisions_file(folder))
    except VHEError as error:
        if state is not None:
            raise
        decisions = None
        note(f"note: {error}; name another file with --state FILE")
    journal = Journal(journal_file(folder)) if writable else None
    base = read_base(folder, seed)
    if base.loaded.coordinates is None:
        note("the map is computed in the background; until then the page shows principal axes")
    return Service(
        first_snapshot(base.loaded, saved_changes(folder, journal)),
        base=base,
        seed=seed,
        decisions=decisions,
        journal=journal,
    )
