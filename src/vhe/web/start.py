"""The service for a model folder, with what is stored beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from vhe.errors import VHEError
from vhe.predict.layout import quick_layout
from vhe.storage.decisions import Decisions, decisions_file
from vhe.web.explorer import Explorer
from vhe.web.loading import Loaded, load
from vhe.web.service import Service, Source
from vhe.web.snapshot import Snapshot


def start_service(
    folder: Path,
    *,
    state: Path | None = None,
    seed: int | None = None,
    note: Callable[[str], None] = lambda message: None,
) -> Service:
    """Read a model folder; `Service.start` begins the work in the background.

    Parameters
    ----------
    state : file of decisions; default: beside the folder, or none if it cannot be written there
    seed : of the layout; default: that of the stored layout
    note : called with messages to the user
    """
    try:
        decisions = Decisions(state or decisions_file(folder))
    except VHEError as error:
        if state is not None:
            raise
        decisions = None
        note(f"note: {error}; name another file with --state FILE")
    loaded = load(folder, seed)
    if loaded.coordinates is None:
        note("the map is computed in the background; until then the page shows principal axes")
    return Service(
        first_snapshot(loaded),
        source=Source(folder, loaded.fingerprint),
        seed=seed or 0,
        decisions=decisions,
    )


def first_snapshot(loaded: Loaded) -> Snapshot:
    if loaded.coordinates is None:
        coordinates = quick_layout(loaded.model.embedding_)
        return Snapshot(Explorer(loaded.model, coordinates), "quick", loaded.ranking)
    return Snapshot(Explorer(loaded.model, loaded.coordinates), "final", loaded.ranking)
