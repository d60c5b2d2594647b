"""A model folder with what was derived from its model."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vhe.errors import VHEError
from vhe.storage.derived import Arrays, fingerprint, read_derived, write_derived
from vhe.web.ranking import Ranking

if TYPE_CHECKING:
    from vhe.fitted import FittedModel

log = logging.getLogger("vhe.web")
ATTEMPTS = 5  # if the folder is replaced while it is read


@dataclass(frozen=True)
class Loaded:
    """A model, and its map coordinates (n, 2) and ranking where they are stored."""

    model: FittedModel
    fingerprint: str
    coordinates: np.ndarray | None
    ranking: Ranking | None


def load_model(folder: Path) -> FittedModel:
    """Read a model; a graph model without torch, whose import takes long."""
    from vhe.fitted import open_model

    if (model := open_model(folder)) is not None:
        return model
    from vhe.estimators import load_model

    return load_model(folder)


def load(folder: Path, seed: int | None = None) -> Loaded:
    """Read a model folder.

    Parameters
    ----------
    seed : int, optional
        of the layout; default: that of the stored one, whichever it is
    """
    for _ in range(ATTEMPTS):
        before = fingerprint(folder)
        model = load_model(folder)
        layout = read_derived(folder, before, "layout")
        ranking = read_derived(folder, before, "ranking")
        if fingerprint(folder) == before:
            break
    else:
        raise VHEError(f"{folder}: the folder is replaced again and again; try again later")
    n = len(model.network_)
    return Loaded(
        model,
        before,
        valid_layout(layout, n, seed),
        valid_ranking(ranking, model.network_.links, n),
    )


def map_coordinates(folder: Path, loaded: Loaded, seed: int | None = None) -> np.ndarray:
    """The layout (n, 2) in a model folder; if there is none, it is computed and stored there.

    Parameters
    ----------
    loaded : from `load` with the same seed
    """
    if loaded.coordinates is not None:
        return loaded.coordinates
    from vhe.predict.layout import layout
    from vhe.runtime.progress import Progress

    with Progress("map") as progress:
        found = layout(loaded.model.embedding_, seed or 0, progress.report)
    store(folder, loaded.fingerprint, "layout", layout_arrays(found, seed or 0))
    return found


def layout_arrays(coordinates: np.ndarray, seed: int) -> Arrays:
    """What is stored of a layout."""
    return {"coordinates": coordinates, "seed": np.array([seed])}


def store(folder: Path, model: str, name: str, arrays: Arrays) -> None:
    """Store arrays with a model, unless its folder cannot be written."""
    try:
        write_derived(folder, model, name, arrays)
    except VHEError as error:
        log.info("the %s is not stored: %s", name, error)


def valid_layout(arrays: Arrays | None, n: int, seed: int | None) -> np.ndarray | None:
    """The coordinates (n, 2) among stored arrays; None if they are missing or of another seed."""
    if arrays is None or arrays.keys() != {"coordinates", "seed"}:
        return None
    found = arrays["coordinates"]
    same = seed is None or arrays["seed"].tolist() == [seed]
    valid = found.shape == (n, 2) and found.dtype == np.float64 and np.isfinite(found).all()
    return found if same and valid else None


def valid_ranking(arrays: Arrays | None, links: np.ndarray, n: int) -> Ranking | None:
    """The ranking among stored arrays; None if it is missing or does not fit the network."""
    if arrays is None or arrays.keys() != {"pairs", "probability", "duplicate"}:
        return None
    pairs, probability, duplicate = (arrays[k] for k in ("pairs", "probability", "duplicate"))
    m = len(pairs)
    valid = (
        pairs.shape == (m, 2)
        and pairs.dtype == np.int64
        and probability.shape == duplicate.shape == (m,)
        and (m == 0 or (pairs.min() >= 0 and pairs.max() < n))
        and ((probability >= 0) & (probability <= 1)).all()
        and not np.isin(np.sort(pairs, axis=1) @ (n, 1), links @ (n, 1)).any()
    )
    return Ranking(np.sort(pairs, axis=1), probability, duplicate > 0) if valid else None
