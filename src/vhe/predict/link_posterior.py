"""The link posterior π_ij: the probability of a link given all features of the pair.

    π_ij = sigmoid(offset + Σ_k w_k f_k(i, j)),    f the features of `pair_features.py`

In the paper this quantity is part of the objective. Here it is a logistic regression, fitted to
validation links, which were used neither for the word vectors nor for the codes, and to random
unlinked pairs of their ends. It minimises the sum of

    the log-loss of classifying links and unlinked pairs, in a balanced sample,
    half of the log-loss of choosing the partner of an end among its unlinked pairs, and
    a ridge penalty on the weights, which is small for that of the embedding.

The first term determines probabilities and AUC, the second the top of the ranking. Weights other
than those of the degrees are constrained to be at least 0: similarity can only raise the
probability of a link. The weight of the embedding is always positive, so that it decides the
ranking where validation links are few and the penalty dominates. The other features are used only
if they help: if, in a cross-validation over the validation links, they reduce the second term by
more than 1.5 standard errors. Finally, a logistic regression on the weighted sum of the features
(Platt 1999) calibrates the probabilities.

Pairs with an isolated vertex (one without links) have separate weights, because structural features
carry no information about them and texts matter more. These weights are fitted in the same way, to
validation links of which one end has all of its links masked, and are shrunk towards the weights of
the other pairs; the pairs with an isolated vertex of both samples calibrate them. New vertices that
are given as texts belong to this kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vhe.data.sampling import random_stream
from vhe.data.splits import NonNeighbourSampler
from vhe.predict.calibration import ReliabilityCurve, fit_platt, reliability_curve, sigmoid
from vhe.predict.pair_features import Floats, Links, VertexRows, crossed, paired

MOST_LINKS = 512
NEGATIVES = 20  # unlinked pairs of each end of a link
PARTS = 3  # of the held-out links of a fold, masked in turn
MANY_LINKS = 20_000
MASKED_SHARE, LEAST_MASKED = 0.1, 20  # most of the links that masked vertices may have in a fold
ISOLATED_RIDGE = 60.0  # of the differences between the weights of the two kinds of pairs
RIDGE = 30.0  # where links are many; it is doubled at `FEW_LINKS`
FEW_LINKS = 100
EMBEDDING_RIDGE = 0.3
CHOICE_SHARE = 0.5  # weight of choosing the partner of an end
CHOICE_FOLDS = 5  # of the cross-validation that compares the features with the embedding alone
LEAST_GAIN = 1.5  # of the features in this comparison, in standard errors
LEAST_SPREAD = 0.05  # standard deviation below which a feature is taken to be constant
LEAST_EMBEDDING_SPREAD = 1e-4  # for the embedding, whose rows may be nearly parallel
LEAST_WEIGHT = 0.02  # of the standardised embedding, so that it always ranks pairs
ANY_SIGN = ("degree", "isolated")
SLOPES = 0.1, 4.0  # limits of the slope of the calibration; the scores have nearly the right scale
PAIRS_AT_ONCE = 2**15  # pairs whose rows are gathered at a time, to limit memory

Vertices = NDArray[np.int64]
# rows of vertices (third), computed without some held-out links (first) and without all links of
# some vertices (second)
MaskedRows = Callable[[Links, Vertices, Vertices], VertexRows]
# folds of held-out links (m, 2), each with the rows by word vectors that were not trained on it
Folds = Sequence[tuple[MaskedRows, Links]]


@dataclass(frozen=True)
class LinkPosterior:
    """The weights of the features and the offset, separately for pairs with an isolated vertex.

    If ``isolated_weights`` is empty, all pairs have the same weights.
    """

    weights: dict[str, float]
    offset: float
    isolated_weights: dict[str, float] = field(default_factory=dict)
    isolated_offset: float = 0.0

    @property
    def names(self) -> tuple[str, ...]:
        """The features with a weight other than 0."""
        other = self.isolated_weights
        return tuple(name for name, weight in self.weights.items() if weight or other.get(name))

    def kind(self, a: VertexRows, b: VertexRows) -> tuple[dict[str, float], float]:
        """Weights and offset of one pair (rows of one vertex each)."""
        if self.isolated_weights and not (a.degree[0] and b.degree[0]):
            return self.isolated_weights, self.isolated_offset
        return self.weights, self.offset

    def _combined(self, features: Iterable[tuple[str, Floats]], isolated: Any) -> Any:
        """The log odds of pairs with these features, ``isolated`` or not."""
        other = self.isolated_weights or self.weights
        total = np.where(
            isolated, self.isolated_offset if self.isolated_weights else self.offset, self.offset
        )
        for name, values in features:
            total += np.where(isolated, other.get(name, 0.0), self.weights[name]) * values
        return total

    def log_odds(self, rows: VertexRows, sources: Vertices, targets: Vertices) -> Floats:
        """Of pairs of vertices, in a balanced sample: (m,)."""
        scores = np.empty(len(sources))
        for start in range(0, len(sources), PAIRS_AT_ONCE):
            part = slice(start, start + PAIRS_AT_ONCE)
            a, b = rows.take(sources[part]), rows.take(targets[part])
            isolated = (a.degree == 0) | (b.degree == 0)
            scores[part] = self._combined(paired(a, b, self.names), isolated)
        return scores

    def log_odds_matrix(self, sources: VertexRows, targets: VertexRows) -> Floats:
        """Of each source with each target: (len(sources), len(targets))."""
        isolated = (sources.degree == 0)[:, None] | (targets.degree == 0)
        found: Floats = self._combined(crossed(sources, targets, self.names), isolated)
        return found

    def parts(self, a: VertexRows, b: VertexRows) -> dict[str, float]:
        """What each feature adds to the log odds of one pair (rows of one vertex each)."""
        weights, _ = self.kind(a, b)
        return {k: weights.get(k, 0.0) * float(v[0]) for k, v in paired(a, b, self.names)}


def at_density(probability: Floats, density: float) -> Floats:
    """The probability where ``density`` of all pairs are linked, from that in a balanced sample."""
    linked = probability * density
    return linked / (linked + (1 - probability) * (1 - density))


def fit_link_posterior(
    folds: Folds,
    links: Links,
    names: tuple[str, ...],
    n: int,
    seed: int,
    *,
    whole_vertices: bool = False,
) -> tuple[LinkPosterior, ReliabilityCurve]:
    """Fit the posterior to held-out links and to random unlinked pairs of their ends.

    The reliability curve is cross-fitted: each half of the links is judged by a fit to the other.

    Parameters
    ----------
    folds : held-out links, each of which is in one fold only
    links : all links of the network
    names : features, the first of which is the embedding
    n : number of vertices
    whole_vertices : also fit weights for pairs with an isolated vertex, if that is a feature
    """
    samples = list(_samples(folds, links, names, n, seed))
    if not samples:  # a complete graph has no unlinked pairs
        alone = {name: float(name == names[0]) for name in names}
        return LinkPosterior(alone, 0.0), reliability_curve(np.array([0.5]), np.array([1]))
    features = np.concatenate([found for found, _ in samples])
    number = np.concatenate([link for _, link in samples])
    unused = () if _others_help(features, number, names) else names[1:]
    names = names[: len(names) - len(unused)]
    features = features[..., : len(names)]
    predicted = np.empty(features.shape[:2])
    for own in (number % 2 == 0, number % 2 == 1):
        if own.any():
            other = own if own.all() else ~own
            found = _fit(features[other], names)
            weights = np.array([found.weights[name] for name in names])
            predicted[own] = sigmoid(features[own] @ weights + found.offset)
    linked = _first(predicted.shape)
    curve = reliability_curve(predicted.ravel(), linked.ravel(), weights=_balanced(linked).ravel())
    posterior = _fit(features, names)
    if whole_vertices and "isolated" in names:
        isolated = list(_isolated_samples(folds, links, names, n, seed))
        if isolated:
            column = features[..., names.index("isolated")] > 0
            known = features[column], linked[column]
            other = _fit(np.concatenate(isolated), names, towards=posterior, known=known)
            posterior = replace(
                posterior, isolated_weights=other.weights, isolated_offset=other.offset
            )
    everything = posterior.weights | dict.fromkeys(unused, 0.0)
    return replace(posterior, weights=everything), curve


def _others_help(features: Floats, number: Vertices, names: tuple[str, ...]) -> bool:
    """Whether partners are chosen better with the other features than by the embedding alone.

    The mean gain in the log-loss over the links, each judged by a fit to other links, must be
    clearly larger than its standard error.
    """
    links, of_query = np.unique(number, return_inverse=True)
    if len(names) < 2 or len(links) < CHOICE_FOLDS:
        return True
    loss = np.empty((2, len(features)))
    for fold in range(CHOICE_FOLDS):
        own = of_query % CHOICE_FOLDS == fold
        for losses, count in zip(loss, (1, len(names)), strict=True):
            weights = _fit(features[~own][..., :count], names[:count]).weights
            scores = features[own][..., :count] @ np.array([*weights.values()])
            losses[own] = _choice_loss(scores)
    gain = np.bincount(of_query, loss[0] - loss[1]) / np.bincount(of_query)
    return bool(gain.mean() > LEAST_GAIN * gain.std() / np.sqrt(len(links)))


def _choice_loss(scores: Floats) -> Floats:
    """-log of the probability of the first pair among all pairs of each query (q, p): (q,)."""
    shifted = scores - scores.max(axis=1, keepdims=True)
    found: Floats = np.log(np.exp(shifted).sum(axis=1)) - shifted[:, 0]
    return found


def _samples(
    folds: Folds, links: Links, names: tuple[str, ...], n: int, seed: int
) -> Iterator[tuple[Floats, Vertices]]:
    """Features (q, 1 + NEGATIVES, F) of ends of links: with the partner, then with others.

    Also a number of the link of each end, (q,). An end that is linked with all other vertices is
    left out.
    """
    unlinked, rng, count = NonNeighbourSampler(links, n), random_stream(seed, 8), 0
    for part, (rows, chosen) in enumerate(_parts(folds, MOST_LINKS, len(links), rng)):
        number = np.repeat(count + np.arange(len(chosen)), 2)
        count += len(chosen)
        ends = np.repeat(chosen, 2, axis=0)
        ends[1::2] = ends[1::2, ::-1]
        full = unlinked.count[ends[:, 0]] == 0
        ends, number = ends[~full], number[~full]
        if not len(ends):
            continue
        found = _features_of(rows, chosen, chosen[:0, 0], ends, unlinked, names, (seed, 8, part))
        yield found, number


def _isolated_samples(
    folds: Folds, links: Links, names: tuple[str, ...], n: int, seed: int
) -> Iterator[Floats]:
    """Features as in `_samples` of one end of each link, of which all links are masked."""
    unlinked, rng = NonNeighbourSampler(links, n), random_stream(seed, 9)
    degree = np.bincount(links.ravel(), minlength=n)
    most = max(MASKED_SHARE * len(links), LEAST_MASKED)
    for part, (rows, chosen) in enumerate(_parts(folds, MOST_LINKS // 2, len(links), rng)):
        ends = chosen.copy()
        swapped = rng.random(len(ends)) < 0.5
        ends[swapped] = ends[swapped, ::-1]
        # masking many links would change the codes of the other vertices
        few = np.cumsum(degree[ends[:, 0]]) <= most
        ends = ends[few & (unlinked.count[ends[:, 0]] > 0)]
        if len(ends):
            stream = seed, 9, part
            yield _features_of(rows, chosen, ends[:, 0], ends, unlinked, names, stream)


def _parts(
    folds: Folds, most: int, links: int, rng: np.random.Generator
) -> Iterator[tuple[MaskedRows, Links]]:
    """The held-out links in the parts that are masked together, ``most`` of them in all."""
    # one part masks all of them at once: a negligible share of the links of a large network
    parts = PARTS if links < MANY_LINKS else 1
    for rows, held_out in folds:
        sample = rng.permutation(len(held_out))[: most // len(folds)]
        for chosen in np.array_split(sample, parts):
            yield rows, held_out[chosen]


def _features_of(
    rows: MaskedRows,
    masked: Links,
    isolated: Vertices,
    ends: Links,
    unlinked: NonNeighbourSampler,
    names: tuple[str, ...],
    stream: tuple[int, ...],
) -> Floats:
    """Features (q, 1 + NEGATIVES, F) of ends (q, 2): with the partner, then with others."""
    i = np.repeat(ends[:, :1], NEGATIVES, axis=1)
    j = unlinked.draw(i, random_stream(*stream))
    sources, targets = np.column_stack([ends[:, :1], i]), np.column_stack([ends[:, 1:], j])
    vertices, position = np.unique([sources, targets], return_inverse=True)
    table = rows(masked, isolated, vertices)
    first, second = (table.take(side) for side in position.reshape(2, -1))
    columns = [values for _, values in paired(first, second, names)]
    return np.stack(columns, axis=1).reshape(*sources.shape, len(names))


def _fit(
    features: Floats,
    names: tuple[str, ...],
    towards: LinkPosterior | None = None,
    known: tuple[Floats, NDArray[np.bool_]] | None = None,
) -> LinkPosterior:
    """The posterior of a sample; ``towards`` another one, differences from which are penalised.

    ``known`` are further pairs for the calibration: features (m, F), and whether they are linked.
    """
    queries, size, count = features.shape
    flat = features.reshape(-1, count)
    spread = flat.std(axis=0)
    least_spread = np.where(np.arange(count) == 0, LEAST_EMBEDDING_SPREAD, LEAST_SPREAD)
    scale = np.where(spread > least_spread, spread, np.inf)  # weight 0 for constants
    x = ((flat - flat.mean(axis=0)) / scale).reshape(features.shape)
    centre = np.zeros(count)
    if towards is None:
        few = RIDGE * (1 + FEW_LINKS / (queries / 2))  # a link is two queries, one of each end
        ridge = np.where(np.arange(count) == 0, EMBEDDING_RIDGE, few)
    else:
        ridge = np.full(count, ISOLATED_RIDGE * (1 + FEW_LINKS / queries))
        others = np.array([towards.weights[name] for name in names])
        centre = np.where(np.isfinite(scale), others * spread, 0.0)
    least = [LEAST_WEIGHT, *(None if name in ANY_SIGN else 0.0 for name in names[1:]), None]
    bounds = [(low, None) for low in least]
    start = np.append(centre, 0.0)
    from scipy.optimize import minimize  # slow to import, and only a fit needs it

    found = minimize(_loss, start, (x, ridge, centre), jac=True, method="L-BFGS-B", bounds=bounds)
    w = found.x[:-1] / scale
    linked = _first((queries, size)).ravel()
    if known is not None:
        flat, linked = np.concatenate([flat, known[0]]), np.append(linked, known[1])
    slope, offset = _calibration(flat @ w, linked)
    return LinkPosterior(dict(zip(names, (slope * w).tolist(), strict=True)), offset)


def _loss(unknowns: Floats, x: Floats, ridge: Floats, centre: Floats) -> tuple[float, Floats]:
    """The loss of weights and offset (F + 1,) on features (q, 1 + NEGATIVES, F), and its gradient.

    The first pair of each query is the link.
    """
    w, offset = unknowns[:-1], unknowns[-1]
    score = x @ w
    linked = _first(score.shape)
    weight = _balanced(linked)
    log_odds = score + offset
    wrong = weight * (sigmoid(log_odds) - linked)
    value = (weight * (np.logaddexp(0, log_odds) - linked * log_odds)).sum()
    shifted = score - score.max(axis=1, keepdims=True)
    chance = np.exp(shifted)
    total = chance.sum(axis=1, keepdims=True)
    value += CHOICE_SHARE * (np.log(total) - shifted[:, :1]).sum()
    slope = wrong + CHOICE_SHARE * (chance / total - linked)
    change = w - centre
    gradient = np.tensordot(slope, x) + ridge * change
    return float(value + (ridge * change**2).sum() / 2), np.append(gradient, wrong.sum())


def _calibration(scores: Floats, linked: NDArray[np.bool_]) -> tuple[float, float]:
    """Slope and offset of the log odds; every link counts as often as its unlinked pairs."""
    repeats = np.where(linked, NEGATIVES, 1)
    scores = np.repeat(scores, repeats)
    slope, offset = fit_platt(scores, np.repeat(linked, repeats))
    # a few links may score below the negatives by chance, which would give a negative slope
    bounded = float(np.clip(slope, *SLOPES))
    return bounded, offset + (slope - bounded) * float(scores.mean())


def _first(shape: tuple[int, ...]) -> NDArray[np.bool_]:
    linked = np.zeros(shape, dtype=bool)
    linked[:, 0] = True
    return linked


def _balanced(linked: NDArray[np.bool_]) -> Floats:
    return np.where(linked, 1.0, 1 / max(linked.shape[1] - 1, 1))
