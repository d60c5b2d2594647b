"""Text codes m: each text as a vector, the sum of its word vectors with damped counts.

    m_i = √d · u_i / ‖u_i‖ - c / 2,    u_i = Σ_w (1 + log count_iw) v_w,
    c = the mean of √d · u_i / ‖u_i‖ over the texts

A row has about the length √d of a draw from the prior N(0, I). Half of the centre c is subtracted,
because what all texts have in common does not distinguish them.

An empty text has the code c / 4 plus a small random vector: its posterior is then decided by its
neighbours, and two empty texts with the same neighbours still differ.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from vhe.runtime.arrays import release
from vhe.runtime.sparse import csr_tensor, sparse_product
from vhe.runtime.tables import new_table
from vhe.text.lsa import CENTRE_SHARE, EMPTY_CENTRE, TEXTS_AT_ONCE, damped_counts

if TYPE_CHECKING:
    from vhe.data.text import Corpus

EMPTY_NOISE = 0.1  # random part of the code of an empty text


class TextCodes:
    """Codes of the texts of a corpus as a differentiable function of the word vectors.

    The counts of words are in memory where the codes of all texts are asked for; `table` and
    `rows` count the words of the texts that they are given.
    """

    def __init__(self, corpus: Corpus, device: torch.device | None = None) -> None:
        self.corpus = corpus
        self.empty = corpus.lengths == 0  # (n,)
        self.without_code = self.empty  # (n,) vertices without words and without vector
        self.device = device or torch.device("cpu")

    def __len__(self) -> int:
        return len(self.empty)

    def __call__(self, words: Tensor) -> Tensor:
        """Codes (n, d) for word vectors (1 + V, d), the first of which belongs to padding."""
        codes, centre = self._scaled(words)
        return self._centred(codes, centre, np.arange(len(self)))

    @torch.no_grad()
    def centre(self, words: Tensor) -> Tensor:
        """c: the mean of the scaled rows of texts that are not empty, (d,)."""
        return self._scaled(words)[1]

    @torch.no_grad()
    def table(
        self, words: Tensor, progress: Callable[[int, int], None] = lambda done, total: None
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Codes (n, d) and their centre (d,), computed and stored in blocks of texts."""
        n, dim = len(self), words.shape[1]
        table, total = new_table(n, dim), torch.zeros(dim, dtype=torch.float64)
        for start in range(0, n, TEXTS_AT_ONCE):
            texts = np.arange(start, min(start + TEXTS_AT_ONCE, n))
            counts = csr_tensor(_counts(self.corpus.select(texts)), self.device)
            scaled = _unit_scale(sparse_product(counts, words))
            total += scaled.sum(dim=0, dtype=torch.float64).cpu()
            table[texts[0] : texts[-1] + 1] = scaled.cpu().numpy()
            release(table)
            progress(start + len(texts), n)
        centre = (total / max(1, n - int(self.empty.sum()))).float()
        for start in range(0, n, TEXTS_AT_ONCE):
            texts = np.arange(start, min(start + TEXTS_AT_ONCE, n))
            part = slice(texts[0], texts[-1] + 1)
            table[part] = self._centred(torch.from_numpy(table[part].copy()), centre, texts).numpy()
            release(table)
        return table, centre.numpy()

    def rows(self, texts: NDArray[np.int64], words: Tensor, centre: Tensor) -> Tensor:
        """Codes (k, d) of some texts, given the centre."""
        counts = csr_tensor(_counts(self.corpus.select(texts)), self.device)
        return self._centred(_unit_scale(sparse_product(counts, words)), centre, texts)

    def _scaled(self, words: Tensor) -> tuple[Tensor, Tensor]:
        codes = _unit_scale(sparse_product(self._rows, words, lambda: self._columns))
        return codes, codes.sum(dim=0) / max(1, len(self) - int(self.empty.sum()))

    def _centred(self, codes: Tensor, centre: Tensor, texts: NDArray[np.int64]) -> Tensor:
        empty = np.flatnonzero(self.empty[texts])
        centred = codes - CENTRE_SHARE * centre
        if not len(empty):
            return centred
        number = np.searchsorted(np.flatnonzero(self.empty), texts[empty])
        noise = empty_noise(int(self.empty.sum()), codes.shape[1])[number]
        rows = torch.from_numpy(empty).to(codes.device)
        return centred.index_copy(0, rows, EMPTY_CENTRE * centre + noise.to(codes))

    @cached_property
    def counts(self) -> sparse.csr_array:
        """1 + log of the number of occurrences of each token: (n, 1 + V)."""
        return _counts(self.corpus)

    @cached_property
    def _rows(self) -> Tensor:
        return csr_tensor(self.counts, self.device)

    @cached_property
    def _columns(self) -> Tensor:
        return csr_tensor(self.counts.T.tocsr(), self.device)


class JointCodes(TextCodes):
    """Text codes joined with fixed codes of vectors (`vhe.text.vector_codes`).

    Parameters
    ----------
    vectors : (n, p)
    weight : share of the vectors in the squared length
    """

    def __init__(
        self,
        corpus: Corpus,
        vectors: NDArray[np.float32],
        weight: float,
        device: torch.device | None = None,
    ) -> None:
        super().__init__(corpus, device)
        self._text_share = (1 - weight) ** 0.5
        self._vectors = torch.from_numpy(vectors).to(self.device) * weight**0.5
        self.without_code = self.empty & ~vectors.any(axis=1)

    def __call__(self, words: Tensor) -> Tensor:
        """Codes (n, d + p) for word vectors (1 + V, d)."""
        return torch.cat([self._text_share * super().__call__(words), self._vectors], dim=1)

    @torch.no_grad()
    def table(
        self, words: Tensor, progress: Callable[[int, int], None] = lambda done, total: None
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Codes (n, d + p) and the centre (d,) of the text codes."""
        text, centre = super().table(words, progress)
        table = new_table(len(self), text.shape[1] + self._vectors.shape[1])
        table[:, : text.shape[1]] = self._text_share * text
        table[:, text.shape[1] :] = self._vectors.cpu().numpy()
        return table, centre

    def rows(self, texts: NDArray[np.int64], words: Tensor, centre: Tensor) -> Tensor:
        """Codes (k, d + p) of some texts, given the centre of the text codes."""
        own = self._vectors[torch.from_numpy(texts).to(self.device)]
        return torch.cat([self._text_share * super().rows(texts, words, centre), own], dim=1)


def _counts(corpus: Corpus) -> sparse.csr_array:
    counts = damped_counts(corpus)
    n, words = counts.shape
    # column 0 belongs to the padding token, which no text contains
    return sparse.csr_array((counts.data, counts.indices + 1, counts.indptr), shape=(n, words + 1))


def empty_noise(count: int, dim: int) -> Tensor:
    """The random part of the codes of empty texts, the same in every process: (count, dim)."""
    return EMPTY_NOISE * torch.randn(count, dim, generator=torch.Generator().manual_seed(0))


def _unit_scale(rows: Tensor) -> Tensor:
    scaled = _UnitScale.apply(rows)  # type: ignore[no-untyped-call]
    assert isinstance(scaled, Tensor)
    return scaled


class _UnitScale(torch.autograd.Function):
    """Rows (n, d) scaled to the length √d, in fewer passes over memory than autograd's."""

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
