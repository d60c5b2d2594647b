"""The common base of both estimators: prepare, train, fit the link posterior, finalise."""

from __future__ import annotations

import contextlib
import logging
import secrets
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from torch import Tensor

from vhe.config import Settings
from vhe.data.checks import edge_indices
from vhe.data.network import TextNetwork
from vhe.data.splits import validation_links as split_validation_links
from vhe.data.text import Corpus
from vhe.errors import VHEError, VHETypeError
from vhe.fitted import FittedModel, checked
from vhe.predict.arguments import Pair, columns
from vhe.predict.calibration import ReliabilityCurve
from vhe.predict.candidates import known_pairs
from vhe.predict.link_posterior import MaskedRows, fit_link_posterior
from vhe.predict.pair_features import (
    GROUPS,
    LINK_STRENGTHS,
    Rows,
    VertexRows,
    structure_factors,
    vertex_rows,
)
from vhe.runtime import process_group
from vhe.runtime.arrays import unit_rows
from vhe.runtime.checks import is_integer
from vhe.runtime.device import find_device, retain_memory, using_threads
from vhe.runtime.loop import TrainingState
from vhe.runtime.progress import Progress
from vhe.runtime.provenance import provenance
from vhe.storage import training_state
from vhe.storage.model_folder import SavedModel, read_model
from vhe.text.lsa import inverse_document_frequency, tfidf_rows
from vhe.text.vertex_vectors import VectorSource

logger = logging.getLogger(__name__)

# embeddings by scale of some vertices, computed without some of the links, (m,) of the network
MaskedScales = Callable[[NDArray[np.bool_], NDArray[np.int64]], dict[str, Rows]]


@dataclass(frozen=True)
class Preparation:
    """The input of training.

    Attributes
    ----------
    links, validation : (m, 2) training and validation links, disjoint
    vectors : (n, p) codes of given or encoded vectors, and their source; None without any
    """

    network: TextNetwork
    corpus: Corpus
    links: NDArray[np.int64]
    validation: NDArray[np.int64]
    seed: int
    device: torch.device
    checkpoint: training_state.TrainingCheckpoint | None
    resume: bool
    vectors: tuple[VectorSource, Rows] | None = None

    @property
    def saved_in(self) -> training_state.TrainingCheckpoint | None:
        """The checkpoint in the process that writes it; None in the others."""
        return self.checkpoint if process_group.is_first() else None

    def resumed(self) -> tuple[TrainingState, dict[str, Tensor]] | None:
        """The saved state and tensors to resume from; None for a new training run."""
        return self.checkpoint.load() if self.checkpoint and self.resume else None

    @property
    def held_out(self) -> NDArray[np.int64]:
        """The links that calibrate probabilities; the training links where there are no others."""
        return self.validation if len(self.validation) else self.links


