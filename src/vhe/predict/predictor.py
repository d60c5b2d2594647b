"""The queries of a fitted model: embeddings, probabilities, missing links, explanations."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vhe.data.network import TextNetwork
from vhe.data.text import Corpus
from vhe.errors import VHEError
from vhe.predict.arguments import Pairs, checked_k, columns
from vhe.predict.calibration import ReliabilityCurve, sigmoid
from vhe.predict.candidates import DUPLICATE, likely_links, text_cosines
from vhe.predict.explain import Explanation, Side
from vhe.predict.link_posterior import LinkPosterior, at_density
from vhe.predict.pair_features import KNEE, VertexRows
from vhe.predict.suggest import EXACT_UP_TO, nearest, partners
from vhe.text.vertex_vectors import VectorSource

if TYPE_CHECKING:
    import networkx
    import pandas
    from torch_geometric.data import Data

__all__ = ["Suggestion"]

SNIPPET = 80  # characters of a text that a suggestion shows
MOST_CANDIDATES = 4_000_000  # pairs that are compared for the best links of the whole network
LEAST_PARTNERS = 10  # of each vertex among them


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


class Predictor:
    """The queries of a fitted model; none of them changes it.

    A subclass sets the attributes below and defines `_attribute`.
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
        """The features of all vertices for the link posterior."""

    @abstractmethod
    def _rows_of(self, vertices: NDArray[np.int64]) -> VertexRows:
        """The features of some vertices (distinct, ascending) for the link posterior."""

    @abstractmethod
    def _candidates(self, vertex: int, k: int) -> NDArray[np.int64]:
        """Vertices that may be among the ``k`` likeliest new partners of a vertex, ascending."""

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
        """Return a copy of the embedding of one vertex, of several or of all.

        Parameters
        ----------
        ids : id, or list or array of ids, optional
            default: all vertices
        return_std : bool
            also return the standard deviation

        Returns
        -------
        mean : (d,) for one id, otherwise (k, d)
        std : (d,) or (k, d), or (1,) or (k, 1) where it is the same in every dimension
            only with ``return_std``
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
            single = ids in self.network_  # a tuple may be an id
        return self.network_.index(ids) if single else self.network_.indices(list(ids))

    def nearest(self, vector_or_id: Any, k: int = 10) -> list[tuple[Hashable, float]]:
        """Return the vertices with the largest cosine to a vector or to another vertex.

        Linked vertices are included, the vertex itself is not.

        Parameters
        ----------
        vector_or_id : (d,) array, or id
        k : int
            number of vertices

        Returns
        -------
        list of (id, cosine)
            the largest cosine first
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
        """Return the score of each pair: the log odds of a link in a balanced sample.

        Parameters
        ----------
        pairs : list or array of pairs of ids, or table with the columns source and target

        Returns
        -------
        (m,) array
        """
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

    def predict_proba(self, pairs: Pairs, *, balanced: bool = True) -> NDArray[np.float64]:
        """Return the probability of a link for each pair, calibrated on held-out links.

        Parameters
        ----------
        pairs : list or array of pairs of ids, or table with the columns source and target
        balanced : bool
            the probability in a balanced sample of links and non-links; False: among all pairs of
            the network, of which few are links

        Returns
        -------
        (m,) array
        """
        return self.probability_indices(*self._ends(pairs), balanced=balanced)

    def probability_indices(
        self, sources: NDArray[np.int64], targets: NDArray[np.int64], *, balanced: bool = True
    ) -> NDArray[np.float64]:
        """Return `predict_proba` of pairs of vertex numbers: (m,)."""
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
        """Return the likeliest missing links of a vertex.

        Parameters
        ----------
        vertex_id : hashable
        k : int
            number of links

        Returns
        -------
        list of Suggestion
            The likeliest first. The probability is that among all pairs of the network
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
        """Return the likeliest missing links of the whole network, each pair once.

        In large networks an approximate index is searched, which may miss a few of the likeliest.

        Parameters
        ----------
        k : int
            number of links
        duplicates : bool
            False leaves out pairs of nearly the same texts

        Returns
        -------
        DataFrame
            with the columns source, target, probability (as in `suggest_links`), duplicate
            (whether both texts are nearly the same), and source_text and target_text, the
            beginnings of both; the likeliest first
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
        """Return the likeliest missing links of every vertex, as in `suggest_links`.

        In large networks an approximate index is searched, which may miss a few of the likeliest.

        Parameters
        ----------
        k : int
            number of links per vertex

        Returns
        -------
        DataFrame
            with the columns source, target, probability, and text, the beginning of the target's
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
        """Explain the score of a pair of vertices by the words of both texts and by the links.

        Parameters
        ----------
        a, b : ids

        Returns
        -------
        Explanation
        """
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


def snippet(text: str) -> str:
    """The beginning of a text, in one line."""
    first = " ".join(text.split())
    return first if len(first) <= SNIPPET else first[: SNIPPET - 1].rstrip() + "…"
