"""The homophilic prior over the whole graph: every code at once, given all texts and all links.

The paper's p1 couples the two codes of one linked pair. Coupling all linked pairs at once gives

    p(z) ∝ exp(-½ Σ_(i,j) s_ij ||z_i - z_j||²),    text_i ~ N(z_i, 1/Λ_i)

whose posterior is Gaussian with mean A⁻¹ Λ m and covariance A⁻¹, A = diag(Λ) + Laplacian(s), m the
texts' codes: one sparse linear system for all dimensions. For two linked vertices and Λ = 1, A⁻¹
has the correlation s / (1 + s): the paper's pair with that λ. Links that are unknown but whose
texts are near count too, softly: the mixture over unknown edges in expectation.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from vhe.data.text import Corpus
from vhe.runtime import native as compiled
from vhe.runtime.sparse import parts, product, sparse_rows, sparse_times
from vhe.text.lsa import word_counts

STRENGTH = 2.0  # of a link, usually
MOST = 1e4  # a weight that is as good as infinite: 32 bits still see the text beside it
NEIGHBOURS = 10  # nearest texts that are linked softly
USUAL, OWN = 0.25, 0.1  # of a text without a word: the mean code, and a code of its own
PROBES = 64  # random vectors for the variances
SAMPLE = 256  # texts that the centre of all codes is taken from where few codes are asked for
EXACT_NEAR = 10_000  # texts up to which near ones are found by comparing all with all
CLUSTERS_NEAR = 16  # beyond, a text is compared with those of this many nearest clusters
ROUNDS_TRAINING, ROUNDS = 3, 12  # of conjugate gradients: errors of some 1e-2 and 1e-4


class TextCodes:
    """m: the code of every text, the sum of its words' vectors with damped counts.

    Rows have the length of a draw from the prior, √d, and are half centred. A text without a word
    is taken for a usual one, but less so, and has a short code of its own at random beside that:
    who is linked with the same vertices hears the same, so that links still tell vertices apart.
    """

    def __init__(self, corpus: Corpus, device: torch.device) -> None:
        counts = word_counts(corpus)
        damped, (n, words) = 1 + np.log(counts.data), counts.shape
        self.counts = sparse.csr_array(  # the first column is that of padding, which no text has
            (damped, counts.indices + 1, counts.indptr), shape=(n, words + 1)
        )
        self.silent = np.diff(counts.indptr) == 0  # (n,)
        self.device = device
        self.all = self._words_of(slice(None))
        speaking = np.flatnonzero(~self.silent)
        some = np.linspace(0, len(speaking) - 1, min(SAMPLE, len(speaking))).astype(np.int64)
        self.some = self._words_of(speaking[some])
        self._own: Tensor | None = None

    def __call__(self, vectors: Tensor) -> Tensor:
        """Codes (n, d) for the vectors of padding and of all words (1 + V, d)."""
        learns = vectors.requires_grad and torch.is_grad_enabled()
        codes = self._scaled(vectors, self.all, self._turned if learns else None)
        center = codes.sum(dim=0) / max(1, len(codes) - self.silent.sum())
        return self._off_center(codes, center, np.arange(len(codes)))

    def of(self, texts: NDArray[np.int64], vectors: Tensor) -> Tensor:
        """Codes (k, d) of some texts, at a cost that does not grow with the number of all.

        They are centred by a sample, through which no gradient goes.
        """
        with torch.no_grad():
            sample = self._scaled(vectors, self.some)
            center = sample.sum(dim=0) / max(1, len(sample))
        return self._off_center(self._scaled(vectors, self._words_of(texts)), center, texts)

    def _off_center(self, codes: Tensor, center: Tensor, texts: NDArray[np.int64]) -> Tensor:
        rows = np.flatnonzero(self.silent[texts])
        if not len(rows):
            return codes - center / 2
        if self._own is None:
            shape = int(self.silent.sum()), codes.shape[1]
            self._own = torch.randn(shape, generator=torch.Generator().manual_seed(0))
        which = np.searchsorted(np.flatnonzero(self.silent), texts[rows])
        own = USUAL * center + OWN * self._own[torch.from_numpy(which)].to(codes)
        return (codes - center / 2).index_copy(0, torch.from_numpy(rows).to(codes.device), own)

    @cached_property
    def _turned(self) -> Tensor:
        """Counts (1 + V, n)."""
        return sparse_rows(self.counts.T.tocsr(), self.device)

    def _words_of(self, texts: NDArray[np.int64] | slice) -> Tensor:
        """Counts (k, 1 + V)."""
        return sparse_rows(self.counts[texts], self.device)

    def _scaled(self, vectors: Tensor, words: Tensor, turned: Tensor | None = None) -> Tensor:
        scaled = _Scaled.apply(product(words, vectors, turned))
        assert isinstance(scaled, Tensor)
        return scaled


class _Scaled(torch.autograd.Function):
    """Rows (n, d) at the length √d."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        scale = rows.shape[1] ** 0.5 / rows.norm(dim=1, keepdim=True).clamp(min=1e-12)
        scaled = rows * scale
        ctx.save_for_backward(scaled, scale)
        return scaled

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        scaled, scale = ctx.saved_tensors
        along = torch.linalg.vecdot(gradients[0], scaled).unsqueeze(1) / scaled.shape[1]
        return torch.addcmul(gradients[0], scaled, along, value=-1).mul_(scale)


