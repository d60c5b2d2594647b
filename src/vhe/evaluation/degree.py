"""Where a method finds links well: its AUC for vertices of few links and of many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from vhe.evaluation.link import edge_points

if TYPE_CHECKING:
    from vhe.data.splits import LinkTest
    from vhe.predict.scoring import Method


@dataclass(frozen=True)
class DegreeGroup:
    """Vertices whose number of links lies between two bounds, and the held-out edges there.

    Attributes
    ----------
    least, most : links of a vertex in the group, in the whole network.
    edges : held-out edges at vertices of the group, once for each end.
    auc : mean share of its negatives that such an edge scores above; None without any edge.
    """

    least: int
    most: int
    edges: int
    auc: float | None


def auc_by_degree(method: Method, test: LinkTest, groups: int = 4) -> list[DegreeGroup]:
    """AUC by quantiles of the vertices' degrees (section 4.2 of the paper, "When does VHE work").

    The groups are quantiles of all vertices that have a link, so that every split of a network has
    the same; an edge counts for each of its ends. Equal degrees stay together, so that there may
    be fewer groups.
    """
    degrees = test.network.degrees
    linked = degrees[degrees > 0]
    upper = np.unique(np.quantile(linked, np.arange(1, groups + 1) / groups, method="lower"))
    group = np.searchsorted(upper, degrees[test.pairs])  # (m, 2); an isolated vertex has loops only
    points = np.broadcast_to(edge_points(method, test)[:, None], group.shape)
    found = []
    for k, most in enumerate(upper):
        least = int(upper[k - 1]) + 1 if k else 1
        here = points[group == k]
        auc = float(here.mean()) if len(here) else None
        found.append(DegreeGroup(least, int(most), len(here), auc))
    return found
