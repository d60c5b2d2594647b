"""Calibration of probabilities: Platt scaling, Brier score, reliability curve and expected
calibration error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vhe.errors import VHEError

BINS = 10  # of a reliability curve
NEWTON_STEPS = 50  # a few suffice; the limit ends a fit that rounding errors keep from converging


@dataclass(frozen=True)
class ReliabilityCurve:
    """Predicted probability and observed frequency in bins of probability, without empty bins.

    Attributes
    ----------
    probability : (b,) mean probability in each bin.
    frequency : (b,) share of links in each bin.
    count : (b,) number of pairs in each bin, or their total weight.
    """

    probability: np.ndarray
    frequency: np.ndarray
    count: np.ndarray

    @property
    def error(self) -> float:
        """The expected calibration error."""
        gap = np.abs(self.probability - self.frequency)
        return float(gap @ self.count / self.count.sum())


def fit_platt(scores: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """(a, b) such that sigmoid(a · score + b) is the probability of a link (Platt 1999).

    The targets are Platt's, (N₊+1)/(N₊+2) and 1/(N₋+2) instead of 1 and 0, so that data which a
    threshold separates have a finite fit, too. Newton's method with step halving.

    Parameters
    ----------
    scores : (m,) finite.
    labels : (m,) 1 or True for a link, 0 or False for none.
    """
    scores, labels = _paired(scores, labels)
    linked = int(labels.sum())
    target = np.where(labels > 0, (linked + 1) / (linked + 2), 1 / (len(labels) - linked + 2))
    centre, scale = float(scores.mean()), float(scores.std())
    if scale <= 1e-12 * max(abs(centre), 1e-300):  # all scores are equal: the base rate
        return 0.0, _logit(float(target.mean()))
    # standardised scores make the two unknowns comparable
    x = (scores - centre) / scale
    design = np.stack([x, np.ones_like(x)], axis=1)  # (m, 2)
    weights = np.array([0.0, _logit(float(target.mean()))])
    loss = _cross_entropy(design @ weights, target)
    for _ in range(NEWTON_STEPS):
        p = sigmoid(design @ weights)
        gradient = design.T @ (p - target)
        curvature = (design * (p * (1 - p))[:, None]).T @ design + 1e-10 * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        if gradient @ step <= 1e-12 * len(x):  # twice the remaining decrease of the loss
            break
        length = 1.0
        while (tried := _cross_entropy(design @ (weights - length * step), target)) > loss:
            length /= 2
            if length < 1e-10:
                break
        else:
            weights, loss = weights - length * step, tried
            continue
        break
    a = float(weights[0]) / scale
    return a, float(weights[1]) - a * centre


def brier(
    probabilities: np.ndarray, labels: np.ndarray, weights: np.ndarray | None = None
) -> float:
    """Mean squared difference between probability and outcome."""
    probabilities, labels = _probabilities(probabilities, labels)
    return float(np.average((probabilities - labels) ** 2, weights=weights))


def reliability_curve(
    probabilities: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray | None = None,
) -> ReliabilityCurve:
    """Mean probability, share of links and size of each of `BINS` equally wide bins."""
    probabilities, labels = _probabilities(probabilities, labels)
    return _binned(probabilities, labels, weights)


def pooled_curve(curves: Sequence[ReliabilityCurve]) -> ReliabilityCurve:
    """The curve of the pairs of several curves."""
    probability, frequency, count = (
        np.concatenate([getattr(curve, name) for curve in curves])
        for name in ("probability", "frequency", "count")
    )
    return _binned(probability, frequency, count)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)) without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, small) / (1 + small)


def _binned(
    probability: np.ndarray, frequency: np.ndarray, weights: np.ndarray | None
) -> ReliabilityCurve:
    bin_number = np.minimum((probability * BINS).astype(np.int64), BINS - 1)
    count = np.bincount(bin_number, weights=weights, minlength=BINS)
    used = count > 0
    weight = 1.0 if weights is None else weights
    predicted = np.bincount(bin_number, weights=weight * probability, minlength=BINS)
    observed = np.bincount(bin_number, weights=weight * frequency, minlength=BINS)
    return ReliabilityCurve(
        predicted[used] / count[used], observed[used] / count[used], count[used]
    )


def _logit(p: float) -> float:
    return math.log(p) - math.log1p(-p)


def _cross_entropy(logits: np.ndarray, target: np.ndarray) -> float:
    return float(np.sum(np.logaddexp(0, logits) - target * logits))


def _paired(values: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    values = np.asarray(values, dtype=np.float64).ravel()
    labels = np.asarray(labels, dtype=np.float64).ravel()
    if len(values) != len(labels) or not len(values):
        raise VHEError(
            f"{len(values)} scores and {len(labels)} labels: give one label per score, and at "
            "least one"
        )
    if not np.isfinite(values).all():
        raise VHEError("some scores are not finite; leave them out or correct the method")
    if not np.isin(labels, (0, 1)).all():
        raise VHEError("some labels are neither 0 nor 1; use 1 for a link and 0 for none")
    return values, labels


def _probabilities(values: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    values, labels = _paired(values, labels)
    if values.min() < 0 or values.max() > 1:
        raise VHEError("some probabilities are outside [0, 1]; convert scores to probabilities")
    return values, labels
