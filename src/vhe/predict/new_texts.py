"""Queries of a fitted model on texts that are not vertices of its network."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from vhe.data.text import Corpus
from vhe.errors import VHEError
from vhe.predict.arguments import columns, text_list
from vhe.predict.explain import Explanation
from vhe.predict.pair_features import VertexRows
from vhe.predict.predictor import Predictor, TextReading
from vhe.predict.scan import DAMAGED
from vhe.runtime.checks import is_integer

InductiveMethod = Literal["fast", "paper"]


class Inductive(Protocol):
    """Embeddings of k new texts."""

    @property
    def mean(self) -> NDArray[np.float32]:
        """(k, d)"""

    @property
    def variance(self) -> NDArray[np.float32]:
        """(k,) or (k, d)"""


class InductivePredictor(Predictor):
    """A `Predictor` that also reads texts that are not vertices.

    A subclass defines `_embed_new`, `_new_scales` and `_new_rows`.
    """

    @abstractmethod
    def _new_rows(
        self, texts: Corpus, links: NDArray[np.int64], scales: dict[str, NDArray[np.float32]]
    ) -> VertexRows:
        """The features of new texts for the link posterior; ``links`` as in `_embed_new`."""

    @abstractmethod
    def _new_scales(
        self, texts: Corpus, links: NDArray[np.int64], mean: NDArray[np.float32]
    ) -> dict[str, NDArray[np.float32]]:
        """Embeddings of new texts at each scale that the link posterior uses."""

    @abstractmethod
    def _embed_new(
        self, texts: Corpus, links: NDArray[np.int64], method: InductiveMethod | None
    ) -> Inductive:
        """Embed new texts; ``links`` (m, 2) number them after the vertices of the network."""

    def embed_texts(
        self,
        texts: Iterable[str],
        edges: Iterable[tuple[int, Hashable]] | None = None,
        *,
        method: InductiveMethod | None = None,
        vectors: Any | None = None,
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the embedding of texts that are not vertices.

        Parameters
        ----------
        texts : iterable of k strings
        edges : list of pairs, optional
            known links, as (position in ``texts``, id of a vertex)
        method
            as in `add_vertices`
        vectors : (k, columns) array
            for a model that was fitted on given vectors

        Returns
        -------
        mean : (k, d) array
        std : (k, d) or (k, 1) array
        """
        texts = text_list(texts)
        corpus, links = self._encode(texts, vectors), self._text_links(texts, edges)
        found = self._finite_embedding(corpus, links, method)
        return found.mean, standard_deviation(found)

    def score_texts(
        self, texts: Iterable[str], edges: Iterable[tuple[int, Hashable]] | None = None
    ) -> NDArray[np.float64]:
        """Return the scores of texts that are not vertices with all vertices.

        Parameters
        ----------
        texts, edges
            as in `embed_texts`

        Returns
        -------
        (k, n) array
        """
        texts = text_list(texts)
        corpus, links = self._encode(texts), self._text_links(texts, edges)
        return self._link_posterior.log_odds_matrix(self._text_rows(corpus, links), self._rows)

    def explain_texts(self, a: str, b: str) -> Explanation:
        """Explain the score of two texts that are not vertices; as `explain`."""
        corpus = self._encode(text_list([a, b]))
        tokens = np.split(corpus.tokens, corpus.offsets[1:2])
        rows = self._text_rows(corpus, np.zeros((0, 2), dtype=np.int64))
        readings = TextReading(None, a, tokens[0]), TextReading(None, b, tokens[1])
        return self._explain(*readings, rows.take(np.array([0])), rows.take(np.array([1])))

    def _finite_embedding(
        self, texts: Corpus, links: NDArray[np.int64], method: InductiveMethod | None = None
    ) -> Inductive:
        """As `_embed_new`; refuse results that overflow, which a damaged model folder can cause."""
        found = self._embed_new(texts, links, method)
        if not (np.isfinite(found.mean).all() and np.isfinite(standard_deviation(found)).all()):
            raise VHEError(DAMAGED)
        return found

    def _text_rows(self, texts: Corpus, links: NDArray[np.int64]) -> VertexRows:
        mean = self._finite_embedding(texts, links).mean
        return self._new_rows(texts, links, self._new_scales(texts, links, mean))

    def _text_links(
        self, texts: Sequence[str], edges: Iterable[tuple[int, Hashable]] | None
    ) -> NDArray[np.int64]:
        """Links of texts, numbered after the vertices, with vertices: (m, 2)."""
        numbers, vertices = columns(() if edges is None else edges)
        allowed = range(len(texts))
        for text in numbers:
            if not is_integer(text) or text not in allowed:
                raise VHEError(f"an edge names text {text!r}, but there are {len(texts)} texts")
        new = np.array(numbers, dtype=np.int64) + len(self.network_)
        return np.column_stack([new, self.network_.indices(vertices)])

    def _encode(self, texts: Sequence[str], vectors: Any | None = None) -> Corpus:
        """New texts as tokens of the model's vocabulary."""
        self._check_fitted()
        if vectors is not None and self._vector_source is None:
            raise VHEError("the model was fitted without vectors; omit them")
        return Corpus.encode(texts, self.vocabulary_, max_words=self._config.max_words)

    def _embed_and_score(
        self, text: str
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float64]]:
        """`embed_texts` and `score_texts` of one text in one pass: (d,), (d,) and (n,)."""
        corpus, links = self._encode([text]), self._text_links([text], None)
        found = self._finite_embedding(corpus, links)
        rows = self._new_rows(corpus, links, self._new_scales(corpus, links, found.mean))
        scores = self._link_posterior.log_odds_matrix(rows, self._rows)
        return found.mean[0], standard_deviation(found)[0], scores[0]


def standard_deviation(found: Inductive) -> NDArray[np.float32]:
    """(k, 1) for one variance per vertex, otherwise (k, d)."""
    std: NDArray[np.float32] = np.sqrt(found.variance)
    return std[:, None] if std.ndim == 1 else std
