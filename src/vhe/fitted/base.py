"""The common base of both kinds of fitted models: new vertices, saving, loading."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from vhe.data.checks import edge_indices
from vhe.data.network import TextNetwork
from vhe.data.text import Corpus
from vhe.errors import VHEError
from vhe.predict.arguments import Pairs, Vertices, columns, new_vertices
from vhe.predict.link_posterior import LinkPosterior
from vhe.predict.new_texts import InductiveMethod, InductivePredictor
from vhe.predict.pair_features import (
    GROUPS,
    LINK_STRENGTHS,
    Rows,
    VertexRows,
    fold_in,
    neighbour_weights,
    vertex_rows,
)
from vhe.predict.predictor import TextReading
from vhe.predict.scan import DAMAGED, Tables, candidates
from vhe.runtime.arrays import unit_rows
from vhe.runtime.messages import shown
from vhe.storage.model_folder import SavedModel, incomplete, write_model
from vhe.text.lsa import tfidf_rows
from vhe.text.vector_codes import VectorCodes
from vhe.text.vertex_vectors import VectorSource, aligned

if TYPE_CHECKING:
    from vhe.web.notebook import RunningExplorer

TRANSFORM = "vector_codes."  # arrays of the transformation of vectors in a model folder

FEW = 8  # features are built for single vertices if these are fewer than 1 in 8 of all

Arrays = dict[str, NDArray[Any]]
Model = TypeVar("Model", bound="FittedModel")


class FittedModel(InductivePredictor):
    """A fitted model of either kind."""

    model_name: ClassVar[str]
    history_: list[dict[str, float]]
    seed_: int
    _idf: Rows  # (V,)
    _structure: tuple[Rows, Rows]  # factors of the adjacency matrix and their signs
    _scales: dict[str, Rows]  # embeddings at other link strengths that the link posterior uses

    def __dir__(self) -> list[str]:
        """List the attributes without evaluating them.

        The method of scikit-learn evaluates every attribute, also those that are computed on first
        use, such as an encoder that must be loaded.
        """
        return list(object.__dir__(self))

    # --- new vertices

    @property
    def takes_vectors(self) -> bool:
        """Whether the model was fitted on given vectors, and needs those of new vertices."""
        return self._vector_source is not None and self._vector_source.identity is None

    @property
    def has_encoder(self) -> bool:
        """Whether the model has a text encoder, which also reads words outside the vocabulary."""
        return self._vector_source is not None and self._vector_source.identity is not None

    def add_vertices(
        self,
        texts: Vertices,
        edges: Pairs = (),
        labels: Mapping[Hashable, Hashable | None] | None = None,
        *,
        method: InductiveMethod | None = None,
        vectors: Any | None = None,
    ) -> Self:
        """Add vertices that were not part of the fit, without retraining.

        Parameters
        ----------
        texts
            the text of each new id: a dict, a list of pairs (id, text), or a table with the
            columns ``id``, ``text`` and, optionally, ``label``
        edges
            known links, each with at least one new id, as pairs of ids or as a table with the
            columns ``source`` and ``target``
        labels
            the label of each new id; default: those of the table
        method
            for `PairVHE`: "paper" maximises the ELBO over the structure embedding h*, "fast"
            averages those of linked vertices and nearest texts. `VHE` has "fast" only: the
            posterior given all other codes. Default: "fast"
        vectors
            for a model that was fitted on given vectors: those of the new vertices, by id or as an
            array in their order
        """
        self._check_fitted()
        network = self.network_
        texts, own_labels = new_vertices(texts)
        existing = set(network.ids)
        for vertex in texts:
            if vertex in existing:
                raise VHEError(f"duplicate id {vertex!r}: give new vertices new ids")
        ids = [*network.ids, *texts]
        rows = edge_indices(ids, *columns(edges), "edge {}".format)
        old = np.flatnonzero((rows < len(network)).all(axis=1))
        if len(old):
            raise VHEError(
                f"edge {old[0]} links two vertices of the fitted network: fit again to use it"
            )
        new_labels = None
        given = own_labels if labels is None else labels
        if network.labels is not None or given is not None:
            given = given or {}
            if unknown := [vertex for vertex in given if vertex not in texts]:
                raise VHEError(f"labels: {shown(unknown[0])} is not one of the new vertices")
            known = network.labels or [None] * len(network)
            new_labels = [*known, *(given.get(vertex) for vertex in texts)]
        grown = TextNetwork(
            ids,
            [*network.texts, *texts.values()],
            np.concatenate([network.edges, rows]),
            new_labels,
            directed=network.directed,
            name=network.name,
            notes=network.notes,
            edge_weights=_with_ones(network.edge_weights, len(rows)),
        )
        corpus = self._encode(list(texts.values()), aligned(vectors, list(texts)))
        links = grown.links[(grown.links >= len(network)).any(axis=1)]
        found = self._finite_embedding(corpus, links, method)
        scales = self._new_scales(corpus, links, found.mean)
        factors, signs = self._structure
        added = self._new_rows(corpus, links, scales).structure
        self._extend(corpus, found, scales)
        self._structure = np.concatenate([factors, added]), signs
        self.network_, self._corpus = grown, self._corpus.joined(corpus)
        self.__dict__.pop("_rows", None)
        self.result_ = self.result_ | {"added": self.result_.get("added", 0) + len(texts)}
        return self

    def add_links(self, edges: Pairs) -> Self:
        """Add links between vertices of the network; embeddings stay as they are until a new fit.

        The links are not suggested any more, and count as links in the link posterior.

        Parameters
        ----------
        edges : list or array of pairs of ids, or table with the columns source and target
        """
        self._check_fitted()
        network = self.network_
        new = edge_indices(network.ids, *columns(edges), "edge {}".format)
        self.network_ = network.with_edges(
            np.concatenate([network.edges, new]),
            notes=network.notes,
            edge_weights=_with_ones(network.edge_weights, len(new)),
        )
        self.__dict__.pop("_rows", None)
        return self

    def remove_vertices(self, ids: Iterable[Hashable]) -> Self:
        """Remove vertices and their links, without retraining.

        Parameters
        ----------
        ids : iterable of ids
        """
        self._check_fitted()
        network = self.network_
        kept = np.setdiff1d(np.arange(len(network)), network.indices(ids))
        if not len(kept):
            raise VHEError(f"{network.name}: a network needs at least one vertex")
        self._keep(kept)
        factors, signs = self._structure
        self._structure = factors[kept], signs
        self._scales = {name: rows[kept] for name, rows in self._scales.items()}
        self.network_, self._corpus = network.subnetwork(kept), self._corpus.select(kept)
        self.network_.notes = network.notes
        self.__dict__.pop("_rows", None)
        return self

    @cached_property
    def _rows(self) -> VertexRows:
        """The features of all vertices for the link posterior."""
        scales = {"embedding": self.embedding_} | self._scales
        _check_values(self._corpus, scales.values())
        words, links = tfidf_rows(self._corpus, self._idf), self.network_.links
        table = vertex_rows(scales, words, links, (), self.seed_)
        structure, signs = self._structure
        return replace(table, structure=structure, signs=signs)

    def _rows_of(self, vertices: NDArray[np.int64]) -> VertexRows:
        """Some vertices (distinct, ascending), without the rows of all others if they are few."""
        n, k = len(self.network_), len(vertices)
        if "_rows" in self.__dict__ or FEW * k > n:
            return self._rows.take(vertices)
        links, degrees = self.network_.links, self.network_.degrees
        number = np.full(n, -1, dtype=np.int64)
        number[vertices] = np.arange(k)
        ends = [(number[links[:, end]], links[:, 1 - end]) for end in (0, 1)]
        i, j = np.concatenate([(row[row >= 0], other[row >= 0]) for row, other in ends], axis=1)
        structure, signs = self._structure
        tables = {"embedding": self.embedding_} | self._scales | {"structure": structure}
        own = {name: np.asarray(rows[vertices]) for name, rows in tables.items()}
        texts = self._corpus.select(vertices)
        _check_values(texts, own.values())
        structure = own.pop("structure")
        return VertexRows(
            {name: unit_rows(rows) for name, rows in own.items()},
            tfidf_rows(texts, self._idf),
            degrees[vertices],
            structure,
            signs,
            sparse.csr_array((np.ones(len(i), np.float32), (i, j)), shape=(k, n)),
            neighbour_weights(degrees),
        )

    def _candidates(self, vertex: int, k: int) -> NDArray[np.int64]:
        network, scales = self.network_, {"embedding": self.embedding_} | self._scales
        tables = Tables(scales, self._corpus, self._idf, network.links, network.degrees)
        return candidates(self._link_posterior, tables, vertex, k)

    def _new_rows(
        self, texts: Corpus, links: NDArray[np.int64], scales: dict[str, Rows]
    ) -> VertexRows:
        n, k = len(self.network_), len(texts)
        ends = np.concatenate([links, links[:, ::-1]])
        known = ends[(ends[:, 0] >= n) & (ends[:, 1] < n)]
        ones = np.ones(len(known), dtype=np.float32)
        adjacency = sparse.csr_array((ones, (known[:, 0] - n, known[:, 1])), shape=(k, n))
        return VertexRows(
            {name: unit_rows(rows) for name, rows in scales.items()},
            tfidf_rows(texts, self._idf),
            np.bincount(links.ravel(), minlength=n + k)[n:],
            fold_in(adjacency, *self._structure),
            self._structure[1],
            adjacency,
            neighbour_weights(self.network_.degrees),
        )

    def _new_scales(self, texts: Corpus, links: NDArray[np.int64], mean: Rows) -> dict[str, Rows]:
        return {"embedding": mean}

    def _id(self, end: TextReading) -> Hashable:
        return None if end.vertex is None else self.network_.ids[end.vertex]

    @abstractmethod
    def _extend(self, texts: Corpus, found: Any, scales: dict[str, Rows]) -> None:
        """Append new vertices to the model, ``embedding_``, ``embedding_std_`` and the scales."""

    @abstractmethod
    def _keep(self, kept: NDArray[np.int64]) -> None:
        """Reduce the model, ``embedding_`` and ``embedding_std_`` to some vertices."""

    # --- exploring

    def explore(
        self,
        *,
        state: str | Path | None = None,
        port: int = 0,
        height: int = 760,
        block: bool | None = None,
    ) -> RunningExplorer:
        """Show the explorer in a notebook cell, or open it in a tab of the browser.

        It is that of ``vhe serve``, for the model as it is now, and binds to localhost. Needs the
        extra ``web``.

        Parameters
        ----------
        state
            file for decisions on suggested links, as ``vhe serve --state`` writes it; default:
            decisions cannot be saved
        port
            default: a free one
        height
            of the frame in a notebook, in pixels
        block
            outside of a notebook, whether to wait until Ctrl-C; default: in a script, not at an
            interactive prompt

        Returns
        -------
        RunningExplorer
            with ``url`` and ``close()``
        """
        self._check_fitted()
        # by name: nothing below vhe.web depends on it
        shown: RunningExplorer = import_module("vhe.web.notebook").explore(
            self, state=state, port=port, height=height, block=block
        )
        return shown

    # --- saving and loading

    def save(self, folder: str | Path) -> None:
        """Write the model to a folder; see `load`.

        A model that is already there is replaced in one step.
        """
        self._check_fitted()
        arrays, numbers = self._state()
        saved = SavedModel(
            model=self.model_name,
            config=self._config,
            network=self.network_,
            vocabulary=self.vocabulary_,
            arrays=arrays | self._link_tables(),
            numbers=numbers | self._link_numbers(),
            history=self.history_,
            result=self.result_,
            encoder=None if self._vector_source is None else self._vector_source.identity,
        )
        write_model(Path(folder), saved)

    def _link_tables(self) -> Arrays:
        structure, signs = self._structure
        tables: Arrays = {"idf": self._idf, "structure": structure, "structure_signs": signs}
        tables |= {"tokens": self._corpus.tokens, "offsets": self._corpus.offsets}
        return tables | {f"scale.{name}": rows for name, rows in self._scales.items()}

    def _link_numbers(self) -> dict[str, float]:
        posterior = self._link_posterior
        numbers = {f"link.{k}": v for k, v in posterior.weights.items()}
        numbers |= {"link.offset": posterior.offset}
        if posterior.isolated_weights:
            numbers |= {f"isolated.{k}": v for k, v in posterior.isolated_weights.items()}
            numbers |= {"isolated.offset": posterior.isolated_offset}
        return numbers

    def _load_link_posterior(self, arrays: Arrays, numbers: dict[str, float]) -> None:
        link, isolated = (
            {k.removeprefix(kind): numbers.pop(k) for k in [*numbers] if k.startswith(kind)}
            for kind in ("link.", "isolated.")
        )
        offset = link.pop("offset")
        isolated_offset = isolated.pop("offset") if isolated else 0.0
        self._link_posterior = LinkPosterior(link, offset, isolated, isolated_offset)
        known = {name for names in GROUPS.values() for name in names}
        valid = {"embedding"} <= set(link) <= {"embedding", *known}
        if not valid or (isolated and set(isolated) != set(link)):
            raise ValueError("unknown features of the link posterior")
        self._idf = arrays.pop("idf")
        self._structure = arrays.pop("structure"), arrays.pop("structure_signs")
        names = [k for k in arrays if k.startswith("scale.")]
        self._scales = {k.removeprefix("scale."): arrays.pop(k) for k in names}
        n, shape = len(self.network_), self._structure[0].shape
        used = set(LINK_STRENGTHS) & set(self._link_posterior.names)
        tokens, offsets = arrays.pop("tokens"), arrays.pop("offsets")
        self._corpus = Corpus(tokens, offsets, self.vocabulary_)
        consistent = (
            offsets.shape == (n + 1,)
            and self._idf.shape == (len(self.vocabulary_),)
            and shape == (n, len(self._structure[1]))
            and set(self._scales) == used
            and all(len(rows) == n for rows in self._scales.values())
        )
        if not consistent:
            raise ValueError("the tables of the link posterior do not match the network")

    @classmethod
    def _unfitted(cls, saved: SavedModel) -> Self:
        return cls()

    @classmethod
    def _from_saved(cls, saved: SavedModel) -> Self:
        numbers = saved.numbers
        loaded = cls._unfitted(saved)
        loaded.seed_, loaded._config = int(saved.result["seed"]), saved.config
        loaded.network_ = saved.network
        loaded._vocabulary = saved.vocabulary
        loaded._load_link_posterior(saved.arrays, numbers)
        loaded.history_, loaded.result_ = saved.history, saved.result
        loaded._load_vectors(saved)
        loaded._load_state(saved.arrays, numbers)
        n, d = len(saved.network), loaded._embedding_dim
        shapes = (
            loaded.embedding_.shape == (n, d)
            and loaded.embedding_std_.shape in ((n, 1), (n, d))
            and all(rows.shape == (n, d) for rows in loaded._scales.values())
        )
        if not shapes:
            raise ValueError("the embedding does not match the network")
        return loaded

    @property
    def _embedding_dim(self) -> int:
        return int(self._config.latent_dim)

    def _load_vectors(self, saved: SavedModel) -> None:
        own = [name for name in saved.arrays if name.startswith(TRANSFORM)]
        if own:
            arrays = {name.removeprefix(TRANSFORM): saved.arrays.pop(name) for name in own}
            self._vector_source = VectorSource(VectorCodes.from_arrays(arrays), saved.encoder)
        elif saved.encoder is not None:
            raise ValueError("the transformation of the vectors of the encoder is missing")

    @abstractmethod
    def _state(self) -> tuple[Arrays, dict[str, float]]:
        """The tensors and numbers that make up the model."""

    @abstractmethod
    def _load_state(self, arrays: Arrays, numbers: dict[str, float]) -> None: ...


def checked(cls: type[Model], saved: SavedModel, folder: Path) -> Model:
    """A model from what its folder holds."""
    try:
        return cls._from_saved(saved)
    except (LookupError, TypeError, AttributeError, ValueError, RuntimeError) as error:
        if isinstance(error, VHEError):
            raise
        raise incomplete(folder, error) from None


def _check_values(texts: Corpus, tables: Iterable[Rows]) -> None:
    """Check what was read of a large model folder, which was opened without reading everything."""
    tokens = texts.tokens
    known = not len(tokens) or 1 <= tokens.min() <= tokens.max() <= len(texts.vocabulary)
    if not known or not all(np.isfinite(rows).all() for rows in tables):
        raise VHEError(DAMAGED)


def cosine(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    length = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / length if length else 0.0


def _with_ones(weights: NDArray[np.float64] | None, count: int) -> NDArray[np.float64] | None:
    """The weights of edges, if there are any, with those of new ones, which are 1."""
    return None if weights is None else np.append(weights, np.ones(count))
