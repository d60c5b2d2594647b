"""VHE: the one class most people meet."""

from __future__ import annotations

import difflib
import inspect
import secrets
import time
import warnings
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from vhe.config import VHEConfig
from vhe.data.checks import edge_indices, is_integer
from vhe.data.network import TextNetwork
from vhe.data.sampling import LinkSet
from vhe.data.splits import validation_links
from vhe.data.text import Corpus
from vhe.errors import VHEError
from vhe.graph.prior import STRENGTH
from vhe.pair.embedding import GlobalEmbedding
from vhe.pair.inductive import InductiveMethod, TrainingGraph, joined, with_structure
from vhe.pair.model import PairVAE
from vhe.pair.training import Trainer
from vhe.predict.degree import Calibration, calibrate
from vhe.predict.predictor import Pair, Predictor, Suggestion, columns, density
from vhe.predict.suggest import known_pairs
from vhe.runtime import process_group as distributed
from vhe.runtime.device import find_device, using_threads
from vhe.runtime.progress import Progress
from vhe.runtime.provenance import provenance
from vhe.storage import training_state as kept
from vhe.storage.model_folder import SavedModel, pair_vae, read_model, write_model

__all__ = ["VHE", "Suggestion", "density"]

MOST_VALIDATION_LINKS = 256
CALIBRATION_CONTEXTS = 4