class Estimator(FittedModel, BaseEstimator):  # type: ignore[misc]  # sklearn has no types
    """The common base of `VHE` and `PairVHE`.

    The parameters of a subclass are these four and the fields of its configuration class, with the
    same types and defaults.

    Parameters
    ----------
    random_state : int, optional
        random seed; the same seed gives the same bits on one machine, whatever the number of
        threads (`PairVHE` without the native kernels: with the same number). Default: drawn, and
        stored in ``seed_``
    threads : int, optional
        number of threads of a fit; default: torch's choice
    device : str
        "auto" uses a GPU if there is one
    verbose : bool
        show progress on standard error
    """

    config_class: ClassVar[type[Settings]]
    model_name: ClassVar[str]
    # whether `_masked_scales` computes a vertex as if it had no links
    _masks_vertices: ClassVar[bool] = False
    history_: list[dict[str, float]]
    seed_: int
    _config: Any
    random_state: int | None
    threads: int | None
    device: str

    def _store_parameters(self, values: dict[str, Any]) -> None:
        """Set the attributes that ``__init__`` was given; `config` checks them."""
        for name in self._get_param_names():
            setattr(self, name, values[name])

    @classmethod
    def from_config(cls, config: Settings, random_state: int | None = None) -> Self:
        """Make an estimator from its settings, such as ``PairVHEConfig.paper()``."""
        return cls(random_state=random_state, **config.to_dict())

    @property
    def config(self) -> Any:
        """The settings, checked."""
        names = (f.name for f in fields(self.config_class))  # type: ignore[arg-type]
        return self.config_class(**{name: getattr(self, name) for name in names})

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        if not hasattr(self, "network_"):
            return str(super().__repr__(N_CHAR_MAX))
        auc = self.result_.get("validation_auc")
        validated = "" if auc is None else f", validation AUC {100 * auc:.1f} %"
        name, size = type(self).__name__, self.embedding_.shape[1]
        return f"{name}(fitted on {self.network_!r}, {size}-dimensional{validated})"

    # --- loading

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read a model folder that `save` wrote; every file is verified."""
        saved = read_model(Path(folder))
        if saved.model != cls.model_name:
            raise VHEError(f"{folder}: this is a {saved.model} model; use vhe.load_model")
        return checked(cls, saved, Path(folder))

    @classmethod
    def _unfitted(cls, saved: SavedModel) -> Self:
        return cls.from_config(saved.config, random_state=int(saved.result["seed"]))

    # --- fitting

    def fit(
        self,
        network: TextNetwork,
        *,
        validation_links: Iterable[Pair] | None = None,
        checkpoint: str | Path | None = None,
        checkpoint_minutes: float = 1.0,
        resume: bool = False,
    ) -> Self:
        """Fit the model to a network.

        Parameters
        ----------
        validation_links
            pairs of ids that are linked, but not in ``network``, for validation and for the link
            posterior. Default: a fraction of the links (the setting ``validation``)
        checkpoint
            folder in which training is saved every ``checkpoint_minutes`` and at its end, so that
            it can be resumed; delete it when the model is saved
        resume
            continue the training that is saved there

        Returns
        -------
        self
        """
        fitted = type(self)(**self.get_params(deep=False))
        fitted._fit(network, validation_links, checkpoint, checkpoint_minutes, resume)
        self.__dict__ = fitted.__dict__  # all or nothing: an interrupted fit changes nothing
        return self

    def fit_transform(self, network: TextNetwork, **options: Any) -> NDArray[np.float32]:
        """Fit the model, with the options of `fit`, and return ``embedding_``: (n, d)."""
        return self.fit(network, **options).embedding_

    def _fit(
        self,
        network: TextNetwork,
        validation_links: Iterable[Pair] | None,
        checkpoint: str | Path | None,
        checkpoint_minutes: float,
        resume: bool,
    ) -> None:
        began = time.monotonic()
        config = self.config
        self._check_network(network)
        if resume and checkpoint is None:
            raise VHEError("resume needs the checkpoint folder of the training to be resumed")
        folder = None if checkpoint is None else Path(checkpoint)
        with self._processes(), using_threads(self.threads), contextlib.ExitStack() as stack:
            if getattr(self, "max_memory", None) is None:
                retain_memory()
            seed = process_group.broadcast(self._draw_seed(folder if resume else None))
            prepared = self._prepare(
                network, seed, validation_links, folder, checkpoint_minutes, resume
            )
            if prepared.saved_in is not None:
                stack.enter_context(prepared.saved_in.lock())
            state = self._train(prepared)
            if state.stopped and not state.stopped.startswith("no improvement"):
                logger.warning(f"training stopped early: {state.stopped}")
            with Progress("link posterior", show=self.verbose):
                curve = self._fit_link_posterior(prepared)
            self._finalise(prepared)
        self.network_, self._corpus, self.seed_ = network, prepared.corpus, seed
        self._vocabulary = prepared.corpus.vocabulary
        self._config = config  # of this fit, whatever set_params changes afterwards
        self.history_ = state.history
        self.result_ = provenance(seed) | {
            "model": self.model_name,
            "seconds": round(time.monotonic() - began, 3),
            "steps": state.step,
            "best_step": state.best_step,
            "trained": state.best_step > 0,
            "stopped": state.stopped,
            "notes": [*network.notes, *self._remarks(network, prepared.vectors)],
            "validation_auc": state.best_score,
            "chosen": state.chosen,
            "link_posterior": self._link_posterior.weights,
            "link_posterior_isolated": self._link_posterior.isolated_weights,
            **self._details(),
            "calibration_error": curve.error,
            "reliability": {name: values.tolist() for name, values in asdict(curve).items()},
        }

    def _prepare(
        self,
        network: TextNetwork,
        seed: int,
        validation_links: Iterable[Pair] | None,
        folder: Path | None,
        checkpoint_minutes: float,
        resume: bool,
    ) -> Preparation:
        config = self.config
        with Progress("vocabulary", len(network), show=self.verbose) as progress:
            corpus = Corpus.build(
                network.texts,
                min_count=config.min_count,
                max_words=config.max_words,
                progress=progress.report,
            )
        if corpus.truncated:
            logger.warning(
                f"{corpus.truncated:,} of {len(corpus):,} texts were truncated to "
                f"{config.max_words} words (max_words)",
            )
        if validation_links is None:
            links, validation = split_validation_links(network.links, config.validation, seed)
        else:
            pairs = edge_indices(network.ids, *columns(validation_links), "link {}".format)
            pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
            known = known_pairs(network.links, pairs, len(network))
            links, validation = network.links, pairs[~known]
        vectors = self._vertex_vectors(network, seed)
        if not corpus.vocabulary and vectors is None:
            logger.warning("no tokens found in any text: only links are used")
        for remark in self._remarks(network, vectors):
            logger.warning(remark)
        checkpoint = None
        if folder is not None:
            codes = None if vectors is None else vectors[1]
            identity = {
                "model": self.model_name,
                "seed": seed,
                "settings": config.to_dict(),
                "network": training_state.network_digest(
                    corpus, links, validation, codes, network.link_weights
                ),
            }
            checkpoint = training_state.TrainingCheckpoint(
                folder, identity, 60 * checkpoint_minutes
            )
        device = find_device(self.device)
        return Preparation(
            network, corpus, links, validation, seed, device, checkpoint, resume, vectors
        )

    def _vertex_vectors(self, network: TextNetwork, seed: int) -> tuple[VectorSource, Rows] | None:
        """The codes of the vectors of vertices, if the model uses them."""
        return None

    def _remarks(
        self, network: TextNetwork, vectors: tuple[VectorSource, Rows] | None
    ) -> Sequence[str]:
        """Sentences on the vectors and the weights of links that are not used."""
        if vectors is None or vectors[0].identity is not None:  # nobody chose an encoder's columns
            return ()
        return vectors[0].transform.standardisation.notes

    def _details(self) -> dict[str, Any]:
        """Entries that this kind of model adds to ``result_``."""
        return {}

    @abstractmethod
    def _train(self, prepared: Preparation) -> TrainingState: ...

    def _fit_link_posterior(self, prepared: Preparation) -> ReliabilityCurve:
        """Set the link posterior, and the tables of the features that it uses."""
        network, seed = prepared.network, prepared.seed
        names = self._feature_names()
        self._idf = inverse_document_frequency(prepared.corpus)

        def masked_rows(scales: MaskedScales) -> MaskedRows:
            def rows(
                masked: NDArray[np.int64], isolated: NDArray[np.int64], vertices: NDArray[np.int64]
            ) -> VertexRows:
                hidden = known_pairs(masked, network.links, len(network))
                hidden |= np.isin(network.links, isolated).any(axis=1)
                links = network.links[~hidden]
                nothing: Any = sparse.csr_array((len(network), 1), dtype=np.float32)
                table = vertex_rows({}, nothing, links, names, seed).take(vertices)
                words = tfidf_rows(prepared.corpus.select(vertices), self._idf)
                found = {name: unit_rows(codes) for name, codes in scales(hidden, vertices).items()}
                return replace(table, words=words, scales=found)

            return rows

        scales = [name for name in names if name in LINK_STRENGTHS]
        self._link_posterior, curve = fit_link_posterior(
            [
                (masked_rows(fold_scales), held_out)
                for fold_scales, held_out in self._masked_scales(prepared, scales)
            ],
            network.links,
            names,
            len(network),
            seed,
            whole_vertices=self._masks_vertices,
        )
        empty = np.zeros((len(network), 0), np.float32), np.zeros(0, np.float32)
        used = "structure" in self._link_posterior.names
        self._structure = structure_factors(network.links, len(network), seed) if used else empty
        return curve

    def _feature_names(self) -> tuple[str, ...]:
        groups = [group.strip() for group in self.config.link_features.split(",")]
        return "embedding", *(
            n for group, names in GROUPS.items() if group in groups for n in names
        )

    @abstractmethod
    def _masked_scales(
        self, prepared: Preparation, names: list[str]
    ) -> list[tuple[MaskedScales, NDArray[np.int64]]]:
        """Embeddings of some vertices without some links, at each named scale.

        One function for each fold of held-out links (m, 2), on which nothing that it uses was
        trained.
        """

    @abstractmethod
    def _finalise(self, prepared: Preparation) -> None:
        """Set ``embedding_`` and ``embedding_std_`` from the whole network."""

    def _check_network(self, network: TextNetwork) -> None:
        if not isinstance(network, TextNetwork):
            raise VHETypeError(
                f"fit takes a TextNetwork, not a {type(network).__name__}: "
                "get one with vhe.read or vhe.load"
            )
        if not len(network.links):
            raise VHEError(f"{network.name}: no link between two different vertices to learn from")

    @abstractmethod
    def _processes(self) -> contextlib.AbstractContextManager[None]:
        """The processes of torchrun, where a model can use several."""

    def _draw_seed(self, resumed: Path | None) -> int:
        """The random seed: the given one, that of the resumed training, or a new one."""
        if self.random_state is not None:
            if not (is_integer(self.random_state) and 0 <= self.random_state < 2**32):
                raise VHEError(
                    f"random_state is {self.random_state!r}, but must be an integer from 0 to "
                    "4294967295, or none"
                )
            return int(self.random_state)
        return secrets.randbelow(2**31) if resumed is None else training_state.seed_of(resumed)
