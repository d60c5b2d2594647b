"""The two estimators: `VHE` solves the graph-wide prior, `PairVHE` optimises the paper's ELBO.

Both have one contract, `Estimator`: prepare, train, calibrate, finalise. Everything downstream
(`vhe.predict`) works with either.
"""

from __future__ import annotations

import contextlib
import inspect
import secrets
import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from torch import Tensor

from vhe.config import PairVHEConfig, Settings, VHEConfig
from vhe.data.checks import edge_indices
from vhe.data.network import TextNetwork
from vhe.data.sampling import LinkSet
from vhe.data.splits import validation_links as split_validation_links
from vhe.data.text import PADDING, Corpus
from vhe.errors import VHEError, similar
from vhe.fitted import Arrays, FittedGraph, FittedModel, checked, cosine
from vhe.graph.model import GraphModel
from vhe.graph.neighbours import text_neighbours
from vhe.graph.posterior import ITERATIONS
from vhe.graph.prior import GraphPrior, mean_log_length
from vhe.graph.selection import choose_weights
from vhe.graph.training import GraphTrainer
from vhe.pair import attribution as pair_attribution
from vhe.pair import inductive as pair_inductive
from vhe.pair.embedding import embedding_of, global_embedding
from vhe.pair.model import PairVAE
from vhe.pair.training import PairTrainer, train
from vhe.predict.calibration import ReliabilityCurve
from vhe.predict.candidates import known_pairs
from vhe.predict.explain import Side, make_side
from vhe.predict.link_posterior import fit_link_posterior
from vhe.predict.pair_features import (
    GROUPS,
    LINK_STRENGTHS,
    Rows,
    VertexRows,
    structure_factors,
    vertex_rows,
)
from vhe.predict.predictor import (
    InductiveMethod,
    Pair,
    TextReading,
    columns,
    density,
    standard_deviation,
)
from vhe.runtime import process_group
from vhe.runtime.arrays import unit_rows
from vhe.runtime.checks import is_integer
from vhe.runtime.device import find_device, retain_memory, using_threads
from vhe.runtime.loop import TrainingLoop, TrainingState
from vhe.runtime.progress import Progress
from vhe.runtime.provenance import provenance
from vhe.storage import training_state
from vhe.storage.model_folder import SavedModel, read_model
from vhe.text.codes import TextCodes
from vhe.text.lsa import (
    inverse_document_frequency,
    lsa_word_vectors,
    random_word_vectors,
    tfidf_rows,
)

CALIBRATION_CONTEXTS = 4

# embeddings by scale of some vertices, computed without some of the held-out links (row numbers)
MaskedScales = Callable[[NDArray[np.int64], NDArray[np.int64]], dict[str, Rows]]


@dataclass(frozen=True)
class Preparation:
    """What training starts from.

    Attributes
    ----------
    links, validation : (m, 2), disjoint; together the links of the network
    """

    network: TextNetwork
    corpus: Corpus
    links: NDArray[np.int64]
    validation: NDArray[np.int64]
    seed: int
    device: torch.device
    checkpoint: training_state.TrainingCheckpoint | None
    resume: bool

    @property
    def saved_in(self) -> training_state.TrainingCheckpoint | None:
        """The checkpoint in the process that writes it; None in the others."""
        return self.checkpoint if process_group.is_first() else None

    def resumed(self) -> tuple[TrainingState, dict[str, Tensor]] | None:
        """What training continues from; None if it starts anew."""
        return self.checkpoint.load() if self.checkpoint and self.resume else None

    @property
    def held_out(self) -> NDArray[np.int64]:
        """The links that calibrate probabilities; the training links where there are no others."""
        return self.validation if len(self.validation) else self.links


