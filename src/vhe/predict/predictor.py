"""What a fitted model answers: embeddings, probabilities, missing links, the words behind them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from vhe.config import VHEConfig
from vhe.data.checks import is_integer
from vhe.data.network import TextNetwork
from vhe.data.sampling import LinkSet
from vhe.data.text import Corpus
from vhe.errors import VHEError
from vhe.pair.embedding import GlobalEmbedding, context_pairs, global_embedding
from vhe.pair.inductive import (
    AT_ONCE,
    CONTEXTS,
    InductiveEmbedding,
    InductiveMethod,
    TrainingGraph,
    place,
)
from vhe.pair.model import PairVAE
from vhe.predict import explain as words_behind
from vhe.predict.calibration import ReliabilityCurve
from vhe.predict.degree import Calibration, log_degree
from vhe.predict.explain import Explanation, Reading
from vhe.predict.neighbours import nearest, partners
from vhe.predict.scoring import CosineMethod
from vhe.predict.suggest import at_density
from vhe.runtime.progress import Progress

if TYPE_CHECKING:
    import networkx
    import pandas
    from torch_geometric.data import Data

SNIPPET = 80  # characters of a text that a suggestion shows

Pair = tuple[Hashable, Hashable]


@dataclass(frozen=True)
class Suggestion:
    """A link that is not there but likely."""

    id: Hashable
    probability: float
    text: str


class Predictor(CosineMethod):
    """The questions that can be asked of a fitted model; `vhe.estimators.VHE` is one.

    Nothing here changes the model.
    """

    verbose: bool
    network_: TextNetwork
    embedding_std_: NDArray[np.float32]
    result_: dict[str, Any]
    seed_: int
    _config: VHEConfig
    _corpus: Corpus
    _model: PairVAE
    _residents: TrainingGraph
    _calibration: Calibration

    def embed(
        self,
        ids: Iterable[Hashable] | None = None,
        *,
        return_std: bool = False,
        contexts: int | Literal["all"] | None = None,
    ) -> Any:
        """The embedding of some vertices, or of all: (k, d), and its deviation if asked for.

        ``contexts`` averages the local embeddings over that many other vertices, as the paper
        does, "all" over all of them; None gives the embedding that was made when the model was
        fitted.
        """
        self._check_fitted()
        mean, std = self.embedding_, self.embedding_std_
        if contexts is not None:
            if contexts != "all" and not (is_integer(contexts) and contexts >= 1):
                raise VHEError(
                    f"contexts is {contexts!r}, but it has to be a whole number from 1 on, or all"
                )
            embedding = self._global(None if contexts == "all" else contexts)
            mean, std = embedding.mean, np.sqrt(embedding.variance)
        if ids is not None:
            rows = self.network_.indices(list(ids))
            mean, std = mean[rows], std[rows]
        return (mean, std) if return_std else mean

    def score(self, pairs: Iterable[Pair]) -> NDArray[np.float32]:
        """The cosine of the embeddings of each pair of ids: (m,).

        Where held-out links ask for it, the degree_weight of both ends (`degree_bias_`) is added.
        """
        return self.score_indices(*self._ends(pairs))

    def score_indices(self, sources: NDArray[Any], targets: NDArray[Any]) -> NDArray[np.float32]:
        """The scores of pairs of vertex numbers: (m,)."""
        degree_weight = self.degree_bias_
        return (
            super().score_indices(sources, targets)
            + degree_weight[sources]
            + degree_weight[targets]
        )

    def score_matrix(self, sources: NDArray[Any], targets: NDArray[Any]) -> NDArray[np.float32]:
        """The scores of each source with each target: (len(sources), len(targets))."""
        scores = super().score_matrix(sources, targets)
        if self._calibration.degree_weight:
            degree_weight = self.degree_bias_
            scores += degree_weight[sources, None]
            scores += degree_weight[targets]
        return scores

    @property
    def degree_bias_(self) -> NDArray[np.float32]:
        """What each vertex adds to the cosine in the score of its pairs: (n,).

        A vertex that was added later is taken for one of usual degree_weight.
        """
        network, added = self.network_, self.result_.get("added", 0)
        found = np.zeros(len(network), dtype=np.float32)
        if self._calibration.degree_weight:
            there = len(network) - added
            links = network.links[(network.links < there).all(axis=1)]
            degree = np.bincount(links.ravel(), minlength=there)
            found[:there] = self._calibration.degree_weight * log_degree(degree)
        return found

    def predict_proba(self, pairs: Iterable[Pair], *, balanced: bool = True) -> NDArray[np.float64]:
        """The probability of a link for each pair of ids: (m,).

        It is calibrated on held-out links, for as many links as non-links; with
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
        """The probability of a link for each score; it grows with the score."""
        even = self._calibration.probability(scores)
        return even if balanced else at_density(even, density(self.network_))

    def reliability(self) -> ReliabilityCurve:
        """How far the probabilities could be trusted on links that were held out of training.

        As many links as non-links, each half judged by a calibration on the other half. For links
        of your own that were held out, ``vhe.evaluate(model, test)`` has the same.
        """
        self._check_fitted()
        if "reliability" not in self.result_:
            raise VHEError("this model was saved without its reliability: fit it again")
        kept = self.result_["reliability"]
        return ReliabilityCurve(**{name: np.array(values) for name, values in kept.items()})

    def nearest(self, vector_or_id: Any, k: int = 10) -> list[tuple[Hashable, float]]:
        """The vertices of the largest cosine with a vector (d,), or with another vertex.

        A vertex is not among its own; all others are there, linked to it or not.
        """
        self._check_fitted()
        k, network = _checked_k(k), self.network_
        size = self.embedding_.shape[1]
        if isinstance(vector_or_id, np.ndarray):
            if vector_or_id.shape != (size,):
                raise VHEError(f"the vector has the shape {vector_or_id.shape}, not ({size},)")
            found = zip(*nearest(self.embedding_, vector_or_id, k), strict=True)
            return [(network.ids[j], float(c)) for j, c in found]
        vertex = network.index(vector_or_id)
        found = zip(*nearest(self.embedding_, self.embedding_[vertex], k + 1), strict=True)
        return [(network.ids[j], float(c)) for j, c in found if j != vertex][:k]

    def suggest_links(self, vertex_id: Hashable, k: int = 10) -> list[Suggestion]:
        """The likeliest links of a vertex that are not there yet, the likeliest first.

        Their probability is that of a pair drawn from all pairs of the network, of which few are
        links (`predict_proba` with ``balanced=False``).
        """
        self._check_fitted()
        k, network = _checked_k(k), self.network_
        vertex = network.index(vertex_id)
        scores = self.score_matrix(np.array([vertex]), np.arange(len(network)))[0]
        taken = network.links[(network.links == vertex).any(axis=1)]
        scores[np.append(taken.ravel(), vertex)] = -np.inf
        best = np.argsort(-scores, kind="stable")[:k]
        best = best[np.isfinite(scores[best])]
        chances = self.probability(scores[best], balanced=False)
        return [
            Suggestion(network.ids[j], float(p), snippet(network.texts[j]))
            for j, p in zip(best, chances, strict=True)
        ]

    def suggest_all(self, k: int = 10) -> pandas.DataFrame:
        """The ``k`` likeliest missing links of every vertex, as `suggest_links` has them.

        Columns source, target, probability and text, the beginning of the target's. Many vertices
        are searched with an index, which may miss a few of the likeliest.
        """
        import pandas

        self._check_fitted()
        network = self.network_
        k = _checked_k(k)
        partner, score = partners(self.embedding_, network.links, k, self.degree_bias_)
        source, place = np.nonzero(partner >= 0)
        target = partner[source, place]
        return pandas.DataFrame(
            {
                "source": [network.ids[i] for i in source],
                "target": [network.ids[j] for j in target],
                "probability": self.probability(score[source, place], balanced=False),
                "text": [snippet(network.texts[j]) for j in target],
            }
        )

    def explain(self, a: Hashable, b: Hashable) -> Explanation:
        """The words of both texts that speak for a link, and what the structure adds."""
        self._check_fitted()
        network = self.network_
        corpus, ends = self._corpus, (network.index(a), network.index(b))
        return self._explain(
            *(
                Reading(
                    network.ids[v],
                    network.texts[v],
                    corpus.tokens[corpus.offsets[v] : corpus.offsets[v + 1]],
                    self.embedding_[v],
                    self._residents.own_share(v),
                )
                for v in ends
            ),
            degree_weight=float(self.degree_bias_[list(ends)].sum()),
        )

    def explain_texts(self, a: str, b: str) -> Explanation:
        """The same for two texts that are no vertices."""
        corpus, placed = self._place([a, b], np.zeros((0, 2), dtype=np.int64), None)
        tokens = np.split(corpus.tokens, corpus.offsets[1:2])
        readings = zip((a, b), tokens, placed.mean, placed.own, strict=True)
        return self._explain(*(Reading(None, t, w, z, float(o)) for t, w, z, o in readings))

    def _explain(self, a: Reading, b: Reading, *, degree_weight: float = 0.0) -> Explanation:
        joint = self._config.structure == "joint"
        source, target, text, structure = words_behind.explain(
            self._model,
            frozenset(self._corpus.vocabulary),
            self._residents.center if joint else None,
            a,
            b,
        )
        structure += degree_weight
        score = np.array([text + structure], dtype=np.float32)
        even, sparse = (float(self.probability(score, balanced=b)[0]) for b in (True, False))
        return Explanation(source, target, even, sparse, text + structure, text, structure)

    # --- texts that come later

    def embed_texts(
        self,
        texts: Sequence[str],
        edges: Iterable[tuple[int, Hashable]] | None = None,
        *,
        method: InductiveMethod | None = None,
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The embedding of texts that are no vertices, and its deviation: (k, d) each.

        Parameters
        ----------
        edges
            links that are known, as (place in ``texts``, id of a vertex)
        method
            as in `add_vertices`
        """
        self._check_fitted()
        known = list(edges or ())
        for text, _ in known:
            if not (is_integer(text) and 0 <= text < len(texts)):
                raise VHEError(f"an edge names text {text!r}, but there are {len(texts)} texts")
        ends = self.network_.indices([vertex for _, vertex in known])
        news = np.array([text for text, _ in known], dtype=np.int64) + len(self.network_)
        _, placed = self._place(texts, np.column_stack([news, ends]), method)
        return placed.mean, np.sqrt(placed.variance)

    def _place(
        self, texts: Sequence[str], links: NDArray[np.int64], method: InductiveMethod | None
    ) -> tuple[Corpus, InductiveEmbedding]:
        """New texts as tokens, and where they stand."""
        self._check_fitted()
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise VHEError("texts has to be a list of strings")
        if method not in (None, "fast", "paper"):
            raise VHEError(f"there is no method {method!r}: use fast or paper")
        corpus = self._residents.encode(texts)
        way = method or ("paper" if self._config.structure == "learned" else "fast")
        show = self.verbose and len(texts) > AT_ONCE
        with Progress("placing", len(texts), show=show) as progress:
            placed = place(
                self._residents,
                corpus,
                links,
                way=way,
                contexts=min(self._config.contexts, CONTEXTS),
                seed=self.seed_,
                progress=progress.update,
            )
        return corpus, placed

    # --- to other libraries

    def to_networkx(self) -> networkx.Graph:
        """The network as `TextNetwork.to_networkx` has it, each vertex with its ``embedding``."""
        self._check_fitted()
        graph = self.network_.to_networkx()
        for vertex, row in zip(self.network_.ids, self.embedding_, strict=True):
            graph.nodes[vertex]["embedding"] = row
        return graph

    def to_pandas(self) -> tuple[pandas.DataFrame, pandas.DataFrame]:
        """Vertices and edges as tables; the columns ``embedding`` and ``std`` hold (d,) arrays."""
        self._check_fitted()
        vertices, edges = self.network_.to_pandas()
        vertices["embedding"], vertices["std"] = list(self.embedding_), list(self.embedding_std_)
        return vertices, edges

    def to_pyg(self) -> Data:
        """PyTorch Geometric's `Data` with the embedding as ``x`` and its deviation as ``x_std``."""
        import torch

        self._check_fitted()
        data = self.network_.to_pyg()
        data.x = torch.from_numpy(self.embedding_.copy())
        data.x_std = torch.from_numpy(self.embedding_std_.copy())
        return data

    def _global(self, contexts: int | None) -> GlobalEmbedding:
        network = self.network_
        total = sum(1 for _ in context_pairs(len(network), contexts, self.seed_))
        with Progress("embedding", total, show=self.verbose and total > 1) as progress:
            return global_embedding(
                self._model,
                self._corpus,
                LinkSet(network.links, len(network)),
                contexts=contexts,
                seed=self.seed_,
                progress=progress.update,
            )

    def _ends(self, pairs: Iterable[Pair]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        self._check_fitted()
        sources, targets = columns(pairs)
        return self.network_.indices(sources), self.network_.indices(targets)

    def _check_fitted(self) -> None:
        if not hasattr(self, "network_"):
            raise VHEError("this VHE is not fitted yet: call fit(network) first")


def density(network: TextNetwork) -> float:
    """The share of all pairs that are linked, inside (0, 1)."""
    n = len(network)
    return float(np.clip(2 * len(network.links) / max(n * (n - 1), 1), 1e-9, 1 - 1e-6))


def columns(pairs: Iterable[Pair]) -> tuple[list[Hashable], list[Hashable]]:
    """The sources and the targets of pairs of ids."""
    try:
        listed = list(pairs)
        if any(isinstance(pair, str) for pair in listed):
            raise TypeError
        return [a for a, _ in listed], [b for _, b in listed]
    except (TypeError, ValueError):
        raise VHEError("pairs has to be a list of pairs of ids, as [('a', 'b')]") from None


def _checked_k(k: object) -> int:
    if not (is_integer(k) and k >= 0):  # type: ignore[operator]
        raise VHEError(f"k is {k!r}, but it has to be a whole number of at least 0")
    return int(k)  # type: ignore[call-overload]


def snippet(text: str) -> str:
    """The beginning of a text, in one line."""
    first = " ".join(text.split())
    return first if len(first) <= SNIPPET else first[: SNIPPET - 1].rstrip() + "…"