class GraphPrior:
    """The coupling of the codes by known links and, softly, by near texts.

    Parameters
    ----------
    links : (m, 2)
    lengths : (n,) words of each text: a longer text is surer, Λ ∝ √(1 + length)
    near : (k, 2) and weights (k,)
        pairs of near texts, see `near_texts`; ``text_knn_weight`` is what they weigh
    link_strength : of a link, before it is shared among the links of its ends
    """

    def __init__(
        self,
        links: NDArray[np.int64],
        lengths: NDArray[np.int64],
        near: tuple[NDArray[np.int64], NDArray[np.float32]] | None = None,
        text_knn_weight: float = 0.0,
        device: torch.device | None = None,
        link_strength: float = STRENGTH,
    ) -> None:
        n, self.links = len(lengths), links
        weight = np.log1p(lengths)
        self.device = device or torch.device("cpu")
        self.precision = torch.from_numpy(
            np.exp((weight - weight.mean()) / 2).astype(np.float32)
        ).to(self.device)
        degree = np.bincount(links.ravel(), minlength=n)
        pairs, weights = links, link_weights(links, degree, link_strength)
        if near is not None and text_knn_weight > 0:
            soft_degree = np.bincount(near[0].ravel(), minlength=n)
            share = ((soft_degree[near[0]] + 1).prod(axis=1).astype(np.float64)) ** -0.5
            pairs = np.concatenate([links, near[0]])
            soft = np.minimum(text_knn_weight * near[1].astype(np.float64) * share, MOST)
            weights = np.concatenate([weights, soft])
        # the position of each pair's two entries in the sorted rows of the matrix
        ends = np.concatenate([pairs, pairs[:, ::-1]])
        order = np.lexsort((ends[:, 1], ends[:, 0]))
        self._entry = torch.from_numpy(np.argsort(order)).to(self.device)
        self._columns = torch.from_numpy(ends[order, 1].astype(np.int32)).to(self.device)
        starts = np.searchsorted(ends[order, 0], np.arange(n + 1)).astype(np.int32)
        self._starts = torch.from_numpy(starts).to(self.device)
        self._weights = torch.from_numpy(
            np.tile(weights, 2)[order].clip(max=MOST).astype(np.float32)
        ).to(self.device)
        self._pairs = len(pairs)

    def compressed(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
        """The couplings in compressed rows: where rows start, columns, weights; and the places of
        each pair's two entries among them, (2, pairs)."""
        arrays = (self._starts, self._columns, self._weights, self._entry.view(2, -1))
        starts, columns, weights, entries = (array.cpu().numpy() for array in arrays)
        return starts, columns, weights, entries

    def coupling(self, left_out: NDArray[np.int64] | None = None) -> Coupling:
        """The prior without some links, by their numbers; they still count in the degrees."""
        values = self._weights
        if left_out is not None and len(left_out):
            gone = torch.from_numpy(left_out).to(self.device)
            values = values.clone()
            values[self._entry[torch.cat([gone, gone + self._pairs])]] = 0
        n = len(self.precision)
        matrix = torch.sparse_csr_tensor(
            self._starts, self._columns, values, (n, n), check_invariants=False
        )
        total = matrix @ torch.ones(n, 1, device=self.device)
        return Coupling(matrix, self.precision.unsqueeze(1), total)


def link_weights(
    links: NDArray[np.int64], degree: NDArray[Any], link_strength: float
) -> NDArray[np.float64]:
    """s of each link (m, 2): its link_strength, shared among the links of its ends (n,)."""
    weights: NDArray[np.float64] = link_strength * (degree[links] + 1.0).prod(axis=1) ** -0.25
    return weights


class Coupling:
    """A = diag(Λ) + Laplacian, and the solution of A z = b."""

    def __init__(self, matrix: Tensor, precision: Tensor, total: Tensor) -> None:
        self.matrix, self.precision = matrix, precision  # (n, n), (n, 1)
        self.diagonal = precision + total  # (n, 1)

    def times(self, z: Tensor) -> Tensor:
        return self.diagonal * z - sparse_times(self.matrix, z)

    def solve(self, b: Tensor, rounds: int) -> Tensor:
        """A⁻¹ b for each column of b (n, d), by preconditioned conjugate gradients."""
        if compiled.is_available(b):
            return self._solved(b.contiguous(), rounds)
        z = b / self.diagonal
        rest = b - self.times(z)
        scaled = rest / self.diagonal
        direction, size = scaled.clone(), (rest * scaled).sum(dim=0)
        for _ in range(rounds):
            image = self.times(direction)
            step = size / (direction * image).sum(dim=0).clamp(min=1e-30)
            z.addcmul_(step, direction)
            rest.addcmul_(step, image, value=-1)
            torch.div(rest, self.diagonal, out=scaled)
            size, before = (rest * scaled).sum(dim=0), size
            direction = torch.addcmul(scaled, size / before.clamp(min=1e-30), direction)
        return z

    def _solved(self, b: Tensor, rounds: int) -> Tensor:
        """The same by graph_prior.c."""
        z = torch.empty_like(b)
        numbers = torch.get_num_threads(), *b.shape, rounds
        compiled.call("solve", *numbers, *parts(self.matrix), self.diagonal.contiguous(), b, z)
        return z

    def variance(self, seed: int, probes: int = PROBES) -> Tensor:
        """The diagonal of A⁻¹, (n,): the mean of v ∘ A⁻¹v over random signs v (Hutchinson 1990).

        It lies between 1/A_ii, where all others are known, and 1/Λ_i, where nothing is.
        """
        shape = (len(self.diagonal), probes)
        signs = torch.randint(2, shape, generator=torch.Generator().manual_seed(seed)) * 2.0 - 1
        signs = signs.to(self.diagonal)
        found = (signs * self.solve(signs, ROUNDS)).mean(dim=1, keepdim=True)
        return found.clamp(1 / self.diagonal, 1 / self.precision).squeeze(1)

    def posterior_mean(self, codes: Tensor, rounds: int) -> Tensor:
        """A⁻¹ Λ m; gradients by the adjoint system, which is the same one: A is symmetric."""
        return self.solution(self.precision * codes, rounds)

    def solution(self, b: Tensor, rounds: int) -> Tensor:
        """`solve`, with gradients."""
        z = _Solution.apply(b, self, rounds)
        assert isinstance(z, Tensor)
        return z


class _Solution(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, b: Tensor, coupling: Coupling, rounds: int) -> Tensor:
        ctx.coupling, ctx.rounds = coupling, rounds
        return coupling.solve(b, rounds)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        return ctx.coupling.solve(gradients[0], ctx.rounds), None, None


def near_texts(
    codes: NDArray[np.float32], neighbours: int = NEIGHBOURS
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The nearest texts of each text by the cosine of centred codes: pairs (k, 2), cosines (k,).

    All are compared with all where texts are few. Where they are many, those of near clusters are:
    n^1.5 comparisons, which miss some of the nearest.
    """
    n = len(codes)
    if min(neighbours, n - 1) < 1:
        return np.zeros((0, 2), dtype=np.int64), np.zeros(0, dtype=np.float32)
    centred = codes - codes.mean(axis=0)
    unit = centred / np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-12)
    table = torch.from_numpy(np.ascontiguousarray(unit))
    everyone = torch.arange(n)
    groups = [(everyone, everyone)] if n <= EXACT_NEAR else _near_clusters(table)
    keys, values = [], []
    for asking, candidates in groups:
        others, rows = min(neighbours, len(candidates) - 1), table[candidates].T
        for i in asking.split(max(1, (1 << 24) // len(candidates))) if others else ():
            cosine = table[i] @ rows
            cosine[i.unsqueeze(1) == candidates] = -2
            best = cosine.topk(others, dim=1)
            i, j = np.repeat(i.numpy(), others), candidates[best.indices].numpy().ravel()
            keys.append(np.minimum(i, j) * n + np.maximum(i, j))
            values.append(best.values.numpy().ravel())
    key, first = np.unique(np.concatenate(keys), return_index=True)
    value = np.concatenate(values)[first]
    positive = value > 0
    return np.stack(np.divmod(key[positive], n), axis=1), value[positive]


def _near_clusters(table: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Each cluster of rows of unit length, and the rows of the clusters that are nearest to it."""
    n = len(table)
    count = round(n**0.5 / 2)
    centers = table[torch.linspace(0, n - 1, count).long()]
    for _ in range(3):
        cluster = torch.cat([(part @ centers.T).argmax(dim=1) for part in table.split(1 << 14)])
        centers = torch.zeros_like(centers).index_add_(0, cluster, table)
        centers = torch.nn.functional.normalize(centers, dim=1)
    members = cluster.argsort(stable=True).split(torch.bincount(cluster, minlength=count).tolist())
    near = (centers @ centers.T).topk(min(CLUSTERS_NEAR, count), dim=1).indices
    for own, others in zip(members, near.tolist(), strict=True):
        yield own, torch.cat([members[k] for k in {*others}])
