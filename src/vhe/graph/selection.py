"""Choice of the encoder weight and of the coupling strengths on validation links.

The candidates are compared by closed-form posteriors of the initial word vectors, which do not
depend on links. Where links are few, several folds are held out in turn. The score is the mean of
-log(share of vertices that rank above the partner + 0.3): it emphasises the first ranks, as MRR
does, and still counts the others, as AUC does. A candidate replaces the default only if it is
better by more than one standard error, so that the default stays where there are few links.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vhe.graph.model import TextNeighbours
from vhe.graph.posterior import TRAINING_ITERATIONS
from vhe.graph.prior import WHOLE_GRAPH, GraphPrior, Links
from vhe.graph.validation import Fold, win_rates
from vhe.runtime.tables import take_rows

LINK_STRENGTHS = (1.0, 0.25, 0.5, 2.0, 4.0, 8.0)  # the default first
TEXT_KNN_WEIGHTS = (2.0, 0.0, 1.0, 4.0)
ENCODER_WEIGHTS = (0.4, 0.0, 0.2, 0.6, 1.0)
REGION = 16_384  # vertices around the held-out links of a large graph that are solved for
BEST_SHARE = 0.3  # added to the share of vertices above a partner, so that no rank dominates

# weights (m,) of some links (m, 2), 1 on average; None if links have none
RelativeWeights = Callable[[Links], NDArray[np.float64] | None]


@dataclass(frozen=True)
class EncoderChoice:
    """The share of the vectors in the codes, and the validation AUC with and without them."""

    weight: float
    auc: float | None
    auc_without: float | None


def choose_encoder_weight(
    text: Tensor,
    vectors: Tensor,
    lengths: NDArray[Any],
    folds: Sequence[Fold],
    *,
    given: float | None,
    relative_weights: RelativeWeights = lambda links: None,
) -> EncoderChoice:
    """The best weight among `ENCODER_WEIGHTS`, or the given one, and how it ranks held-out links.

    Both parts of a code have the same posterior, whatever the weight: it is solved for once. Only
    links are coupled here, because nearest texts are found by the weighted codes.

    Parameters
    ----------
    text, vectors : (n, d) text codes and (n, p) codes of vectors
    """
    default = ENCODER_WEIGHTS[0] if given is None else given
    joint, d = torch.cat([text, vectors], dim=1), text.shape[1]
    solved = []
    for fold in folds:
        if not len(fold.held_out):
            continue
        prior = GraphPrior(
            fold.links,
            lengths,
            link_strength=LINK_STRENGTHS[0],
            relative_weights=relative_weights(fold.links),
            device=text.device,
        )
        solved.append(_held_out_means(prior, joint, fold.held_out))
    if not solved:
        return EncoderChoice(default, None, None)

    @cache
    def rates(weight: float) -> NDArray[np.float64]:
        share = np.sqrt(np.repeat([1 - weight, weight], [d, joint.shape[1] - d]))
        return np.concatenate(
            [win_rates(means * share.astype(np.float32), rows) for means, rows in solved]
        )

    if given is None:
        default = _best(ENCODER_WEIGHTS, lambda weight: _ranking_scores(rates(weight)))
    with_vectors, without = (
        float(np.nanmean(found)) if np.isfinite(found).any() else None
        for found in (rates(default), rates(0.0))
    )
    return EncoderChoice(default, with_vectors, without)


def choose_weights(
    codes: NDArray[np.float32],
    lengths: NDArray[Any],
    neighbours: TextNeighbours,
    folds: Sequence[Fold],
    *,
    link_strength: float | None,
    text_knn_weight: float | None,
    relative_weights: RelativeWeights = lambda links: None,
    device: torch.device | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> tuple[float, float]:
    """link_strength and text_knn_weight; one that is given is returned as it is.

    Parameters
    ----------
    codes : (n, d) text codes
    relative_weights : weights (m,) of links (m, 2), 1 on average; None where they have none
    """
    if link_strength is not None and text_knn_weight is not None:
        return link_strength, text_knn_weight
    compared = [
        _fold(codes, device, lengths, neighbours, relative_weights, fold.links, fold.held_out)
        for fold in folds
        if len(fold.held_out)
    ]
    done = 0

    @cache
    def scores(strength: float, weight: float) -> NDArray[np.float64]:
        nonlocal done
        rates = [held_out_rates(strength, weight) for held_out_rates in compared]
        done += 1
        progress(done)
        return _ranking_scores(np.concatenate(rates))

    strength = LINK_STRENGTHS[0] if link_strength is None else link_strength
    weight = TEXT_KNN_WEIGHTS[0] if text_knn_weight is None else text_knn_weight
    if not compared:
        return strength, weight
    if text_knn_weight is None:
        weight = _best(TEXT_KNN_WEIGHTS, lambda w: scores(strength, w))
    if link_strength is None:
        strength = _best(LINK_STRENGTHS, lambda s: scores(s, weight))
    return strength, weight


def _fold(
    table: NDArray[np.float32],
    device: torch.device | None,
    lengths: NDArray[Any],
    neighbours: TextNeighbours,
    relative_weights: RelativeWeights,
    links: Links,
    held_out: Links,
) -> Callable[[float, float], NDArray[np.float64]]:
    """The win rates of the held-out links as a function of both strengths.

    In a large graph the posterior of a region around the held-out links is solved for, given the
    text codes outside of it.
    """

    def prior(strength: float, weight: float) -> GraphPrior:
        return GraphPrior(
            links,
            lengths,
            neighbours,
            link_strength=strength,
            text_knn_weight=weight,
            relative_weights=relative_weights(links),
            device=device,
        )

    def of_the_graph(strength: float, weight: float) -> NDArray[np.float64]:
        codes = torch.from_numpy(table).to(device)
        return win_rates(*_held_out_means(prior(strength, weight), codes, held_out))

    if len(table) <= WHOLE_GRAPH:
        return of_the_graph
    vertices, rows = np.unique(held_out, return_inverse=True)
    unit = prior(1.0, 1.0)
    region = unit.neighbourhood(vertices, REGION)
    own = torch.from_numpy(take_rows(table, region)).to(device)
    chosen = torch.from_numpy(np.searchsorted(region, vertices))

    @torch.no_grad()
    def of_a_region(strength: float, weight: float) -> NDArray[np.float64]:
        posterior, inflow = unit.with_strengths(strength, weight).restricted_posterior(
            region, table
        )
        right = posterior.precision * own + inflow
        means = posterior.solve(right, TRAINING_ITERATIONS)[chosen]
        return win_rates(means.cpu().numpy(), rows.reshape(-1, 2))

    return of_a_region


def _held_out_means(
    prior: GraphPrior, codes: Tensor, held_out: Links
) -> tuple[NDArray[np.float32], Links]:
    """Posterior means of the ends of held-out links, and the links as rows of them."""
    vertices, rows = np.unique(held_out, return_inverse=True)
    with torch.no_grad():
        means = prior.posterior().mean(codes, TRAINING_ITERATIONS)
    return means[torch.from_numpy(vertices)].cpu().numpy(), rows.reshape(-1, 2)


def _ranking_scores(rates: NDArray[np.float64]) -> NDArray[np.float64]:
    return -np.log(1 - rates + BEST_SHARE)


def _best(candidates: tuple[float, ...], scores: Callable[[float], NDArray[np.float64]]) -> float:
    """The candidate whose gain over the first is largest, less its standard error."""
    default = scores(candidates[0])

    def gain(candidate: float) -> float:
        difference = scores(candidate) - default
        difference = difference[np.isfinite(difference)]
        if not len(difference):
            return 0.0
        return float(difference.mean() - difference.std() / np.sqrt(len(difference)))

    return max(candidates, key=gain)
