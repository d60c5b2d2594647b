"""Link prediction scores: AUC, average precision, MRR and Hits@10 of held-out edges, in bounded
memory and without sampling noise where possible; calibration of predicted probabilities."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, fields
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from vhe.data.splits import NEGATIVES, LinkTest
from vhe.errors import VHEError, VHETypeError
from vhe.predict.calibration import ReliabilityCurve, brier, reliability_curve
from vhe.runtime.messages import counted

if TYPE_CHECKING:
    import pandas

    from vhe.data.network import TextNetwork
    from vhe.predict.scoring import Method

    Links = Iterable[tuple[Hashable, Hashable]] | pandas.DataFrame

__all__ = ["LinkScores", "evaluate"]

logger = logging.getLogger(__name__)

SCORES_AT_ONCE = 2**22  # largest score matrix in memory (or one row, if that is longer)


@dataclass(frozen=True)
class LinkScores:
    """Link-prediction scores, each a fraction between 0 and 1.

    Attributes
    ----------
    auc : probability that a held-out edge outscores a negative; ties count one half. ``lines``:
        each edge against every candidate negative, averaged over edges; ``clean``: all edges
        pooled against all their negatives.
    ap : average precision, pooled, with balanced class weights.
    mrr : mean reciprocal rank of an edge among itself and its 100 negatives; a tie has its mean
        rank.
    hits10 : fraction of edges that rank among the first 10, in expectation over orders of ties.
    edges : number of held-out edges.
    protocol : ``clean`` or ``lines``.
    brier, ece : Brier score and expected calibration error of the probabilities, with balanced
        class weights; None if the method has no ``probability_indices``.
    reliability : the reliability curve; see `vhe.evaluation.reliability.reliability_plot`.
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
        """Return the scores by name, ready for JSON; None values are omitted."""
        scores = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "reliability"}
        return {name: value for name, value in scores.items() if value is not None}


def evaluate(method: Method, test: LinkTest | Links) -> LinkScores:
    """Score a fitted method on held-out or future links.

    Parameters
    ----------
    method : fitted on ``test.train``.
    test : from ``network.split_edges`` or ``network.split_vertices``; or links that appeared after
        the fit, as pairs of ids or as a table with columns ``source`` and ``target``, for a method
        that has its network as ``network_``. Links that the network already has are excluded.

    Returns
    -------
    LinkScores
    """
    if not isinstance(test, LinkTest):
        test = future_links(method, test)
    if not len(test):
        raise VHEError(f"{test.network.name}: the test has no held-out edges")
    positives = _finite(method.score_indices(test.pairs[:, 0], test.pairs[:, 1]))  # (m,)
    negatives = _on_negatives(method.score_indices, test)  # (m, 100)
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


def future_links(method: Method, links: Links) -> LinkTest:
    """Build a ``clean`` test of links that are not in the network of a fitted method.

    Loops and repetitions are dropped; negatives are linked neither in the network nor by ``links``.
    """
    from vhe.data.checks import edge_indices
    from vhe.data.sampling import LinkSet
    from vhe.predict.arguments import columns

    kind = type(method).__name__
    if not hasattr(method, "score_indices"):
        raise VHETypeError(f"evaluate takes a fitted model and links, not a {kind}")
    network: TextNetwork | None = getattr(method, "network_", None)
    if network is None:
        raise VHEError(
            f"{kind} has no network_ with the ids of the links: fit it first, or pass the test of "
            "network.split_edges instead"
        )
    pairs = edge_indices(network.ids, *columns(links), lambda row: f"link {row}")
    pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
    known = LinkSet(network.links, len(network)).linked(pairs[:, 0], pairs[:, 1])
    if known.any():
        logger.warning(
            f"excluded {known.sum():,} of {counted(len(pairs), 'link')} that "
            f"{network.name} already has",
        )
    new = pairs[~known]
    whole = network.with_edges(np.concatenate([network.links, new]), directed=False)
    ratio = len(network.links) / max(len(whole.links), 1)
    return LinkTest(network, whole, new, "clean", ratio, seed=0)


def exact_auc(method: Method, test: LinkTest) -> float:
    """Return the expected AUC of the line protocol over negatives: the mean of `edge_points`."""
    return float(edge_points(method, test).mean())


def edge_points(method: Method, test: LinkTest) -> np.ndarray:
    """Return the fraction of its negatives that each held-out edge outscores: (m,).

    Ties count one half.

    ``lines``: an edge (i, j) is compared with (i, v) for every candidate v other than j.
    ``clean``: with its 100 negatives.
    """
    if test.protocol == "clean":
        positives = method.score_indices(test.pairs[:, 0], test.pairs[:, 1])
        above, ties = _above_and_ties(positives, _on_negatives(method.score_indices, test))
        return 1 - (above + ties / 2) / NEGATIVES
    candidates = test.candidates  # (c,)
    order = np.argsort(test.pairs[:, 0], kind="stable")
    points = np.empty(len(test))
    step = max(SCORES_AT_ONCE // len(candidates), 1)
    for start in range(0, len(order), step):
        # Sorted by source, so that each source is scored once per chunk.
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
    """Return the probability that a positive outscores a negative; ties count one half."""
    ordered = np.sort(negatives, axis=None)
    below = np.searchsorted(ordered, positives, side="left")
    not_above = np.searchsorted(ordered, positives, side="right")
    return float((below + not_above).mean() / (2 * len(ordered)))


def balanced_average_precision(positives: np.ndarray, negatives: np.ndarray) -> float:
    """Return the average precision with balanced classes; equal scores share a threshold."""
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
    """Return the mean of 1 / rank of each positive (m,) among itself and its negatives (m, k)."""
    above, ties = _above_and_ties(positives, negatives)
    return float((1 / (1 + above + ties / 2)).mean())


def hits(positives: np.ndarray, negatives: np.ndarray, k: int) -> float:
    """Return the fraction of positives ranked among the first ``k``, ties in random order."""
    above, ties = _above_and_ties(positives, negatives)
    return float(np.clip((k - above) / (ties + 1), 0, 1).mean())


def _above_and_ties(positives: np.ndarray, negatives: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    edge = positives[:, None]
    return (negatives > edge).sum(axis=1), (negatives == edge).sum(axis=1)


def _on_negatives(
    score: Callable[[np.ndarray, np.ndarray], np.ndarray], test: LinkTest
) -> np.ndarray:
    """Return the scores of the negatives of each held-out edge: (m, 100)."""
    return np.concatenate(
        [
            _finite(score(block[..., 0].ravel(), block[..., 1].ravel())).reshape(block.shape[:2])
            for block in test.negative_blocks()
        ]
    )


def _calibration(method: Method, test: LinkTest) -> dict[str, Any]:
    predict = getattr(method, "probability_indices", None)
    if predict is None:
        return {}
    predict = partial(predict, balanced=True)
    positives = predict(test.pairs[:, 0], test.pairs[:, 1])
    probabilities = np.append(positives, _on_negatives(predict, test))  # (m + 100 m,)
    linked = np.arange(len(probabilities)) < len(positives)
    weights = np.where(linked, 1.0, 1 / NEGATIVES)  # balanced classes
    curve = reliability_curve(probabilities, linked, weights=weights)
    score = brier(probabilities, linked, weights)
    return {"brier": score, "ece": curve.error, "reliability": curve}


def _finite(scores: np.ndarray) -> np.ndarray:
    if not np.isfinite(scores).all():
        raise VHEError(
            "the scores of the method are not finite: its training has diverged; "
            "reduce its learning rate"
        )
    return scores