class VHE(Predictor, BaseEstimator):
    """Variational Homophilic Embedding of a network whose vertices carry text.

    Parameters
    ----------
    random_state : int, optional
        the same seed and number of threads give the same bits; drawn and stored when left out
    threads : int, optional
        cores to use while fitting; torch's own choice when left out
    device : str
        "auto" takes a GPU where there is one
    verbose : bool
        show progress on standard error
    **settings
        every field of `VHEConfig`, as ``VHE(homophily=0.9, steps=100)``

    Attributes
    ----------
    network_ : TextNetwork
    embedding_, embedding_std_ : (n, d) float32, rows follow ``network_.ids``
    history_ : list of dict, each term of the bound and the validation AUC as training went on
    result_ : dict, the seed, versions, machine, seconds and validation AUC

    Examples
    --------
    >>> import vhe
    >>> texts = {"a": "cats purr softly", "b": "cats purr and sleep",
    ...          "c": "stars shine softly", "d": "stars shine and sleep"}
    >>> network = vhe.TextNetwork.from_edges(texts, [("a", "b"), ("c", "d")])
    >>> model = vhe.VHE(random_state=0, steps=2, verbose=False).fit(network)
    >>> model.embedding_.shape
    (4, 200)
    """

    history_: list[dict[str, float]]

    def __init__(self, **parameters: Any) -> None:
        known = inspect.signature(type(self)).parameters
        for name in parameters.keys() - known.keys():
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else "known are " + ", ".join(known)
            raise VHEError(f"there is no setting named {name!r}: {hint}")
        for name, parameter in known.items():
            setattr(self, name, parameters.get(name, parameter.default))

    @classmethod
    def from_config(cls, config: VHEConfig, random_state: int | None = None) -> VHE:
        return cls(random_state=random_state, **config.to_dict())

    @property
    def config(self) -> VHEConfig:
        """The settings, checked."""
        return VHEConfig(**{f.name: getattr(self, f.name) for f in fields(VHEConfig)})

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        if not hasattr(self, "network_"):
            return str(super().__repr__(N_CHAR_MAX))
        auc = self.result_.get("validation_auc")
        learned = "" if auc is None else f", validation AUC {100 * auc:.1f} %"
        return f"VHE(fitted on {self.network_!r}, {self.embedding_.shape[1]} numbers each{learned})"

    def fit(
        self, network: TextNetwork, *, checkpoint: str | Path | None = None, resume: bool = False
    ) -> Self:
        """Learn the embedding of a network.

        Under torchrun its processes share the work, and all end with the same model.

        Parameters
        ----------
        checkpoint
            a folder in which the training is kept every ``checkpoint_minutes`` and at its end, so
            that it can be resumed; delete it when the model is saved
        resume
            go on with the training that is kept there
        """
        config, began = self.config, time.monotonic()
        if not isinstance(network, TextNetwork):
            raise VHEError(f"fit takes a TextNetwork, not a {type(network).__name__}")
        if not len(network.links):
            raise VHEError(
                f"{network.name}: there is no link between two different vertices to learn from"
            )
        folder = None if checkpoint is None else Path(checkpoint)
        with distributed.together(), using_threads(self.threads):
            seed = int(distributed.agreed(self._seed(folder if resume else None)))
            corpus = Corpus.build(
                network.texts, min_count=config.min_count, max_words=config.max_words
            )
            self._say_of(corpus, config)
            links, validation = validation_links(
                network.links, config.validation, seed, MOST_VALIDATION_LINKS
            )
            pi0 = config.pi0 or density(network)
            model = PairVAE(config, len(corpus.vocabulary), len(network), pi0)
            model.start(corpus, seed)
            model.to(find_device(self.device))
            with Progress("training", 1, show=self.verbose) as progress:
                trainer = Trainer(
                    model,
                    corpus,
                    links,
                    validation,
                    seed=seed,
                    folder=folder,
                    report=progress.update,
                )
                if resume:
                    trainer.resume()
                progress.expect(trainer.steps)
                state = trainer.run()
            if state.stopped and not state.stopped.startswith("no better"):
                warnings.warn(f"training stopped early: {state.stopped}", stacklevel=2)

            judges = validation if len(validation) else links
            structure = trainer.structure
            trainer.couple(network.links)  # the validation links have done their duty
            number = np.flatnonzero(known_pairs(judges, network.links, len(network)))

            def leave_out(rows: NDArray[np.int64]) -> None:
                if structure is not None:
                    structure.store(without=number[rows])

            self._calibration, curve = calibrate(
                model,
                corpus,
                LinkSet(links, len(network)),
                judges,
                degree=np.bincount(network.links.ravel(), minlength=len(network)),
                contexts=min(config.contexts, CALIBRATION_CONTEXTS),
                seed=seed,
                leave_out=leave_out,
            )
            if structure is not None:
                structure.store()
            graph_bound = None if structure is None else structure.bound(seed)
            weights = state.text_knn_weight, state.link_strength
            self._remember(config, network, corpus, model, seed, weights)
            if structure is not None and config.embeds_jointly:
                mean = model.structure.weight.detach().cpu().numpy()
                variance = np.repeat(structure.variance(seed)[:, None], mean.shape[1], axis=1)
                embedding = GlobalEmbedding(mean.copy(), variance)
            else:
                embedding = self._global(config.contexts)
        self.embedding_ = embedding.mean
        self.embedding_std_ = np.sqrt(embedding.variance)
        self.history_ = state.history
        self.result_ = provenance(seed) | {
            "seconds": round(time.monotonic() - began, 3),
            "steps": state.step,
            "best_step": state.best_step,
            "stopped": state.stopped,
            "validation_auc": state.best_auc,
            "text_knn_weight": state.text_knn_weight,
            "link_strength": state.link_strength,
            "graph_bound": graph_bound,
            "calibration_error": curve.error,
            "reliability": {f.name: getattr(curve, f.name).tolist() for f in fields(curve)},
        }
        return self

    def add_vertices(
        self,
        texts: Mapping[Hashable, str],
        edges: Iterable[Pair] = (),
        labels: Mapping[Hashable, Hashable | None] | None = None,
        *,
        method: InductiveMethod | None = None,
    ) -> Self:
        """Take in vertices that were not there at training; everything learned stays as it is.

        Parameters
        ----------
        texts
            the text of each new id
        edges
            links that are known, each with at least one new id
        method
            "fast": the structure embedding is a weighted mean of the text's own code and those of
            its links and nearest texts, the posterior under the prior of the whole graph; "paper":
            it maximises the bound over some contexts, which takes a hundred times as long. When
            left out: paper for a learned table, as the paper has it, fast otherwise.
        """
        self._check_fitted()
        network, pairs = self.network_, list(edges)
        there = set(network.ids)
        for vertex in texts:
            if vertex in there:
                raise VHEError(f"{vertex!r} is a vertex already: give new vertices new ids")
        ids = [*network.ids, *texts]
        rows = edge_indices(ids, *columns(pairs), "edge {}".format)
        old = np.flatnonzero((rows < len(network)).all(axis=1))
        if len(old):
            raise VHEError(
                f"edge {old[0]} is between two vertices that were there already: fit again to "
                "learn from it"
            )
        grown = TextNetwork(
            ids,
            [*network.texts, *texts.values()],
            np.concatenate([network.edges, rows]),
            None
            if network.labels is None and labels is None
            else [
                *(network.labels or [None] * len(network)),
                *((labels or {}).get(vertex) for vertex in texts),
            ],
            directed=network.directed,
            name=network.name,
            notes=network.notes,
        )
        links = grown.links[(grown.links >= len(network)).any(axis=1)]
        corpus, placed = self._place(list(texts.values()), links, method)
        model = with_structure(
            self._model, np.concatenate([self._residents.structure, placed.structure])
        )
        texts_too = joined(self._corpus, corpus)
        weights = self._residents.text_knn_weight, self._residents.link_strength
        self._remember(self._config, grown, texts_too, model, self.seed_, weights)
        self.embedding_ = np.concatenate([self.embedding_, placed.mean])
        self.embedding_std_ = np.concatenate([self.embedding_std_, np.sqrt(placed.variance)])
        self.result_ = self.result_ | {"added": self.result_.get("added", 0) + len(texts)}
        return self

    def save(self, folder: str | Path) -> None:
        """Write the model folder, whole or not at all."""
        self._check_fitted()
        saved = SavedModel(
            config=self._config,
            network=self.network_,
            vocabulary=self._corpus.vocabulary,
            weights=self._model.state_dict(),
            mean=self.embedding_,
            std=self.embedding_std_,
            calibration=astuple(self._calibration),
            pi0=self._model.pi0,
            history=self.history_,
            result=self.result_,
        )
        write_model(Path(folder), saved)

    @classmethod
    def load(cls, folder: str | Path) -> VHE:
        """Read a model folder; every file is checked first."""
        saved = read_model(Path(folder))
        model = pair_vae(saved, Path(folder))
        corpus = Corpus.encode(
            saved.network.texts, saved.vocabulary, max_words=saved.config.max_words
        )
        seed = int(saved.result["seed"])
        loaded = cls.from_config(saved.config, random_state=seed)
        result = {"text_knn_weight": 0.0, "link_strength": STRENGTH} | saved.result
        weights = float(result["text_knn_weight"]), float(result["link_strength"])
        loaded._remember(saved.config, saved.network, corpus, model, seed, weights)
        loaded.embedding_, loaded.embedding_std_ = saved.mean, saved.std
        loaded._calibration = Calibration(*saved.calibration)
        loaded.history_, loaded.result_ = saved.history, saved.result
        return loaded

    def _remember(
        self,
        config: VHEConfig,
        network: TextNetwork,
        corpus: Corpus,
        model: PairVAE,
        seed: int,
        weights: tuple[float, float],
    ) -> None:
        self._config, self.network_, self._corpus = config, network, corpus
        self._model, self.seed_ = model.eval(), seed
        self._residents = TrainingGraph(self._model, corpus, network.links, *weights)

    def _seed(self, kept_in: Path | None) -> int:
        """The seed to use: as given, as in the training that is resumed, or drawn."""
        if self.random_state is not None:
            if not (is_integer(self.random_state) and 0 <= self.random_state < 2**32):
                raise VHEError(
                    f"random_state is {self.random_state!r}, but it has to be a whole number from "
                    "0 to 4294967295, or none"
                )
            return int(self.random_state)
        return secrets.randbelow(2**31) if kept_in is None else kept.seed_of(kept_in)

    def _say_of(self, corpus: Corpus, config: VHEConfig) -> None:
        if not corpus.vocabulary:
            warnings.warn("no text has a word: only the links are learned from", stacklevel=3)
        if corpus.cut:
            warnings.warn(
                f"{corpus.cut:,} of {len(corpus):,} texts were cut to {config.max_words} words "
                "(max_words)",
                stacklevel=3,
            )


def _signature() -> inspect.Signature:
    """The parameters of VHE: its own, and every field of VHEConfig."""

    def parameter(name: str, default: Any) -> inspect.Parameter:
        return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)

    own = {"random_state": None, "threads": None, "device": "auto", "verbose": True}
    settings = {f.name: f.default for f in fields(VHEConfig)}
    return inspect.Signature([parameter(k, v) for k, v in (own | settings).items()])


# scikit-learn reads the parameters of an estimator from here (get_params, clone, repr)
VHE.__signature__ = _signature()
VHE.__init__.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [
        inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD),
        *_signature().parameters.values(),
    ]
)