class Estimator(FittedModel, BaseEstimator):
    """What `VHE` and `PairVHE` have in common.

    Parameters
    ----------
    random_state : int, optional
        random seed; the same seed and number of threads give the same bits. Default: drawn, and
        stored in ``seed_``
    threads : int, optional
        number of threads of a fit; default: torch's choice
    device : str
        "auto" uses a GPU if there is one
    verbose : bool
        show progress on standard error
    **settings
        fields of the configuration class
    """

    config_class: ClassVar[type[Settings]]
    model_name: ClassVar[str]
    history_: list[dict[str, float]]
    seed_: int
    _config: Any
    random_state: int | None
    threads: int | None
    device: str

    def __init__(self, **parameters: Any) -> None:
        known = inspect.signature(type(self)).parameters
        for name in parameters.keys() - known.keys():
            near = similar(name, known)
            hint = f"did you mean {near}?" if near else "known settings: " + ", ".join(known)
            raise VHEError(f"unknown setting {name!r}: {hint}")
        for name, parameter in known.items():
            setattr(self, name, parameters.get(name, parameter.default))

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Give the class the signature that scikit-learn reads (get_params, clone, repr)."""
        super().__init_subclass__(**keywords)
        if hasattr(cls, "config_class"):
            own = {"random_state": None, "threads": None, "device": "auto", "verbose": True}
            settings = {f.name: f.default for f in fields(cls.config_class)}  # type: ignore[arg-type]
            kind = inspect.Parameter.KEYWORD_ONLY
            parameters = [
                inspect.Parameter(name, kind, default=default)
                for name, default in (own | settings).items()
            ]

            def initialise(self: Estimator, **given: Any) -> None:
                Estimator.__init__(self, **given)

            first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
            initialise.__signature__ = inspect.Signature([first, *parameters])  # type: ignore[attr-defined]
            cls.__init__ = initialise  # type: ignore[method-assign]
            cls.__signature__ = inspect.Signature(parameters)

    @classmethod
    def from_config(cls, config: Settings, random_state: int | None = None) -> Self:
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
        model = load_model(folder)
        if not isinstance(model, cls):
            name = type(model).__name__
            raise VHEError(f"{folder}: this is a {name} model; load it with {name}.load")
        return model

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
            retain_memory()
            seed = process_group.broadcast(self._draw_seed(folder if resume else None))
            prepared = self._prepare(
                network, seed, validation_links, folder, checkpoint_minutes, resume
            )
            if prepared.saved_in is not None:
                stack.enter_context(prepared.saved_in.lock())
            state = self._train(prepared)
            if state.stopped and not state.stopped.startswith("no improvement"):
                warnings.warn(f"training stopped early: {state.stopped}", stacklevel=3)
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
            "notes": list(network.notes),
            "validation_auc": state.best_score,
            "chosen": state.chosen,
            "link_posterior": self._link_posterior.weights,
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
        if not corpus.vocabulary:
            warnings.warn("no tokens found in any text: only links are used", stacklevel=4)
        if corpus.truncated:
            warnings.warn(
                f"{corpus.truncated:,} of {len(corpus):,} texts were truncated to "
                f"{config.max_words} words (max_words)",
                stacklevel=4,
            )
        if validation_links is None:
            links, validation = split_validation_links(network.links, config.validation, seed)
        else:
            pairs = edge_indices(network.ids, *columns(validation_links), "link {}".format)
            pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
            known = known_pairs(network.links, pairs, len(network))
            links, validation = network.links, pairs[~known]
        checkpoint = None
        if folder is not None:
            identity = {
                "model": self.model_name,
                "seed": seed,
                "settings": config.to_dict(),
                "network": training_state.network_digest(corpus, links, validation),
            }
            checkpoint = training_state.TrainingCheckpoint(
                folder, identity, 60 * checkpoint_minutes
            )
        device = find_device(self.device)
        return Preparation(network, corpus, links, validation, seed, device, checkpoint, resume)

    @abstractmethod
    def _train(self, prepared: Preparation) -> TrainingState: ...

    def _fit_link_posterior(self, prepared: Preparation) -> ReliabilityCurve:
        """Set the link posterior, and the tables of the features that it uses."""
        network, seed = prepared.network, prepared.seed
        names = self._feature_names()
        self._idf = inverse_document_frequency(prepared.corpus)
        words = tfidf_rows(prepared.corpus, self._idf)
        scales = self._masked_scales(prepared, [name for name in names if name in LINK_STRENGTHS])

        def rows(masked: NDArray[np.int64], vertices: NDArray[np.int64]) -> VertexRows:
            hidden = known_pairs(prepared.held_out[masked], network.links, len(network))
            links = network.links[~hidden]
            table = vertex_rows({}, words, links, names, seed).take(vertices)
            found = scales(masked, vertices)
            return replace(table, scales={name: unit_rows(codes) for name, codes in found.items()})

        self._link_posterior, curve = fit_link_posterior(
            rows, prepared.held_out, network.links, names, len(network), seed
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
    def _masked_scales(self, prepared: Preparation, names: list[str]) -> MaskedScales:
        """Embeddings of some vertices without some of the held-out links, at each named scale."""

    @abstractmethod
    def _finalise(self, prepared: Preparation) -> None:
        """Set ``embedding_`` and ``embedding_std_`` from the whole network."""

    def _check_network(self, network: TextNetwork) -> None:
        if not isinstance(network, TextNetwork):
            raise VHEError(
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


class VHE(FittedGraph, Estimator):
    """Variational Homophilic Embedding with the prior over the whole graph (the default).

    Text codes are smoothed over links and nearest texts by solving one sparse linear system, the
    posterior of all codes; the word vectors are fine-tuned through the solution. Settings are those
    of `VHEConfig`; the other parameters are those of `Estimator`.

    Attributes
    ----------
    network_ : TextNetwork
    embedding_ : (n, d) float32, posterior means; rows follow ``network_.ids``
    embedding_std_ : (n, 1), posterior standard deviation, the same in every dimension
    history_ : list of dict, contrastive loss and validation AUC during training
    result_ : dict, seed, versions, machine, seconds, chosen settings and validation AUC

    Examples
    --------
    >>> import vhe
    >>> texts = {"a": "cats purr softly", "b": "cats purr and sleep",
    ...          "c": "stars shine softly", "d": "stars shine and sleep"}
    >>> network = vhe.TextNetwork.from_edges(texts, [("a", "b"), ("c", "d")])
    >>> model = vhe.VHE(random_state=0, max_steps=2, verbose=False).fit(network)
    >>> model.embedding_.shape
    (4, 200)
    """

    config_class = VHEConfig

    def _processes(self) -> contextlib.AbstractContextManager[None]:
        if process_group.world_size() > 1:
            raise VHEError(
                "the graph model trains in one process: start it without torchrun, or use the pair "
                "model (PairVHE, --model pair)"
            )
        return contextlib.nullcontext()

    def _train(self, prepared: Preparation) -> TrainingState:
        config, corpus, seed = self.config, prepared.corpus, prepared.seed
        with Progress("word vectors", show=self.verbose):
            words = torch.zeros(len(corpus.vocabulary) + 1, config.latent_dim)
            words[PADDING + 1 :] = torch.from_numpy(
                lsa_word_vectors(corpus, config.latent_dim, seed)
                if config.word_init == "lsa"
                else random_word_vectors(len(corpus.vocabulary), config.latent_dim, seed)
            )
            words = words.to(prepared.device)
        self._codes = TextCodes(corpus, prepared.device)
        with Progress("text neighbours", show=self.verbose):
            codes = self._codes(words)
            self._neighbours = text_neighbours(codes.cpu().numpy(), self._codes.empty)
        resumed = prepared.resumed()
        if resumed is not None:
            strength, weight = (resumed[0].chosen[k] for k in ("link_strength", "text_knn_weight"))
        else:
            with Progress("choosing strengths", show=self.verbose) as progress:
                strength, weight = choose_weights(
                    codes,
                    corpus.lengths,
                    self._neighbours,
                    prepared.links,
                    prepared.validation,
                    link_strength=config.link_strength,
                    text_knn_weight=config.text_knn_weight,
                    seed=seed,
                    progress=progress.update,
                )
        self._strengths: dict[str, Any] = {"link_strength": strength, "text_knn_weight": weight}
        prior = self._prior(corpus, prepared.links, prepared.device)
        trainer = GraphTrainer(config, words, self._codes, prior, prepared.validation, seed)
        with Progress("training", config.max_steps, show=self.verbose) as progress:
            loop = TrainingLoop(
                trainer,
                steps=config.max_steps,
                validate_every=config.validate_every,
                patience=config.patience,
                report=progress.update,
                checkpoint=prepared.saved_in,
            )
            loop.state.chosen = dict(self._strengths)
            if resumed is not None:
                loop.resume(*resumed)
            state = loop.run()
        self._words = trainer.words.detach()
        return state

    def _prior(self, corpus: Corpus, links: NDArray[np.int64], device: torch.device) -> GraphPrior:
        return GraphPrior(links, corpus.lengths, self._neighbours, device=device, **self._strengths)

    def _masked_scales(self, prepared: Preparation, names: list[str]) -> MaskedScales:
        links, lengths = prepared.network.links, prepared.corpus.lengths
        codes = self._codes(self._words)
        priors = {"embedding": self._prior(prepared.corpus, links, prepared.device)}
        for name in names:
            priors[name] = GraphPrior(
                links, lengths, link_strength=LINK_STRENGTHS[name], device=prepared.device
            )

        def scales(masked: NDArray[np.int64], vertices: NDArray[np.int64]) -> dict[str, Rows]:
            hidden = known_pairs(prepared.held_out[masked], links, len(prepared.network))
            numbers, chosen = np.flatnonzero(hidden), torch.from_numpy(vertices)
            return {
                name: prior.posterior(numbers).mean(codes)[chosen].cpu().numpy()
                for name, prior in priors.items()
            }

        return scales

    def _finalise(self, prepared: Preparation) -> None:
        with Progress("posterior", show=self.verbose), torch.no_grad():
            posterior = self._prior(
                prepared.corpus, prepared.network.links, prepared.device
            ).posterior()
            arrays: dict[str, Any] = {
                "words": self._words,
                "centre": self._codes.centre(self._words),
                "mean": posterior.mean(self._codes(self._words), ITERATIONS),
                "variance": posterior.variance(prepared.seed),
                "precision": posterior.precision.squeeze(1),
                "diagonal": posterior.diagonal.squeeze(1),
            }
            arrays = {name: value.cpu().numpy() for name, value in arrays.items()}
            arrays |= {"mean_log_length": mean_log_length(prepared.corpus.lengths)}
            self._use(GraphModel(**arrays, **self._strengths, neighbours=self._neighbours))
            everything = np.arange(len(prepared.network))
            extra = [name for name in LINK_STRENGTHS if name in self._link_posterior.names]
            found = self._masked_scales(prepared, extra)(everything[:0], everything)
            self._scales = {name: found[name] for name in extra}
        del self._codes, self._words, self._neighbours, self._strengths


class PairVHE(Estimator):
    """Variational Homophilic Embedding as the paper has it: the ELBO over pairs of vertices.

    Settings are those of `PairVHEConfig`; ``PairVHE.from_config(PairVHEConfig.paper())`` is the
    paper to the letter. The other parameters are those of `Estimator`. Under torchrun all processes
    train one model.

    Attributes
    ----------
    network_ : TextNetwork
    embedding_, embedding_std_ : (n, d) float32, mean and standard deviation over contexts; rows
        follow ``network_.ids``
    history_ : list of dict, the terms of the ELBO and the validation AUC during training
    result_ : dict, seed, versions, machine, seconds and validation AUC
    """

    config_class = PairVHEConfig
    model_name = "pair"
    contexts: int
    _pairs: PairVAE

    def _processes(self) -> contextlib.AbstractContextManager[None]:
        return process_group.initialised()

    def _train(self, prepared: Preparation) -> TrainingState:
        config, corpus, network = self.config, prepared.corpus, prepared.network
        pi0 = config.pi0 or density(network)
        with Progress("word vectors", show=self.verbose):
            model = PairVAE(config, len(corpus.vocabulary), len(network), pi0)
            model.initialise(corpus, prepared.seed)
            self._pairs = model.to(prepared.device)
            trainer = PairTrainer(
                model, corpus, prepared.links, prepared.validation, seed=prepared.seed
            )
        resumed = prepared.resumed()
        with Progress("training", trainer.steps, show=self.verbose) as progress:
            state = train(
                trainer,
                validate_every=max(1, trainer.steps // 6),
                patience=None,
                report=progress.update,
                checkpoint=prepared.saved_in,
                resume=resumed,
            )
        self._pairs.eval()
        return state

    def _masked_scales(self, prepared: Preparation, names: list[str]) -> MaskedScales:
        known = LinkSet(prepared.links, len(prepared.network))  # held-out links were never seen
        contexts = min(self.config.contexts, CALIBRATION_CONTEXTS)

        def scales(masked: NDArray[np.int64], vertices: NDArray[np.int64]) -> dict[str, Rows]:
            model, corpus, seed = self._pairs, prepared.corpus, prepared.seed
            found = embedding_of(model, corpus, known, vertices, contexts=contexts, seed=seed)
            return {"embedding": found}

        return scales

    def _finalise(self, prepared: Preparation) -> None:
        found = self._global(prepared.network, prepared.corpus, self.contexts, prepared.seed)
        self.embedding_, self.embedding_std_ = found
        self._scales: dict[str, Rows] = {}
        self._pairs.to("cpu")

    def _global(
        self, network: TextNetwork, corpus: Corpus, contexts: int | None, seed: int
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Global embeddings and their standard deviations; ``contexts`` None averages over all."""
        links = LinkSet(network.links, len(network))
        with Progress("embedding", show=self.verbose) as progress:
            found = global_embedding(
                self._pairs, corpus, links, contexts=contexts, seed=seed, progress=progress.report
            )
        return found.mean, np.sqrt(found.variance)

    def embed(
        self,
        ids: Hashable | Iterable[Hashable] | None = None,
        *,
        return_std: bool = False,
        contexts: int | Literal["all"] | None = None,
    ) -> Any:
        """The embedding of one vertex, (d,), of several or of all, (k, d); with ``return_std`` also
        its standard deviation, of the same shape.

        ``contexts`` averages the local embeddings over that number of other vertices, "all" over
        all of them; None returns the embedding of the fit.
        """
        if contexts is None:
            return super().embed(ids, return_std=return_std)
        self._check_fitted()
        if contexts != "all" and not (is_integer(contexts) and contexts >= 1):
            raise VHEError(
                f"contexts is {contexts!r}, but must be an integer of at least 1, or all"
            )
        count = None if contexts == "all" else contexts
        mean, std = self._global(self.network_, self._corpus, count, self.seed_)
        rows = self._vertices(ids)
        return (mean[rows], std[rows]) if return_std else mean[rows]

    def _embed_new(
        self, texts: Corpus, links: NDArray[np.int64], method: InductiveMethod | None
    ) -> pair_inductive.InductivePairs:
        if method not in (None, "fast", "paper"):
            raise VHEError(f"unknown method {method!r}: use fast or paper")
        with Progress("new vertices", len(texts), show=self.verbose) as progress:
            return pair_inductive.embed_new(
                self._pairs,
                self._corpus,
                self.network_.links,
                texts,
                links,
                method=method or "fast",
                contexts=min(self._config.contexts, CALIBRATION_CONTEXTS),
                seed=self.seed_,
                progress=progress.update,
            )

    def _extend(self, found: pair_inductive.InductivePairs, scales: dict[str, Rows]) -> None:
        table = self._pairs.structure.weight.detach().cpu().numpy()
        structure = np.concatenate([table, found.structure])
        self._pairs = pair_inductive.with_structure(self._pairs, structure)
        self.embedding_ = np.concatenate([self.embedding_, found.mean])
        self.embedding_std_ = np.concatenate([self.embedding_std_, standard_deviation(found)])

    def _attribute(self, a: TextReading, b: TextReading) -> tuple[Side, Side, float, float]:
        codes = [
            self.embedding_[end.vertex]
            if end.vertex is not None
            else self.embed_texts([end.text])[0][0]
            for end in (a, b)
        ]
        found = pair_attribution.attribute(self._pairs, a.tokens, b.tokens, codes[0], codes[1])
        vocabulary = frozenset(self.vocabulary_)
        return (
            make_side(self._id(a), a.text, vocabulary, found.source, found.alignment_source),
            make_side(self._id(b), b.text, vocabulary, found.target, found.alignment_target),
            found.text_score,
            cosine(codes[0], codes[1]),
        )

    def _state(self) -> tuple[Arrays, dict[str, float]]:
        weights = self._pairs.state_dict().items()
        arrays: Arrays = {f"network.{name}": v.cpu().numpy() for name, v in weights}
        arrays |= {"mean": self.embedding_, "std": self.embedding_std_}
        return arrays, {"pi0": self._pairs.pi0}

    def _load_state(self, arrays: Arrays, numbers: dict[str, float]) -> None:
        if set(numbers) != {"pi0"}:
            raise ValueError(f"the numbers are {sorted(numbers)}")
        # copies: torch takes no arrays that are read-only, as those of a mapped file are
        own = {name: np.array(value) for name, value in arrays.items()}
        self.embedding_, self.embedding_std_ = (own.pop(name) for name in ("mean", "std"))
        weights = {
            name.removeprefix("network."): torch.from_numpy(value) for name, value in own.items()
        }
        words, vertices = len(self.vocabulary_), len(self.network_)
        try:
            with torch.device("meta"):  # sizes that the settings claim take no memory yet
                model = PairVAE(self.config, words, vertices, numbers["pi0"])
        except (RuntimeError, TypeError, OverflowError) as error:  # sizes that no tensor can have
            raise ValueError(str(error)) from None
        expected = {name: (v.shape, v.dtype) for name, v in model.state_dict().items()}
        if expected != {name: (v.shape, v.dtype) for name, v in weights.items()}:
            raise ValueError("the weights do not match the network")
        model.to_empty(device="cpu").load_state_dict(weights)
        self._pairs = model.eval()


def load_model(folder: str | Path) -> VHE | PairVHE:
    """Read a model folder that `save` or ``vhe fit`` wrote."""
    saved = read_model(Path(folder))
    return checked(VHE if saved.model == "graph" else PairVHE, saved, Path(folder))
