"""The features of a pair of vertices that the link posterior uses.

    embedding        asinh(cos(z_i, z_j) / KNEE), the posterior means of the model
    weak links       the same of means with a link strength of 1/4, which are nearly the texts
    strong links     the same of means with a link strength of 8, which average large neighbourhoods
    words            log(1 + 100 cos) of the TF-IDF rows: the words that both texts have
    degree           log(1 + d_i) + log(1 + d_j)
    isolated         1 if one of the vertices has no link
    structure        asinh(s_ij / KNEE), s the low-rank part of the adjacency matrix
    neighbours       log(1 + Σ 1 / log(1 + d_k)) over common neighbours k (Adamic and Adar 2003)

The log odds of a link grow linearly with small cosines and logarithmically with large ones, hence
asinh. The value 0 means that a pair has nothing in common: no word, no neighbour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from vhe.runtime.arrays import blocks, release, unit_rows
from vhe.runtime.tables import copy_columns, new_table, write_columns

KNEE = 0.15
GROUPS = {  # as the setting `link_features` names them
    "scales": ("weak links", "strong links"),
    "words": ("words",),
    "degree": ("degree", "isolated"),
    "structure": ("structure", "neighbours"),
}
STRUCTURE_DIM = 64
IN_PLACE = 100_000  # vertices beyond which the eigenvectors are computed with tables in files
COLUMNS_AT_ONCE = 16  # of a sparse product with such a table
OVERSAMPLING = 10  # further dimensions of the randomised eigendecomposition
LINK_STRENGTHS = {"weak links": 0.25, "strong links": 8.0}

Floats = NDArray[np.float64]
Rows = NDArray[np.float32]
Links = NDArray[np.int64]


@dataclass(frozen=True)
class VertexRows:
    """Some vertices, k of them, as the features of their pairs need them.

    Attributes
    ----------
    scales : (k, d) rows of unit length by name: "embedding" and others
    words : (k, V) TF-IDF rows of unit length
    degree : (k,)
    structure : (k, r) factors of the adjacency matrix, and their signs (r,)
    adjacency : (k, n) links with the vertices of the network
    neighbour_weight : (n,) weight of each vertex of the network as a common neighbour
    """

    scales: dict[str, Rows]
    words: sparse.csr_array
    degree: NDArray[np.int64]
    structure: Rows
    signs: Rows
    adjacency: sparse.csr_array
    neighbour_weight: Rows

    def __len__(self) -> int:
        return len(self.degree)

    def take(self, vertices: NDArray[Any] | slice) -> Self:
        """The rows of some of the vertices."""
        names = ("words", "degree", "structure", "adjacency")
        own = {name: getattr(self, name)[vertices] for name in names}
        return replace(self, scales={k: v[vertices] for k, v in self.scales.items()}, **own)


def paired(a: VertexRows, b: VertexRows, names: tuple[str, ...]) -> Iterator[tuple[str, Floats]]:
    """Each feature of the pairs (a_k, b_k): (m,)."""

    def dense(x: Rows, y: Rows) -> Floats:
        return np.einsum("md,md->m", x, y, dtype=np.float64)

    def common(x: sparse.csr_array, y: sparse.csr_array) -> Floats:
        return np.asarray(x.multiply(y).sum(axis=1), dtype=np.float64).ravel()

    return _features(a, b, names, dense, common, lambda x, y: (x, y))


def crossed(a: VertexRows, b: VertexRows, names: tuple[str, ...]) -> Iterator[tuple[str, Floats]]:
    """Each feature of all pairs of a vertex of ``a`` and one of ``b``: (len(a), len(b))."""

    def dense(x: Rows, y: Rows) -> Any:
        return x @ y.T

    def common(x: sparse.csr_array, y: sparse.csr_array) -> Any:
        if x.shape[0] < y.shape[0]:  # the smaller matrix is transposed: its format is converted
            return (y @ x.T).T.toarray()
        return (x @ y.T).toarray()

    return _features(a, b, names, dense, common, lambda x, y: (x[:, None], y[None, :]))


def _features(
    a: VertexRows,
    b: VertexRows,
    names: tuple[str, ...],
    dense: Callable[[Rows, Rows], Floats],
    common: Callable[[sparse.csr_array, sparse.csr_array], Floats],
    broadcast: Callable[[Any, Any], tuple[Any, Any]],
) -> Iterator[tuple[str, Floats]]:
    for name in names:
        if name in a.scales:
            value = np.arcsinh(dense(a.scales[name], b.scales[name]) / KNEE)
        elif name == "words":
            value = np.log1p(100 * common(a.words, b.words))
        elif name == "degree":
            value = np.add(*broadcast(np.log1p(a.degree), np.log1p(b.degree)))
        elif name == "isolated":
            value = np.logical_or(*broadcast(a.degree == 0, b.degree == 0)).astype(float)
        elif name == "structure":
            value = np.arcsinh(dense(a.structure * a.signs, b.structure) / KNEE)
        else:
            value = np.log1p(common(a.adjacency.multiply(a.neighbour_weight).tocsr(), b.adjacency))
        yield name, value


def vertex_rows(
    scales: dict[str, NDArray[Any]],
    words: sparse.csr_array,
    links: Links,
    names: tuple[str, ...],
    seed: int,
) -> VertexRows:
    """The rows of all vertices of a network; factors that no name needs are left out."""
    n = words.shape[0]
    degree = np.bincount(links.ravel(), minlength=n)
    factors = np.zeros((n, 0), np.float32), np.zeros(0, np.float32)
    if "structure" in names:
        factors = structure_factors(links, n, seed)
    return VertexRows(
        {name: unit_rows(np.asarray(rows, dtype=np.float32)) for name, rows in scales.items()},
        words,
        degree,
        *factors,
        adjacency_matrix(links, n),
        neighbour_weights(degree),
    )


def neighbour_weights(degree: NDArray[np.int64]) -> Rows:
    """1 / log(1 + degree), of the vertices that have links: (n,)."""
    return (1 / np.log(1.0 + np.maximum(degree, 1))).astype(np.float32)


def structure_factors(links: Links, n: int, seed: int) -> tuple[Rows, Rows]:
    """h (n, r) and signs σ (r,) such that Σ_k σ_k h_ik h_jk approximates the adjacency matrix.

    It is the best approximation of that rank after the rows and columns are divided by
    √(1 + degree), so that a few hubs do not use up all dimensions.
    """
    from sklearn.utils.extmath import randomized_range_finder

    adjacency = adjacency_matrix(links, n)
    rank = min(STRUCTURE_DIM, n - 1)
    if rank < 1 or not adjacency.nnz:
        return np.zeros((n, 0), np.float32), np.zeros(0, np.float32)
    root = np.sqrt(1.0 + np.diff(adjacency.indptr)).astype(np.float32)
    scale = sparse.diags_array(1 / root)
    scaled = sparse.csr_array(scale @ adjacency @ scale)
    # an eigendecomposition, not a singular value decomposition: eigenvalues λ and -λ, which every
    # bipartite network has, are one singular value
    size = min(rank + OVERSAMPLING, n)
    if n > IN_PLACE:
        basis = _range_in_place(scaled, size, seed)
    else:
        basis = randomized_range_finder(scaled, size=size, n_iter=2, random_state=seed)
    image = _product(scaled, basis)
    values, vectors = np.linalg.eigh(
        sum(part.T @ image[start : start + len(part)] for start, part in blocks(basis))
    )
    del image
    largest = np.argsort(-np.abs(values), kind="stable")[:rank]
    values, vectors = values[largest], vectors[:, largest]
    factors = new_table(n, rank)
    for start, part in blocks(basis):
        rows = slice(start, start + len(part))
        factors[rows] = root[rows, None] * (part @ vectors) * np.sqrt(np.abs(values))
        release(factors)
    return factors, np.sign(values).astype(np.float32)


def _range_in_place(matrix: sparse.csr_array, size: int, seed: int) -> Rows:
    """An orthonormal basis (n, size) of about the range of a matrix, with tables in files.

    As scikit-learn's `randomized_range_finder`, which needs four tables in memory.
    """
    rng, basis = np.random.default_rng(seed), new_table(matrix.shape[1], size)
    for start, part in blocks(basis):
        basis[start : start + len(part)] = rng.standard_normal(part.shape, dtype=np.float32)
    for _ in range(5):  # two power iterations, as there
        basis = _product(matrix, basis)
        for _ in range(2):  # after the first, the columns are only nearly orthogonal
            gram = sum(np.asarray(part.T @ part, np.float64) for _, part in blocks(basis))
            values, vectors = np.linalg.eigh(gram)
            scale = 1 / np.sqrt(np.maximum(values, 1e-7 * values[-1]))
            transform = (vectors * scale).astype(np.float32)
            for start, part in blocks(basis):
                basis[start : start + len(part)] = part @ transform
    return basis


def _product(matrix: sparse.csr_array, table: Rows) -> Rows:
    """A sparse matrix times a table, some columns at a time where the table is large."""
    if len(table) <= IN_PLACE:
        return np.asarray(matrix @ table)
    product = new_table(matrix.shape[0], table.shape[1])
    for first in range(0, table.shape[1], COLUMNS_AT_ONCE):
        some = copy_columns(table, first, min(first + COLUMNS_AT_ONCE, table.shape[1]))
        write_columns(product, first, matrix @ some)
    return product


def fold_in(adjacency: sparse.csr_array, structure: Rows, signs: Rows) -> Rows:
    """Structure factors of new vertices: the least-squares fit to their links (k, n)."""
    if not structure.shape[1]:
        return np.zeros((adjacency.shape[0], 0), np.float32)
    degree = np.diff(adjacency.indptr)
    gram = structure.T @ structure
    ridge = 1e-3 * np.trace(gram) / len(gram)
    solution = np.linalg.solve(gram + ridge * np.eye(len(gram)), (adjacency @ structure).T).T
    return np.where(degree[:, None] > 0, solution * signs, 0).astype(np.float32)


def adjacency_matrix(links: Links, n: int) -> sparse.csr_array:
    """1 for each link in both directions: (n, n)."""
    ends = np.concatenate([links, links[:, ::-1]])
    return sparse.csr_array((np.ones(len(ends), np.float32), ends.T), shape=(n, n))
