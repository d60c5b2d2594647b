"""Coordinates of vertices on a map: t-SNE of the embedding, reproducible by its seed."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import numpy as np

from vhe.runtime.arrays import unit_rows

_FEWEST = 5  # vertices; fewer have no neighbourhoods, and are drawn on their principal axes
_PERPLEXITY = 30.0
_EXACT_NEIGHBOURS = 20_000  # above this, approximate nearest neighbours
_ITERATIONS = (250, 500)  # of gradient descent, with and without early exaggeration
_ITERATIONS_PER_REPORT = 25
_QUICK_SAMPLE = 8_000  # vertices that determine the axes of a quick layout
NEIGHBOURS = 10  # vertices whose positions determine that of a new one
SHARPNESS = 20.0  # inverse temperature of their softmax weights


def layout(
    embedding: np.ndarray, seed: int = 0, progress: Callable[[int, int], None] | None = None
) -> np.ndarray:
    """Place vertices on a plane so that those of a small angle lie near each other.

    Uses openTSNE where it is installed (the extra ``plot``; about linear in ``n``) and
    scikit-learn's t-SNE otherwise. Both start from the first two principal axes.

    Parameters
    ----------
    embedding : (n, d) array
    seed : int
    progress : called with the number of completed iterations and of all

    Returns
    -------
    (n, 2) float64 array
        Centred, the longer axis first.
    """
    rows = unit_rows(  # Euclidean neighbours are then those of the largest cosine
        np.asarray(embedding, dtype=np.float64)
    )
    n = len(rows)
    if n < _FEWEST:
        return _principal_axes(rows)
    initial = _principal_axes(rows)
    initial *= 1e-4 / max(float(initial[:, 0].std()), 1e-12)
    # equal rows would otherwise have equal coordinates
    initial += np.random.default_rng(seed).normal(scale=1e-6, size=initial.shape)
    perplexity = min(_PERPLEXITY, (n - 1) / 3)
    if importlib.util.find_spec("openTSNE"):
        points = _by_opentsne(rows, initial, perplexity, seed, progress)
    else:
        points = _by_sklearn(rows, initial, perplexity, seed)
    return _principal_axes(points)


def quick_layout(embedding: np.ndarray) -> np.ndarray:
    """A layout that takes a fraction of a second: the first two principal axes, (n, 2).

    Of more than `_QUICK_SAMPLE` vertices the axes are those of evenly spaced ones.
    """
    rows = unit_rows(np.asarray(embedding, dtype=np.float32))
    return _principal_axes(rows, rows[:: -(-len(rows) // _QUICK_SAMPLE) or 1])


def place(embedding: np.ndarray, coordinates: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Coordinates of new vectors (k, d) on the map of ``embedding`` (n, d): (k, 2).

    The mean of those of the vertices with the nearest embeddings, weighted by a softmax of their
    cosines.
    """
    cosines = unit_rows(new) @ unit_rows(embedding).T  # (k, n)
    count = min(NEIGHBOURS, len(embedding))
    near = np.argpartition(-cosines, count - 1, axis=1)[:, :count]
    found = np.take_along_axis(cosines, near, axis=1)
    weights = np.exp(SHARPNESS * (found - found.max(axis=1, keepdims=True)))
    weights /= weights.sum(axis=1, keepdims=True)
    placed: np.ndarray = (weights[:, :, None] * coordinates[near]).sum(axis=1)
    return placed


def _principal_axes(rows: np.ndarray, sample: np.ndarray | None = None) -> np.ndarray:
    """The first two principal components, (n, 2), with signs that do not depend on the solver.

    The axes are those of ``sample``, by default of all rows.
    """
    axes = np.zeros((len(rows), 2))
    if len(rows) == 0:
        return axes
    sample = rows if sample is None else sample
    mean = sample.mean(axis=0)
    centred = sample - mean
    _, directions = np.linalg.eigh(centred.T @ centred)
    directions = directions[:, ::-1][:, :2]  # (d, 2), largest first
    largest = np.abs(directions).argmax(axis=0)
    directions = directions * np.sign(directions[largest, np.arange(directions.shape[1])])
    axes[:, : directions.shape[1]] = (rows - mean) @ directions
    return axes


def _by_opentsne(
    rows: np.ndarray,
    initial: np.ndarray,
    perplexity: float,
    seed: int,
    progress: Callable[[int, int], None] | None,
) -> np.ndarray:
    import openTSNE

    done = 0

    def report(_iteration: int, _error: float, _embedding: np.ndarray) -> None:
        nonlocal done
        done += _ITERATIONS_PER_REPORT
        if progress:
            progress(done, sum(_ITERATIONS))

    exact = len(rows) <= _EXACT_NEIGHBOURS
    affinities = openTSNE.affinity.PerplexityBasedNN(
        rows, perplexity=perplexity, method="exact" if exact else "annoy", random_state=seed
    )
    tsne = openTSNE.TSNE(
        early_exaggeration_iter=_ITERATIONS[0],
        n_iter=_ITERATIONS[1],
        negative_gradient_method="fft" if len(rows) > 10_000 else "bh",
        callbacks=report,
        callbacks_every_iters=_ITERATIONS_PER_REPORT,
        random_state=seed,
    )
    return np.asarray(tsne.fit(affinities=affinities, initialization=initial))


def _by_sklearn(rows: np.ndarray, initial: np.ndarray, perplexity: float, seed: int) -> np.ndarray:
    from sklearn.manifold import TSNE

    tsne = TSNE(init=initial.astype(np.float32), perplexity=perplexity, random_state=seed)
    return np.asarray(tsne.fit_transform(rows.astype(np.float32)), dtype=np.float64)
