"""AUC of link prediction by vertex degree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from vhe.evaluation.link import edge_points

if TYPE_CHECKING:
    from vhe.data.splits import LinkTest
    from vhe.predict.scoring import Method

GROUPS = 4


@dataclass(frozen=True)
class DegreeGroup:
    """Vertices with a degree in a range, and their held-out edges.

    Attributes
    ----------
    least, most : smallest and largest degree in the group, counted in the whole network.
    edges : held-out edges at vertices of the group, counted once per end.
    auc : mean fraction of its negatives that such an edge outscores; None without edges.
    """

    least: int
    most: int
    edges: int
    auc: float | None


def auc_by_degree(method: Method, test: LinkTest) -> list[DegreeGroup]:
    """AUC by quantiles of the vertices' degrees (section 4.2 of the paper, "When does VHE work").

    The groups are quantiles of the degrees of all linked vertices, the same for every split of a
    network; an edge counts once per end. Vertices of equal degree are in the same group, so there
    can be fewer than `GROUPS` groups.
    """
    degrees = test.network.degrees
    linked = degrees[degrees > 0]
    upper = np.unique(np.quantile(linked, np.arange(1, GROUPS + 1) / GROUPS, method="lower"))
    # (m, 2); a vertex without links can only have loops
    group = np.searchsorted(upper, degrees[test.pairs])
    points = np.broadcast_to(edge_points(method, test)[:, None], group.shape)
    found = []
    for k, most in enumerate(upper):
        least = int(upper[k - 1]) + 1 if k else 1
        here = points[group == k]
        auc = float(here.mean()) if len(here) else None
        found.append(DegreeGroup(least, int(most), len(here), auc))
    return found
