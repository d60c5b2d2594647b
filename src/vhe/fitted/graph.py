"""A fitted graph model: posterior means, new vertices and explanations."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vhe.data.text import Corpus
from vhe.errors import VHEError
from vhe.fitted.base import TRANSFORM, Arrays, FittedModel, checked, cosine
from vhe.graph import attribution, inductive
from vhe.graph.model import GraphModel, TextNeighbours
from vhe.predict.explain import Side, make_side
from vhe.predict.new_texts import InductiveMethod
from vhe.predict.pair_features import (
    LINK_STRENGTHS,
    Rows,
)
from vhe.predict.predictor import TextReading
from vhe.runtime.progress import Progress
from vhe.storage.model_folder import read_model
from vhe.text.encoders import TextEncoder
from vhe.text.occlusion import occlusion_effects
from vhe.text.vertex_vectors import AnyEncoder, encoder_of

logger = logging.getLogger(__name__)

Effects = NDArray[np.float64] | None  # of the words of a text, where the encoder is available


class FittedGraph(FittedModel):
    """A fitted graph model."""

    model_name = "graph"
    verbose = False
    encoder: AnyEncoder | None = None
    encoder_device = "auto"
    encoder_batch = 32
    _graph: GraphModel

    @property
    def _embedding_dim(self) -> int:
        return int(self._graph.words.shape[1] + self._graph.vectors.shape[1])

    def _use(self, model: GraphModel) -> None:
        self._graph = model
        self.embedding_ = model.mean
        self.embedding_std_ = np.sqrt(model.variance)[:, None]
        self.__dict__.pop("_directions", None)

    @cached_property
    def _directions(self) -> NDArray[np.float32]:
        return inductive.text_directions(self._graph, self._corpus, self._graph.vectors)

    @cached_property
    def _encoder(self) -> TextEncoder:
        """The encoder of the fit, for new texts."""
        source = self._vector_source
        assert source is not None
        assert source.identity is not None
        with Progress("loading the encoder", show=self.verbose):
            return encoder_of(
                source.identity, self.encoder, self.encoder_device, self.encoder_batch
            )

    def _encode(self, texts: Sequence[str], vectors: Any | None = None) -> Corpus:
        corpus = super()._encode(texts, vectors)
        codes = np.zeros((len(corpus), 0), dtype=np.float32)
        if self._vector_source is not None:
            codes = self._vector_source.new_codes(texts, vectors, lambda: self._encoder)
        return ReadTexts(**vars(corpus), vectors=codes)

    def _embed_new(
        self, texts: Corpus, links: NDArray[np.int64], method: InductiveMethod | None
    ) -> inductive.InductiveEmbedding:
        if method not in (None, "fast"):
            raise VHEError(
                f"VHE embeds new vertices in closed form: use method 'fast', not {method!r}"
            )
        degrees, vectors = self.network_.degrees, _vectors(texts)
        return inductive.embed_new(self._graph, self._directions, degrees, texts, vectors, links)

    def _new_scales(self, texts: Corpus, links: NDArray[np.int64], mean: Rows) -> dict[str, Rows]:
        degrees, scales = self.network_.degrees, {"embedding": mean}
        for name, rows in self._scales.items():
            model = replace(self._graph, mean=rows, link_strength=LINK_STRENGTHS[name])
            found = inductive.embed_new(
                model,
                self._directions,
                degrees,
                texts,
                _vectors(texts),
                links,
                text_knn_weight=0.0,
            )
            scales[name] = found.mean
        return scales

    def _extend(
        self, texts: Corpus, found: inductive.InductiveEmbedding, scales: dict[str, Rows]
    ) -> None:
        vectors, directions = _vectors(texts), self.__dict__.get("_directions")
        self._use(inductive.extended(self._graph, found, vectors))
        if directions is not None:
            added = inductive.text_directions(self._graph, texts, vectors)
            self._directions = np.concatenate([directions, added])
        self._scales = {
            name: np.concatenate([table, scales[name]]) for name, table in self._scales.items()
        }

    def _keep(self, kept: NDArray[np.int64]) -> None:
        self._use(inductive.reduced(self._graph, kept))

    def _attribute(
        self, a: TextReading, b: TextReading
    ) -> tuple[Side, Side, dict[str, float], float]:
        graph, ends = self._graph, (self._code_parts(a), self._code_parts(b))
        found = attribution.attribute(graph.words, graph.centre, graph.encoder_weight, ends)
        own = {"texts": found.text_score}
        effects: tuple[Effects, Effects] = None, None
        if self._vector_source is not None:
            own[self._vector_source.name] = found.vector_score
            if self._vector_source.identity is not None:
                effects = self._occluded((a.text, b.text), ends)
        vocabulary = frozenset(self.vocabulary_)
        return (
            make_side(self._id(a), a.text, vocabulary, found.source, encoder=effects[0]),
            make_side(self._id(b), b.text, vocabulary, found.target, encoder=effects[1]),
            own,
            cosine(ends[0].code, ends[1].code),
        )

    def _code_parts(self, end: TextReading) -> attribution.CodeParts:
        graph, v = self._graph, end.vertex
        if v is not None:
            share = float(graph.own_share[v])
            return attribution.CodeParts(end.tokens, graph.vectors[v], graph.mean[v], share)
        read = self._encode([end.text])
        new = self._embed_new(read, np.zeros((0, 2), np.int64), None)
        share = float(new.precision[0] / new.diagonal[0])
        return attribution.CodeParts(end.tokens, _vectors(read)[0], new.mean[0], share)

    def _occluded(
        self, texts: tuple[str, str], ends: tuple[attribution.CodeParts, attribution.CodeParts]
    ) -> tuple[Effects, Effects]:
        """Effects of the words of two texts on the encoder's part; None without the encoder."""
        source, d = self._vector_source, self._graph.words.shape[1]
        assert source is not None

        done = count(1)

        def effect(end: int, codes: Rows) -> NDArray[np.float64]:
            rate = attribution.rates(ends, ends[end], self._graph.encoder_weight)[1]
            return rate * (codes @ ends[1 - end].code[d:]).astype(np.float64)

        def encode(variants: list[str]) -> Rows:
            codes = source.transform(encoder.encode(variants, cache=False))
            progress.update(next(done))
            return codes

        try:
            encoder = self._encoder
            with Progress("loading the encoder", show=self.verbose):
                encoder.load()
        except VHEError as error:
            logger.warning(f"words are weighted without the encoder: {error}")
            return None, None
        with Progress("occluding words", len(texts), show=self.verbose) as progress:
            return occlusion_effects(texts, encode, effect)

    def _state(self) -> tuple[Arrays, dict[str, float]]:
        graph = self._graph
        names = ("words", "centre", "vectors", "mean", "variance", "precision", "diagonal")
        arrays = {name: getattr(graph, name) for name in names}
        if self._vector_source is not None:
            transform = self._vector_source.transform.arrays().items()
            arrays |= {f"{TRANSFORM}{name}": values for name, values in transform}
        arrays |= {f"neighbours.{k}": v for k, v in vars(graph.neighbours).items()}
        numbers = ("link_strength", "text_knn_weight", "mean_log_length", "encoder_weight")
        return arrays, {name: getattr(graph, name) for name in numbers}

    def _load_state(self, arrays: Arrays, numbers: dict[str, float]) -> None:
        neighbours = TextNeighbours(
            *(arrays.pop(f"neighbours.{f.name}") for f in fields(TextNeighbours))
        )
        graph = GraphModel(**arrays, **numbers, neighbours=neighbours)  # type: ignore[arg-type]
        n, (words, d), source = len(graph.mean), graph.words.shape, self._vector_source
        p = 0 if source is None else source.transform.components.shape[1]
        consistent = (
            words == len(self.vocabulary_) + 1
            and d == (self._config.latent_dim if graph.encoder_weight < 1 else 0)
            and graph.centre.shape == (d,)
            and graph.vectors.shape == (n, p)
            and (graph.encoder_weight > 0 if p else graph.encoder_weight == 0)
            and graph.variance.shape == graph.precision.shape == graph.diagonal.shape == (n,)
            and neighbours.pairs.shape == (len(neighbours.cosines), 2)
        )
        if not consistent:
            raise ValueError("the tables do not match each other")
        self._use(graph)


def open_model(folder: str | Path) -> FittedGraph | None:
    """Open the model folder of a graph model for questions; None for a pair model.

    Of a large one, each answer reads what it needs (`vhe.storage.model_folder`).
    """
    saved = read_model(Path(folder), partly=True)
    return checked(FittedGraph, saved, Path(folder)) if saved.model == "graph" else None


@dataclass(frozen=True)
class ReadTexts(Corpus):
    """New texts as tokens, with the codes of their vectors."""

    vectors: Rows = field(kw_only=True)  # (k, p)


def _vectors(texts: Corpus) -> Rows:
    assert isinstance(texts, ReadTexts)
    return texts.vectors
