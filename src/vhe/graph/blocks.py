"""Codes and posterior means of all vertices as tables, computed in blocks of rows and columns.

Up to `WHOLE_GRAPH` vertices, the posterior without some links is solved for as a whole. Beyond, it
differs from the posterior with them in a region around these links, which is solved for given the
means of all other vertices.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vhe.graph.posterior import ITERATIONS
from vhe.graph.prior import WHOLE_GRAPH, GraphPrior
from vhe.runtime.arrays import distinct
from vhe.runtime.progress import Progress
from vhe.runtime.tables import take_rows
from vhe.text.codes import TextCodes

REGION = 8192  # vertices around the ends of masked links that are solved for

Rows = NDArray[np.float32]


class Blocks:
    """Tables of one fit.

    Parameters
    ----------
    codes : of the texts
    columns : of a posterior that are solved for at a time
    show : print progress

    Attributes
    ----------
    columns : as given
    centre : (d,) of the codes in use
    """

    centre: Rows
    _codes: Rows

    def __init__(self, codes: TextCodes, columns: int, show: bool) -> None:
        self._texts, self.columns, self._show = codes, columns, show
        self._words: Tensor | None = None
        self._tables: dict[str, Rows] = {}

    @torch.no_grad()
    def use(
        self, words: Tensor, progress: Callable[[int, int], None] = lambda done, total: None
    ) -> Rows:
        """Compute the codes (n, d) by these words, unless they are in use."""
        if self._words is not None and torch.equal(words, self._words):
            return self._codes
        self._words, self._tables = words.detach().clone(), {}
        if len(self._texts) <= WHOLE_GRAPH:
            self._codes = self._texts(words).cpu().numpy()
            self.centre = self._texts.centre(words).cpu().numpy()
        else:
            self._codes, self.centre = self._texts.table(words, progress)
        return self._codes

    def table(self, name: str, prior: Callable[[], GraphPrior]) -> Rows:
        """Posterior means (n, d) by the codes in use; computed once for each name.

        ``prior`` is called when they are computed.
        """
        if name not in self._tables:
            with Progress(f"posterior of {name}", show=self._show) as progress:
                self._tables[name] = (
                    prior()
                    .posterior()
                    .mean_table(self._codes, ITERATIONS, self.columns, progress.report)
                )
        return self._tables[name]

    @torch.no_grad()
    def means(
        self, name: str, prior: GraphPrior, masked: NDArray[np.int64], vertices: NDArray[np.int64]
    ) -> Rows:
        """Posterior means (k, d) of some vertices, without some links (by number)."""
        if len(self._texts) <= WHOLE_GRAPH:
            codes = torch.from_numpy(self._codes).to(prior.device)
            means = prior.posterior(masked).mean(codes)
            return means[torch.from_numpy(vertices)].cpu().numpy()
        table = self.table(name, lambda: prior)
        found = take_rows(table, vertices)
        ends = distinct(prior.links[masked])
        if len(ends):
            region = prior.neighbourhood(ends, REGION)
            posterior, inflow = prior.restricted_posterior(region, table, masked)
            codes = torch.from_numpy(take_rows(self._codes, region)).to(prior.device)
            solution = posterior.solve(posterior.precision * codes + inflow).cpu().numpy()
            position = np.searchsorted(region, vertices).clip(max=len(region) - 1)
            inside = region[position] == vertices
            found[inside] = solution[position[inside]]
        return found
