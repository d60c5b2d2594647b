"""How well a method tells held-out edges from pairs that are not linked: AUC, average precision,
MRR and Hits@10, computed in bounded memory and without sampling noise where that is possible; and
how far its probabilities can be trusted, where it gives any."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from vhe.data.splits import NEGATIVES
from vhe.errors import VHEError
from vhe.predict.calibration import ReliabilityCurve, brier, reliability_curve

if TYPE_CHECKING:
    from vhe.data.splits import LinkTest
    from vhe.predict.scoring import Method

SCORES_AT_ONCE = 2**22  # the largest score matrix held at a time (or one row, if that is longer)


@dataclass(frozen=True)
class LinkScores:
    """Link-prediction scores, each a fraction between 0 and 1.

    Attributes
    ----------
    auc : chance that a held-out edge scores above a negative, half a point for a tie. ``lines``:
        for each edge against every candidate negative, then the mean over edges; ``clean``: all
        edges pooled against all their negatives.
    ap : average precision, pooled, with negatives weighted to count as much as edges do.
    mrr : mean reciprocal rank of an edge among itself and its 100 negatives, a tie at its mean
        rank.
    hits10 : share of edges that rank among the first 10, the expectation over orders of ties.
    edges : number of held-out edges.
    protocol : ``clean`` or ``lines``.
    brier, ece : Brier score and expected calibration error of the probabilities, edges and
        negatives weighted alike; None where the method has no ``probability_indices``.
    reliability : what they are computed from; see `vhe.predict.calibration.reliability_plot`.
    """

    auc: float
    ap: float
    mrr: float
    hits10: float
    edges: int
    protocol: str
    brier: float | None = None
    ece: float | None = None
    reliability: ReliabilityCurve | None = field(default=None, repr=False, compare=False)

    def as_dict(self) -> dict[str, Any]:
        """The scores by name, ready for JSON; calibration only where there is one."""
        told = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "reliability"}
        return {name: value for name, value in told.items() if value is not None}


def evaluate(method: Method, test: LinkTest) -> LinkScores:
    """Score a fitted method on held-out edges.

    Parameters
    ----------
    method : fitted on ``test.train``.
    test : from ``network.split_edges`` or ``network.split_vertices``.
    """
    if not len(test):
        raise VHEError(f"The test of {test.network.name} has no held-out edge; nothing to score.")
    positives = _finite(method.score_indices(test.pairs[:, 0], test.pairs[:, 1]))  # (m,)
    negatives = _of_negatives(method.score_indices, test)  # (m, 100)
    lines = test.protocol == "lines"
    return LinkScores(
        auc=exact_auc(method, test) if lines else pooled_auc(positives, negatives),
        ap=balanced_average_precision(positives, negatives),
        mrr=mean_reciprocal_rank(positives, negatives),
        hits10=hits(positives, negatives, 10),
        edges=len(test),
        protocol=test.protocol,
        **_calibration(method, test),
    )


def exact_auc(method: Method, test: LinkTest) -> float:
    """The AUC of the line protocol as its expectation over negatives: the mean of `edge_points`."""
    return float(edge_points(method, test).mean())


def edge_points(method: Method, test: LinkTest) -> np.ndarray:
    """The share of its negatives that each held-out edge scores above, half for a tie: (m,).

    ``lines``: an edge (i, j) is compared with (i, v) for every candidate v other than j.
    ``clean``: with its 100 negatives.
    """
    if test.protocol == "clean":
        positives = method.score_indices(test.pairs[:, 0], test.pairs[:, 1])
        above, ties = _above_and_ties(positives, _of_negatives(method.score_indices, test))
        return 1 - (above + ties / 2) / NEGATIVES
    candidates = test.candidates  # (c,)
    order = np.argsort(test.pairs[:, 0], kind="stable")
    points = np.empty(len(test))
    step = max(SCORES_AT_ONCE // len(candidates), 1)
    for start in range(0, len(order), step):
        # Lines are in the order of their sources: each source is scored once a chunk.
        rows = order[start : start + step]
        sources, row = np.unique(test.pairs[rows, 0], return_inverse=True)
        scores = _finite(method.score_matrix(sources, candidates))[row]  # (b, c)
        target = np.searchsorted(candidates, test.pairs[rows, 1])[:, None]
        edge = np.take_along_axis(scores, target, axis=1)  # (b, 1)
        below = np.count_nonzero(scores < edge, axis=1)
        ties = np.count_nonzero(scores == edge, axis=1) - 1  # each edge ties with itself
        points[rows] = (below + ties / 2) / (len(candidates) - 1)
    return points


def pooled_auc(positives: np.ndarray, negatives: np.ndarray) -> float:
    """Chance that a random positive scores above a random negative, half a point for a tie."""
    ordered = np.sort(negatives, axis=None)
    below = np.searchsorted(ordered, positives, side="left")
    not_above = np.searchsorted(ordered, positives, side="right")
    return float((below + not_above).mean() / (2 * len(ordered)))


def balanced_average_precision(positives: np.ndarray, negatives: np.ndarray) -> float:
    """Average precision where both classes weigh the same; equal scores share one threshold."""
    scores = np.concatenate([positives.ravel(), negatives.ravel()])
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    last = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]), len(scores) - 1)  # of its ties
    found = np.cumsum(order < positives.size)[last]  # positives down to each threshold
    recall = found / positives.size
    fallout = (last + 1 - found) / negatives.size
    precision = recall / (recall + fallout)
    return float(np.diff(found, prepend=0) @ precision / positives.size)


def mean_reciprocal_rank(positives: np.ndarray, negatives: np.ndarray) -> float:
    """Mean of 1 / rank of each positive (m,) among itself and its negatives (m, k)."""
    above, ties = _above_and_ties(positives, negatives)
    return float((1 / (1 + above + ties / 2)).mean())


def hits(positives: np.ndarray, negatives: np.ndarray, k: int) -> float:
    """Share of positives among the first ``k`` with their negatives, ties in random order."""
    above, ties = _above_and_ties(positives, negatives)
    return float(np.clip((k - above) / (ties + 1), 0, 1).mean())


def _above_and_ties(positives: np.ndarray, negatives: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    edge = positives[:, None]
    return (negatives > edge).sum(axis=1), (negatives == edge).sum(axis=1)


def _of_negatives(
    ask: Callable[[np.ndarray, np.ndarray], np.ndarray], test: LinkTest
) -> np.ndarray:
    """What a method answers for the negatives of each held-out edge: (m, 100)."""
    return np.concatenate(
        [
            _finite(ask(block[..., 0].ravel(), block[..., 1].ravel())).reshape(block.shape[:2])
            for block in test.negative_blocks()
        ]
    )


def _calibration(method: Method, test: LinkTest) -> dict[str, Any]:
    ask = getattr(method, "probability_indices", None)
    if ask is None:
        return {}
    positives = ask(test.pairs[:, 0], test.pairs[:, 1])
    probabilities = np.append(positives, _of_negatives(ask, test))  # (m + 100 m,)
    linked = np.arange(len(probabilities)) < len(positives)
    weights = np.where(linked, 1.0, 1 / NEGATIVES)  # as many links as non-links
    curve = reliability_curve(probabilities, linked, weights=weights)
    score = brier(probabilities, linked, weights)
    return {"brier": score, "ece": curve.error, "reliability": curve}


def _finite(scores: np.ndarray) -> np.ndarray:
    if not np.isfinite(scores).all():
        raise VHEError(
            "The method gives scores that are not finite numbers; "
            "its training has diverged: lower its learning rate."
        )
    return scores
