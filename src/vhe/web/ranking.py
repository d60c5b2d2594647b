"""The ranked missing links of the whole network, and what was decided on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from vhe.data.network import TextNetwork
from vhe.storage.decisions import Decision

MOST_LINKS = 10_000  # in the ranking
BINS = 10  # of predicted probability, for the precision

ReviewState = Literal["open", "accepted", "rejected", "postponed"]
Pair = tuple[int, int]


@dataclass(frozen=True)
class Ranking:
    """Missing links by falling probability.

    Attributes
    ----------
    pairs : (m, 2) int64, vertex numbers, i < j
    probability : (m,) of a link in the network
    duplicate : (m,) bool, nearly the same text
    """

    pairs: np.ndarray
    probability: np.ndarray
    duplicate: np.ndarray

    @cached_property
    def rows(self) -> dict[Pair, int]:
        """The row of each pair."""
        return {(i, j): row for row, (i, j) in enumerate(self.pairs.tolist())}

    def __len__(self) -> int:
        return len(self.pairs)

    def merged(self, pairs: np.ndarray, probability: np.ndarray, duplicate: np.ndarray) -> Ranking:
        """With other links, which replace those of the same pairs."""
        n = 1 + max(self.pairs.max(initial=0), pairs.max(initial=0))
        kept = ~np.isin(self.pairs @ (n, 1), pairs @ (n, 1))
        probability = np.concatenate([self.probability[kept], probability])
        order = np.argsort(-probability, kind="stable")
        return Ranking(
            np.concatenate([self.pairs[kept], pairs])[order],
            probability[order],
            np.concatenate([self.duplicate[kept], duplicate])[order],
        )

    def renumbered(self, position: np.ndarray, network: TextNetwork) -> Ranking:
        """For a changed network: ``position`` (n,) are the new numbers, -1 of deleted vertices.

        Pairs that are linked now are left out.
        """
        pairs = np.sort(position[self.pairs], axis=1)
        n = len(network)
        linked = np.isin(pairs @ (n, 1), network.links @ (n, 1))
        kept = (pairs[:, 0] >= 0) & ~linked
        return Ranking(pairs[kept], self.probability[kept], self.duplicate[kept])


@dataclass(frozen=True)
class Review:
    """The ranking with the decisions on it, for one model."""

    ranking: Ranking
    decisions: Mapping[Pair, Decision]  # by vertex numbers, i < j
    states: np.ndarray  # (m,) of each pair of the ranking

    @classmethod
    def of(
        cls, ranking: Ranking | None, decisions: Iterable[Decision], network: TextNetwork
    ) -> Review:
        """Decisions on vertices that are not in the network are left out."""
        if ranking is None:
            ranking = Ranking(np.zeros((0, 2), np.int64), np.zeros(0), np.zeros(0, bool))
        found: dict[Pair, Decision] = {}
        for decision in decisions:
            if decision.source in network and decision.target in network:
                i, j = sorted(map(network.index, (decision.source, decision.target)))
                found[i, j] = decision
        states = np.full(len(ranking), "open", dtype="<U9")
        for pair, decision in found.items():
            if (row := ranking.rows.get(pair)) is not None:
                states[row] = decision.state
        return cls(ranking, found, states)

    def select(
        self,
        state: ReviewState | Literal["all"],
        min_probability: float,
        labelled: np.ndarray | None,
        duplicate: Callable[[np.ndarray], np.ndarray],
        part: slice,
    ) -> tuple[list[dict[str, Any]], dict[str, int], int]:
        """A part of the links in a state, by falling probability.

        Also returns the number of links in each state, and that of the links of which it is a part.

        Parameters
        ----------
        labelled : (n,) bool, optional
            only links with one of these vertices
        duplicate : whether pairs (k, 2), which are not in the ranking, have nearly the same text
        """
        ranking = self.ranking
        other = [pair for pair in self.decisions if pair not in ranking.rows]
        extra = np.array(other, dtype=np.int64).reshape(-1, 2)
        decided = [self.decisions[pair] for pair in other]
        pairs = np.concatenate([ranking.pairs, extra])
        probability = np.concatenate([ranking.probability, [d.probability for d in decided]])
        states = np.concatenate([self.states, np.array([d.state for d in decided], "<U9")])
        chosen = probability >= min_probability
        if labelled is not None:
            chosen &= labelled[pairs].any(axis=1)
        counts = {"open": 0, "accepted": 0, "rejected": 0, "postponed": 0}
        counts |= Counter(states[chosen].tolist())
        if state != "all":
            chosen &= states == state
        rows = np.flatnonzero(chosen)
        rows = rows[np.argsort(-probability[rows], kind="stable")]
        near = np.concatenate([ranking.duplicate, duplicate(extra) if len(extra) else []])
        items = [
            {
                "pair": (pair := (int(pairs[row, 0]), int(pairs[row, 1]))),
                "probability": float(probability[row]),
                "duplicate": bool(near[row]),
                "state": str(states[row]),
                "decided": self.decisions[pair].decided if pair in self.decisions else None,
            }
            for row in rows[part].tolist()
        ]
        return items, counts, len(rows)

    def of_vertex(self, number: int) -> dict[int, ReviewState]:
        """The decisions on the pairs of a vertex, by the number of the other."""
        return {
            (j if i == number else i): decision.state
            for (i, j), decision in self.decisions.items()
            if number in (i, j)
        }


def precision(decisions: Iterable[Decision]) -> dict[str, Any]:
    """The share of accepted links among those reviewed, by predicted probability.

    Postponed pairs are not counted. ``low`` and ``high`` are Wilson's 95 % interval.
    """
    reviewed = [d for d in decisions if d.state != "postponed"]
    predicted = np.array([d.probability for d in reviewed])
    accepted = np.array([d.state == "accepted" for d in reviewed], dtype=bool)
    bin_of = np.clip((predicted * BINS).astype(int), 0, BINS - 1)
    bins = []
    for k in range(BINS):
        inside = bin_of == k
        n = int(inside.sum())
        low, high = wilson(int(accepted[inside].sum()), n)
        bins.append(
            {
                "lower": k / BINS,
                "upper": (k + 1) / BINS,
                "reviewed": n,
                "accepted": int(accepted[inside].sum()),
                "predicted": float(predicted[inside].mean()) if n else None,
                "precision": float(accepted[inside].mean()) if n else None,
                "low": low,
                "high": high,
            }
        )
    total = int(accepted.sum())
    return {"reviewed": len(reviewed), "accepted": total, "bins": bins}


def wilson(successes: int, n: int) -> tuple[float, float]:
    """The 95 % confidence interval of a proportion (Wilson's score interval)."""
    if not n:
        return 0.0, 1.0
    z = 1.959963984540054
    share, scale = successes / n, 1 + z * z / n
    centre = (share + z * z / (2 * n)) / scale
    half = z * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / scale
    return float(max(centre - half, 0)), float(min(centre + half, 1))
