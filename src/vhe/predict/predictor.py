"""What any fitted model can be asked: embeddings, probabilities, missing links, explanations."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from vhe.data.network import TextNetwork
from vhe.data.text import Corpus
from vhe.errors import VHEError
from vhe.predict.arguments import Pairs, checked_k, columns, text_list
from vhe.predict.calibration import ReliabilityCurve, sigmoid
from vhe.predict.candidates import DUPLICATE, likely_links, text_cosines
from vhe.predict.explain import Explanation, Side
from vhe.predict.link_posterior import LinkPosterior, at_density
from vhe.predict.pair_features import KNEE, VertexRows
from vhe.predict.scan import DAMAGED
from vhe.predict.suggest import EXACT_UP_TO, nearest, partners
from vhe.runtime.checks import is_integer
from vhe.text.vertex_vectors import VectorSource

if TYPE_CHECKING:
    import networkx
    import pandas
    from torch_geometric.data import Data

__all__ = ["Suggestion"]

SNIPPET = 80  # characters of a text that a suggestion shows
MOST_CANDIDATES = 4_000_000  # pairs that are compared for the best links of the whole network
LEAST_PARTNERS = 10  # of each vertex among them

InductiveMethod = Literal["fast", "paper"]


@dataclass(frozen=True)
class Suggestion:
    """A likely link that is not in the network."""

    id: Hashable
    probability: float
    text: str


@dataclass(frozen=True)
class TextReading:
    """One end of a pair to be explained.

    Attributes
    ----------
    vertex : its number; None for a text that is not a vertex
    tokens : (L,) the words that the model reads
    """

    vertex: int | None
    text: str
    tokens: NDArray[np.int32]


class Inductive(Protocol):
    """Embeddings of k new texts."""

    @property
    def mean(self) -> NDArray[np.float32]:
        """(k, d)"""

    @property
    def variance(self) -> NDArray[np.float32]:
        """(k,) or (k, d)"""


class Predictor:
    """The questions that can be asked of a fitted model; nothing here changes it.

    A subclass sets the attributes below and defines `_embed_new` and `_attribute`.
    """

    verbose: bool
    network_: TextNetwork
    embedding_: NDArray[np.float32]  # (n, d)
    embedding_std_: NDArray[np.float32]  # (n, 1) or (n, d)
    result_: dict[str, Any]
    _config: Any  # the settings of the fit
    _vocabulary: tuple[str, ...]
    _link_posterior: LinkPosterior
    _corpus: Corpus  # the texts of the network as tokens
    _vector_source: VectorSource | None = None  # of models that use vectors

    @property
    @abstractmethod
    def _rows(self) -> VertexRows:
        """All vertices, as the link posterior reads them."""

    @abstractmethod
    def _rows_of(self, vertices: NDArray[np.int64]) -> VertexRows:
        """Some vertices (distinct, ascending), as the link posterior reads them."""

    @abstractmethod
    def _candidates(self, vertex: int, k: int) -> NDArray[np.int64]:
        """Vertices that may be among the ``k`` likeliest new partners of a vertex, ascending."""

    @abstractmethod
    def _new_rows(
        self, texts: Corpus, links: NDArray[np.int64], scales: dict[str, NDArray[np.float32]]
    ) -> VertexRows:
        """The same of new texts; ``links`` as in `_embed_new`."""

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

    @abstractmethod
    def _attribute(
        self, a: TextReading, b: TextReading
    ) -> tuple[Side, Side, dict[str, float], float]:
        """Both sides, the parts of the cosine of the two codes that come from no link ("texts" and,
        with vectors, their name), and the cosine."""

    # --- embeddings

    @property
    def vocabulary_(self) -> tuple[str, ...]:
        """The words that the model reads."""
        return self._vocabulary

    @property
    def density_(self) -> float:
        """The share of all pairs that are linked, inside (0, 1)."""
        return density(self.network_)

    def embed(
        self, ids: Hashable | Iterable[Hashable] | None = None, *, return_std: bool = False
    ) -> Any:
        """A copy of the embedding of one vertex, (d,), of several or of all, (k, d).

        With ``return_std`` also of its standard deviation: one number per vertex where it is the
        same in every dimension, otherwise d.

        Parameters
        ----------
        ids
            one id, or a list or array of ids; default: all vertices
        """
        self._check_fitted()
        rows = self._vertices(ids)
        mean, std = self.embedding_[rows], self.embedding_std_[rows]
        return (mean.copy(), std.copy()) if return_std else mean.copy()

    def _vertices(self, ids: Any) -> Any:
        """Row numbers of one id (a number), of several, or of all vertices."""
        if ids is None:
            return np.arange(len(self.network_))
        single = isinstance(ids, str | bytes) or not isinstance(ids, Iterable)
        if not single and isinstance(ids, Hashable):
            single = ids in set(self.network_.ids)  # a tuple may be an id
        return self.network_.index(ids) if single else self.network_.indices(list(ids))

    def nearest(self, vector_or_id: Any, k: int = 10) -> list[tuple[Hashable, float]]:
        """The vertices of the largest cosine with a vector (d,), or with another vertex.

        Linked vertices are included, the vertex itself is not.
        """
        self._check_fitted()
        k, network = checked_k(k), self.network_
        size = self.embedding_.shape[1]
        if isinstance(vector_or_id, np.ndarray):
            if vector_or_id.shape != (size,):
                raise VHEError(f"the vector has the shape {vector_or_id.shape}, not ({size},)")
            if vector_or_id.dtype.kind not in "iuf" or not np.isfinite(vector_or_id).all():
                raise VHEError("the vector must consist of finite numbers")
            found = zip(*nearest(self.embedding_, vector_or_id, k), strict=True)
            return [(network.ids[j], float(c)) for j, c in found]
        vertex = network.index(vector_or_id)
        found = zip(*nearest(self.embedding_, self.embedding_[vertex], k + 1), strict=True)
        return [(network.ids[j], float(c)) for j, c in found if j != vertex][:k]

    # --- scores and probabilities

    def score(self, pairs: Pairs) -> NDArray[np.float64]:
        """The score of each pair of ids, (m,): the log odds of a link in a balanced sample."""
        return self.score_indices(*self._ends(pairs))

    def score_indices(self, sources: NDArray[Any], targets: NDArray[Any]) -> NDArray[np.float64]:
        """The scores of pairs of vertex numbers: (m,)."""
        self._check_fitted()
        vertices, number = np.unique([sources, targets], return_inverse=True)
        if len(vertices) and not 0 <= vertices[0] <= vertices[-1] < len(self.network_):
            raise VHEError(f"vertex numbers must be from 0 to {len(self.network_) - 1}")
        ends = number.reshape(2, -1)
        return self._link_posterior.log_odds(self._rows_of(vertices), *ends)

    def score_matrix(self, sources: NDArray[Any], targets: NDArray[Any]) -> NDArray[np.float64]:
        """The scores of each source with each target: (len(sources), len(targets))."""
        self._check_fitted()
        rows = self._rows
        return self._link_posterior.log_odds_matrix(rows.take(sources), rows.take(targets))

    def score_texts(
        self, texts: Iterable[str], edges: Iterable[tuple[int, Hashable]] | None = None
    ) -> NDArray[np.float64]:
        """The scores of texts that are not vertices with all vertices: (k, n).

        ``edges`` as in `embed_texts`.
        """
        texts = text_list(texts)
        corpus, links = self._encode(texts), self._text_links(texts, edges)
        return self._link_posterior.log_odds_matrix(self._text_rows(corpus, links), self._rows)

    def _embed_and_score(
        self, text: str
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float64]]:
        """`embed_texts` and `score_texts` of one text in one pass: (d,), (d,) and (n,)."""
        corpus, links = self._encode([text]), self._text_links([text], None)
        found = self._finite_embedding(corpus, links)
        rows = self._new_rows(corpus, links, self._new_scales(corpus, links, found.mean))
        scores = self._link_posterior.log_odds_matrix(rows, self._rows)
        return found.mean[0], standard_deviation(found)[0], scores[0]

    def predict_proba(self, pairs: Pairs, *, balanced: bool = True) -> NDArray[np.float64]:
        """The probability of a link for each pair of ids: (m,).

        It is calibrated on held-out links for a balanced sample of links and non-links; with
        ``balanced=False`` for pairs drawn from all pairs of the network, of which few are links.
        """
        return self.probability_indices(*self._ends(pairs), balanced=balanced)

    def probability_indices(
        self, sources: NDArray[np.int64], targets: NDArray[np.int64], *, balanced: bool = True
    ) -> NDArray[np.float64]:
        return self.probability(self.score_indices(sources, targets), balanced=balanced)

    def probability(
        self, scores: NDArray[np.floating], *, balanced: bool = True
    ) -> NDArray[np.float64]:
        """The probability of a link for each score; it never decreases with the score."""
        probability = sigmoid(np.asarray(scores, dtype=np.float64))
        return probability if balanced else at_density(probability, self.density_)

    def reliability(self) -> ReliabilityCurve:
        """Predicted probability against observed frequency on links held out of training.

        The sample is balanced and the curve cross-fitted. For your own held-out links,
        ``vhe.evaluate(model, test)`` computes the same.
        """
        self._check_fitted()
        saved = self.result_["reliability"]
        return ReliabilityCurve(**{name: np.array(values) for name, values in saved.items()})

    # --- missing links

    def suggest_links(self, vertex_id: Hashable, k: int = 10) -> list[Suggestion]:
        """The likeliest links that a vertex does not have, the likeliest first.

        Their probability is that of a pair drawn from all pairs of the network
        (`predict_proba` with ``balanced=False``).
        """
        self._check_fitted()
        k, network = checked_k(k), self.network_
        vertex = network.index(vertex_id)
        if len(network) <= EXACT_UP_TO:
            rows = self._rows
            scores = self._link_posterior.log_odds_matrix(rows.take(np.array([vertex])), rows)[0]
            linked = network.links[(network.links == vertex).any(axis=1)]
            others = np.setdiff1d(np.arange(len(network)), np.append(linked.ravel(), vertex))
            scores = scores[others]
        else:
            others = self._candidates(vertex, k)
            scores = self.score_indices(np.full(len(others), vertex), others)
        order = np.argsort(-scores, kind="stable")[:k]
        best = others[order]
        probabilities = self.probability(scores[order], balanced=False)
        return [
            Suggestion(network.ids[j], float(p), snippet(network.texts[j]))
            for j, p in zip(best, probabilities, strict=True)
        ]

    def suggest_all(self, k: int = 100, *, duplicates: bool = True) -> pandas.DataFrame:
        """The ``k`` likeliest missing links of the whole network, each pair once.

        Columns: source, target, probability (as in `suggest_links`), duplicate (whether both texts
        are nearly the same), and source_text and target_text, the beginnings of both. In large
        networks an approximate index is searched, which may miss a few of the likeliest.

        Parameters
        ----------
        duplicates
            False leaves out pairs of nearly the same texts
        """
        import pandas

        self._check_fitted()
        k, network = checked_k(k), self.network_
        per_vertex = min(k, max(MOST_CANDIDATES // len(network), LEAST_PARTNERS))
        pairs, balanced = likely_links(self, per_vertex)
        duplicate = text_cosines(self._rows.words, pairs) >= DUPLICATE
        chosen = np.arange(len(pairs)) if duplicates else np.flatnonzero(~duplicate)
        chosen = chosen[:k]
        ids, texts = network.ids, network.texts
        sources, targets = pairs[chosen].T.tolist()
        return pandas.DataFrame(
            {
                "source": [ids[i] for i in sources],
                "target": [ids[j] for j in targets],
                "probability": at_density(balanced[chosen], self.density_),
                "duplicate": duplicate[chosen],
                "source_text": [snippet(texts[i]) for i in sources],
                "target_text": [snippet(texts[j]) for j in targets],
            }
        )

    def suggest_each(self, k: int = 10) -> pandas.DataFrame:
        """The ``k`` likeliest missing links of every vertex, as in `suggest_links`.

        Columns: source, target, probability, and text, the beginning of the target's. In large
        networks an approximate index is searched, which may miss a few of the likeliest.
        """
        import pandas

        self._check_fitted()
        network = self.network_
        partner, score = partners(self._link_posterior, self._rows, checked_k(k))
        source, position = np.nonzero(partner >= 0)
        target = partner[source, position]
        return pandas.DataFrame(
            {
                "source": [network.ids[i] for i in source],
                "target": [network.ids[j] for j in target],
                "probability": self.probability(score[source, position], balanced=False),
                "text": [snippet(network.texts[j]) for j in target],
            }
        )

    # --- explanations

    def explain(self, a: Hashable, b: Hashable) -> Explanation:
        """The words of both texts that raise the score of a pair, and the structure's share."""
        self._check_fitted()
        network, corpus = self.network_, self._corpus
        ends = network.index(a), network.index(b)
        first, second = (
            TextReading(
                v, network.texts[v], corpus.tokens[corpus.offsets[v] : corpus.offsets[v + 1]]
            )
            for v in ends
        )
        vertices, number = np.unique(ends, return_inverse=True)
        rows = self._rows_of(vertices)
        rows_a, rows_b = rows.take(number[:1]), rows.take(number[1:])
        return self._explain(first, second, rows_a, rows_b)

    def explain_texts(self, a: str, b: str) -> Explanation:
        """The same for two texts that are not vertices."""
        corpus = self._encode(text_list([a, b]))
        tokens = np.split(corpus.tokens, corpus.offsets[1:2])
        rows = self._text_rows(corpus, np.zeros((0, 2), dtype=np.int64))
        readings = TextReading(None, a, tokens[0]), TextReading(None, b, tokens[1])
        return self._explain(*readings, rows.take(np.array([0])), rows.take(np.array([1])))

    def _explain(
        self, a: TextReading, b: TextReading, rows_a: VertexRows, rows_b: VertexRows
    ) -> Explanation:
        source, target, own, cosine = self._attribute(a, b)
        posterior = self._link_posterior
        parts = posterior.parts(rows_a, rows_b)
        weights, offset = posterior.kind(rows_a, rows_b)
        embedding = parts.pop("embedding", 0.0)
        # asinh(c / KNEE) in proportion to the parts of the cosine c; 1 / KNEE is the limit at 0
        rate = np.arcsinh(cosine / KNEE) / cosine if cosine else 1 / KNEE
        scale = float(weights["embedding"] * rate)
        own = {name: scale * value for name, value in own.items()}
        parts = own | {"links": embedding - sum(own.values())} | parts
        score = np.array([offset + sum(parts.values())])
        balanced, sparse = (float(self.probability(score, balanced=b)[0]) for b in (True, False))
        return Explanation(source, target, balanced, sparse, float(score[0]), parts)

    # --- new texts

    def embed_texts(
        self,
        texts: Iterable[str],
        edges: Iterable[tuple[int, Hashable]] | None = None,
        *,
        method: InductiveMethod | None = None,
        vectors: Any | None = None,
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The embedding of texts that are not vertices, (k, d), and its standard deviation.

        Parameters
        ----------
        edges
            known links, as (position in ``texts``, id of a vertex)
        method
            as in `add_vertices`
        vectors
            (k, columns) for a model that was fitted on given vectors
        """
        texts = text_list(texts)
        corpus, links = self._encode(texts, vectors), self._text_links(texts, edges)
        found = self._finite_embedding(corpus, links, method)
        return found.mean, standard_deviation(found)

    def _finite_embedding(
        self, texts: Corpus, links: NDArray[np.int64], method: InductiveMethod | None = None
    ) -> Inductive:
        """As `_embed_new`; what a damaged model folder makes of a text may be too large."""
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

    # --- to other libraries

    def to_networkx(self) -> networkx.Graph:
        """The network as `TextNetwork.to_networkx` returns it, with a vertex attribute
        ``embedding``."""
        self._check_fitted()
        graph = self.network_.to_networkx()
        for vertex, row in zip(self.network_.ids, self.embedding_, strict=True):
            graph.nodes[vertex]["embedding"] = row
        return graph

    def to_pandas(self) -> tuple[pandas.DataFrame, pandas.DataFrame]:
        """Vertices and edges as tables; the columns ``embedding`` and ``std`` hold arrays."""
        self._check_fitted()
        vertices, edges = self.network_.to_pandas()
        vertices["embedding"], vertices["std"] = list(self.embedding_), list(self.embedding_std_)
        return vertices, edges

    def to_pyg(self) -> Data:
        """PyTorch Geometric's `Data` with the embedding as ``x``, its standard deviation as
        ``x_std``."""
        import torch

        self._check_fitted()
        data = self.network_.to_pyg()
        data.x = torch.from_numpy(self.embedding_.copy())
        data.x_std = torch.from_numpy(self.embedding_std_.copy())
        return data

    def _ends(self, pairs: Pairs) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        self._check_fitted()
        sources, targets = columns(pairs)
        return self.network_.indices(sources), self.network_.indices(targets)

    def _check_fitted(self) -> None:
        if not hasattr(self, "network_"):
            raise VHEError(f"this {type(self).__name__} is not fitted: call fit(network) first")


def density(network: TextNetwork) -> float:
    """The share of all pairs that are linked, inside (0, 1)."""
    n = len(network)
    return float(np.clip(2 * len(network.links) / max(n * (n - 1), 1), 1e-9, 1 - 1e-6))


def standard_deviation(found: Inductive) -> NDArray[np.float32]:
    """(k, 1) for one variance per vertex, otherwise (k, d)."""
    std: NDArray[np.float32] = np.sqrt(found.variance)
    return std[:, None] if std.ndim == 1 else std


def snippet(text: str) -> str:
    """The beginning of a text, in one line."""
    first = " ".join(text.split())
    return first if len(first) <= SNIPPET else first[: SNIPPET - 1].rstrip() + "…"
