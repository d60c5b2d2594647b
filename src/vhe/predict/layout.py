"""Where each vertex is drawn: t-SNE of the embedding, the same picture for the same seed."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import numpy as np

_FEWEST = 5  # below this t-SNE has no neighbourhoods to keep: the principal axes are the picture
_PERPLEXITY = 30.0
_EXACT_NEIGHBOURS = 20_000  # above this, approximate nearest neighbours
_ROUNDS = (250, 500)  # of gradient descent, with exaggerated attraction and without
_ROUNDS_BETWEEN_WORDS = 25


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
    progress : told now and then how many rounds of how many are done

    Returns
    -------
    (n, 2) float64 array
        Centred, the longer axis first.
    """
    rows = _unit_rows(np.asarray(embedding, dtype=np.float64))
    n = len(rows)
    if n < _FEWEST:
        return _principal_axes(rows)
    start = _principal_axes(rows)
    start *= 1e-4 / max(float(start[:, 0].std()), 1e-12)
    # Equal rows would otherwise start, and stay, on one spot.
    start += np.random.default_rng(seed).normal(scale=1e-6, size=start.shape)
    perplexity = min(_PERPLEXITY, (n - 1) / 3)
    if importlib.util.find_spec("openTSNE"):
        points = _by_opentsne(rows, start, perplexity, seed, progress)
    else:
        points = _by_sklearn(rows, start, perplexity, seed)
    return _principal_axes(points)


def _unit_rows(rows: np.ndarray) -> np.ndarray:
    """Rows of length one: Euclidean neighbours are then those of the largest cosine."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)


def _principal_axes(rows: np.ndarray) -> np.ndarray:
    """The first two principal components, (n, 2), with signs that do not depend on the solver."""
    axes = np.zeros((len(rows), 2))
    if len(rows) == 0:
        return axes
    centred = rows - rows.mean(axis=0)
    _, directions = np.linalg.eigh(centred.T @ centred)
    directions = directions[:, ::-1][:, :2]  # (d, 2), largest first
    largest = np.abs(directions).argmax(axis=0)
    directions = directions * np.sign(directions[largest, np.arange(directions.shape[1])])
    axes[:, : directions.shape[1]] = centred @ directions
    return axes


def _by_opentsne(
    rows: np.ndarray,
    start: np.ndarray,
    perplexity: float,
    seed: int,
    progress: Callable[[int, int], None] | None,
) -> np.ndarray:
    import openTSNE

    done = 0

    def tell(_iteration: int, _error: float, _embedding: np.ndarray) -> None:
        nonlocal done
        done += _ROUNDS_BETWEEN_WORDS
        if progress:
            progress(done, sum(_ROUNDS))

    exact = len(rows) <= _EXACT_NEIGHBOURS
    affinities = openTSNE.affinity.PerplexityBasedNN(
        rows, perplexity=perplexity, method="exact" if exact else "annoy", random_state=seed
    )
    tsne = openTSNE.TSNE(
        early_exaggeration_iter=_ROUNDS[0],
        n_iter=_ROUNDS[1],
        negative_gradient_method="fft" if len(rows) > 10_000 else "bh",
        callbacks=tell,
        callbacks_every_iters=_ROUNDS_BETWEEN_WORDS,
        random_state=seed,
    )
    return np.asarray(tsne.fit(affinities=affinities, initialization=start))


def _by_sklearn(rows: np.ndarray, start: np.ndarray, perplexity: float, seed: int) -> np.ndarray:
    from sklearn.manifold import TSNE

    tsne = TSNE(init=start.astype(np.float32), perplexity=perplexity, random_state=seed)
    return np.asarray(tsne.fit_transform(rows.astype(np.float32)), dtype=np.float64)
