"""VHE: the one class most people meet."""

from __future__ import annotations

import difflib
import inspect
import secrets
import time
import warnings
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from vhe.config import VHEConfig
from vhe.data.checked import is_whole
from vhe.data.network import TextNetwork
from vhe.data.pairs import LinkSet
from vhe.data.split import validation_links
from vhe.data.text import Corpus
from vhe.errors import VHEError
from vhe.evaluate.calibration import sigmoid
from vhe.evaluate.contract import CosineMethod
from vhe.infer.embed import GlobalEmbedding, context_pairs, global_embedding
from vhe.infer.score import calibrate
from vhe.nn.pair_vae import PairVAE
from vhe.train.machine import find_device, using_threads
from vhe.train.model_folder import SavedModel, pair_vae, read_model, write_model
from vhe.train.progress import Progress
from vhe.train.provenance import provenance
from vhe.train.trainer import Trainer

MOST_VALIDATION_LINKS = 256
CALIBRATION_CONTEXTS = 4
SNIPPET = 80  # characters of a text that a suggestion shows

Pair = tuple[Hashable, Hashable]


@dataclass(frozen=True)
class Suggestion:
    """A link that is not there but likely."""

    id: Hashable
    probability: float
    text: str


class VHE(CosineMethod, BaseEstimator):
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

    network_: TextNetwork
    embedding_std_: NDArray[np.float32]
    history_: list[dict[str, float]]
    result_: dict[str, Any]

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
        seed = self._seed(folder if resume else None)
        with using_threads(self.threads):
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
            self._calibration = calibrate(
                model,
                corpus,
                LinkSet(links, len(network)),
                judges,
                contexts=min(config.contexts, CALIBRATION_CONTEXTS),
                seed=seed,
            )
            if trainer.structure is not None:  # the validation links have done their duty
                trainer.structure.use(network.links, state.softness)
                trainer.structure.store()
            self._remember(config, network, corpus, model, seed)
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
        }
        return self

    def embed(
        self,
        ids: Iterable[Hashable] | None = None,
        *,
        return_std: bool = False,
        contexts: int | Literal["all"] | None = None,
    ) -> Any:
        """The embedding of some vertices, or of all: (k, d), and its deviation if asked for.

        ``contexts`` averages over that many other vertices anew, "all" is exact; None gives the
        embedding that was made when the model was fitted.
        """
        self._check_fitted()
        mean, std = self.embedding_, self.embedding_std_
        if contexts is not None:
            if contexts != "all" and not (is_whole(contexts) and contexts >= 1):
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
        """The cosine of the embeddings of each pair of ids: (m,)."""
        return self.score_indices(*self._ends(pairs))

    def predict_proba(self, pairs: Iterable[Pair]) -> NDArray[np.float64]:
        """The probability of a link for each pair of ids: (m,).

        It is calibrated for as many links as non-links.
        """
        return self.probability_indices(*self._ends(pairs))

    def probability_indices(
        self, sources: NDArray[np.int64], targets: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        slope, offset = self._calibration
        return sigmoid(slope * self.score_indices(sources, targets).astype(np.float64) + offset)

    def suggest_links(self, vertex_id: Hashable, k: int = 10) -> list[Suggestion]:
        """The likeliest links of a vertex that are not there yet, the likeliest first."""
        self._check_fitted()
        if not (is_whole(k) and k >= 0):
            raise VHEError(f"k is {k!r}, but it has to be a whole number of at least 0")
        network = self.network_
        vertex = network.index(vertex_id)
        scores = self.score_matrix(np.array([vertex]), np.arange(len(network)))[0]
        taken = network.links[(network.links == vertex).any(axis=1)]
        scores[np.append(taken.ravel(), vertex)] = -np.inf
        best = np.argsort(-scores, kind="stable")[:k]
        best = best[np.isfinite(scores[best])]
        chances = self.probability_indices(np.full(len(best), vertex), best)
        return [
            Suggestion(network.ids[j], float(p), _snippet(network.texts[j]))
            for j, p in zip(best, chances, strict=True)
        ]

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
            calibration=self._calibration,
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
        loaded._remember(saved.config, saved.network, corpus, model, seed)
        loaded.embedding_, loaded.embedding_std_ = saved.mean, saved.std
        loaded._calibration = saved.calibration
        loaded.history_, loaded.result_ = saved.history, saved.result
        return loaded

    def _remember(
        self, config: VHEConfig, network: TextNetwork, corpus: Corpus, model: PairVAE, seed: int
    ) -> None:
        self._config, self.network_, self._corpus = config, network, corpus
        self._model, self.seed_ = model.eval(), seed

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

    def _seed(self, kept_in: Path | None) -> int:
        """The seed to use: as given, as in the training that is resumed, or drawn."""
        if self.random_state is not None:
            if not (is_whole(self.random_state) and 0 <= self.random_state < 2**32):
                raise VHEError(
                    f"random_state is {self.random_state!r}, but it has to be a whole number from "
                    "0 to 4294967295, or none"
                )
            return int(self.random_state)
        return secrets.randbelow(2**31) if kept_in is None else Trainer.kept_seed(kept_in)

    def _say_of(self, corpus: Corpus, config: VHEConfig) -> None:
        if not corpus.vocabulary:
            warnings.warn("no text has a word: only the links are learned from", stacklevel=3)
        if corpus.cut:
            warnings.warn(
                f"{corpus.cut:,} of {len(corpus):,} texts were cut to {config.max_words} words "
                "(max_words)",
                stacklevel=3,
            )

    def _ends(self, pairs: Iterable[Pair]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        self._check_fitted()
        try:
            listed = list(pairs)
            if any(isinstance(pair, str) for pair in listed):
                raise TypeError
            sources, targets = [a for a, _ in listed], [b for _, b in listed]
        except (TypeError, ValueError):
            raise VHEError("pairs has to be a list of pairs of ids, as [('a', 'b')]") from None
        return self.network_.indices(sources), self.network_.indices(targets)

    def _check_fitted(self) -> None:
        if not hasattr(self, "network_"):
            raise VHEError("this VHE is not fitted yet: call fit(network) first")


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


def density(network: TextNetwork) -> float:
    """The share of all pairs that are linked, inside (0, 1)."""
    n = len(network)
    return float(np.clip(2 * len(network.links) / max(n * (n - 1), 1), 1e-9, 1 - 1e-6))


def _snippet(text: str) -> str:
    first = " ".join(text.split())
    return first if len(first) <= SNIPPET else first[: SNIPPET - 1].rstrip() + "…"
