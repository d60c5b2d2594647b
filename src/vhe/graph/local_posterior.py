"""The joint posterior of a few vertices of a large graph, at a cost that does not grow with it.

Of A z = Λ m (`graph_prior`) only some rows R are asked for. What R is coupled with most, its halo
H, is eliminated: a vertex of H answers to R at once and to everybody else as they were known last,

    z_H = D_H⁻¹ (Λ_H m_H + W_H· z_known + W_HR z_R),    D the diagonal of A, W the couplings,

and all others stay as they were known last. What is left is a system of R alone,

    (D_R - W_RR - W_RH D_H⁻¹ W_HR) z_R = b_R + W_RH D_H⁻¹ b_H,    b = Λ m + W z_known

symmetric as A is. The rows that were solved become the known ones: relaxing a few rows at a time
in any order leads to the solution of the whole, since A is diagonally dominant (Chazan and Miranker
1969), so the known posterior follows the words while they learn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from vhe.data.text import ranges
from vhe.graph.prior import Coupling, GraphPrior, TextCodes
from vhe.runtime.sparse import product, sparse_rows, sparse_times

HALO = 256  # vertices around those asked for that answer at once; the rest waits
ROUNDS_LOCAL = 5  # of conjugate gradients among those asked for

Vertices = NDArray[np.int64]


@dataclass(frozen=True)
class _Rows:
    """Some rows of the couplings: entry e couples the vertex ``row[e]`` (numbered among the rows)
    with the vertex ``column[e]``."""

    row: Vertices
    column: Vertices
    weight: NDArray[np.float32]
    entry: Vertices  # its place in the whole matrix

    def matrix(self, chosen: NDArray[np.bool_], place: Vertices, shape: tuple[int, int]):  # type: ignore[no-untyped-def]
        """The chosen entries as a sparse matrix, columns numbered by ``place``."""
        return self._compressed(chosen, place[self.column[chosen]], shape)

    def known(self, chosen: NDArray[np.bool_], count: int, table: Tensor) -> Tensor:
        """W z over the chosen entries, z from the table: (count, d)."""
        matrix = self._compressed(chosen, self.column[chosen], (count, len(table)))
        return sparse_times(sparse_rows(matrix, table.device), table)

    def _compressed(self, chosen: NDArray[np.bool_], columns: Vertices, shape: tuple[int, int]):  # type: ignore[no-untyped-def]
        """The chosen entries, which lie row after row, with these columns."""
        starts = np.append(0, np.cumsum(np.bincount(self.row[chosen], minlength=shape[0])))
        return sparse.csr_array((self.weight[chosen], columns, starts), shape=shape)


class LocalPosterior:
    """The posterior of some vertices given the ``table`` (n, d) of those known, which it renews."""

    def __init__(self, prior: GraphPrior, codes: TextCodes, table: Tensor) -> None:
        self.codes, self.table, self.device = codes, table, table.device
        self.precision = prior.precision.cpu().numpy()
        self.starts, self.columns, self.weights, self.entries = prior.compressed()
        self._place = np.full(len(self.precision), -1, dtype=np.int64)
        self._gone = np.zeros(len(self.columns), dtype=bool)

    def mean(self, asked: Vertices, vectors: Tensor, without: Vertices) -> Tensor:
        """Posterior means (k, d) of ``asked`` (k,), sorted, without some links (by number).

        Gradients go to the word vectors (1 + V, d) by the texts of those asked and of their halo.
        """
        own, place = self._rows(asked), self._place
        place[asked] = np.arange(len(asked))
        inside = place[own.column] >= 0
        halo = _strongest(own.column[~inside], own.weight[~inside], HALO, place)
        place[halo] = len(asked) + np.arange(len(halo))
        near = place[own.column] >= len(asked)
        theirs = self._rows(halo)
        apart = (place[theirs.column] < 0) | (place[theirs.column] >= len(asked))

        self._gone[self.entries[:, without]] = True
        gone = self._gone[own.entry]
        self._gone[self.entries[:, without]] = False
        both = own.matrix(inside, place, (len(asked),) * 2)
        kept = own.matrix(inside & ~gone, place, (len(asked),) * 2)
        place[halo] -= len(asked)
        across = own.matrix(near, place, (len(asked), len(halo)))
        place[asked] = place[halo] = -1

        texts = np.concatenate([asked, halo])
        sure = self._column(self.precision[texts])
        said = sure * self.codes.of(texts, vectors)  # Λ m
        far = own.known(~(inside | near), len(asked), self.table)
        around = said[len(asked) :] + theirs.known(apart, len(halo), self.table)
        heard = said[: len(asked)] + far
        weight = np.bincount(theirs.row, theirs.weight, len(halo)).astype(np.float32)
        theirs_diagonal = self.precision[halo] + weight
        whole = np.bincount(own.row, own.weight, len(asked)).astype(np.float32)
        lost = np.bincount(own.row[gone], own.weight[gone], len(asked)).astype(np.float32)

        answer = across.copy()  # W_RH D_H⁻¹
        answer.data /= theirs_diagonal[answer.indices]
        rows = self._torch(across)
        system = Coupling(
            self._torch(kept + answer @ across.T),
            sure[: len(asked)],
            self._column(whole - lost),
        )
        around = around / self._column(theirs_diagonal)
        z = system.solution(heard + product(rows, around), ROUNDS_LOCAL)
        with torch.no_grad():  # the links of a step come back where the others read
            echo = sparse_times(rows, z, turned=True)
            around = around + echo / self._column(theirs_diagonal)
            total = heard + sparse_times(self._torch(both), z) + sparse_times(rows, around)
            self.table[torch.from_numpy(asked)] = total / (sure[: len(asked)] + self._column(whole))
            self.table[torch.from_numpy(halo)] = around
        return z

    def _rows(self, vertices: Vertices) -> _Rows:
        starts = self.starts[vertices].astype(np.int64)
        counts = self.starts[vertices + 1] - starts
        row = np.repeat(np.arange(len(vertices)), counts)
        entry = ranges(starts, counts)
        return _Rows(row, self.columns[entry].astype(np.int64), self.weights[entry], entry)

    def _column(self, values: NDArray[np.float32]) -> Tensor:
        return torch.from_numpy(values).to(self.device).unsqueeze(1)

    def _torch(self, matrix: sparse.csr_array) -> Tensor:
        return sparse_rows(matrix, self.device)


def _strongest(
    vertices: Vertices, weights: NDArray[np.float32], most: int, place: Vertices
) -> Vertices:
    """At most so many of the vertices, those of the largest total weight, sorted.

    ``place`` (n,) is -1 at all of them, and is so again afterwards.
    """
    number = np.arange(len(vertices))
    place[vertices] = number  # a vertex is known by where it comes last
    last = place[vertices]
    place[vertices] = -1
    found = np.flatnonzero(last == number)
    if len(found) > most:
        total = np.bincount(last, weights)[found]
        found = found[np.argpartition(-total, most)[:most]]
    return np.sort(vertices[found])
