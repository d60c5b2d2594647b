"""`PairVHE`, the estimator of the paper: the ELBO over pairs of vertices."""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from vhe.config import PairVHEConfig
from vhe.data.network import TextNetwork
from vhe.data.sampling import LinkSet
from vhe.data.text import Corpus
from vhe.errors import VHEError
from vhe.estimators.base import Estimator, MaskedScales, Preparation
from vhe.fitted import Arrays, cosine
from vhe.pair import attribution as pair_attribution
from vhe.pair import inductive as pair_inductive
from vhe.pair.embedding import embedding_of, global_embedding
from vhe.pair.model import PairVAE
from vhe.pair.training import PairTrainer, train
from vhe.predict.explain import Side, make_side
from vhe.predict.new_texts import InductiveMethod, standard_deviation
from vhe.predict.pair_features import Rows
from vhe.predict.predictor import TextReading, density
from vhe.runtime import process_group
from vhe.runtime.checks import is_integer
from vhe.runtime.loop import TrainingState
from vhe.runtime.progress import Progress
from vhe.text.vertex_vectors import VectorSource

CALIBRATION_CONTEXTS = 4


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

    def __init__(
        self,
        *,
        random_state: int | None = None,
        threads: int | None = None,
        device: str = "auto",
        verbose: bool = True,
        max_words: int = PairVHEConfig.max_words,
        min_count: int = PairVHEConfig.min_count,
        word_dim: int = PairVHEConfig.word_dim,
        word_init: Literal["lsa", "random"] = PairVHEConfig.word_init,
        kernels: int = PairVHEConfig.kernels,
        kernel_width: int = PairVHEConfig.kernel_width,
        latent_dim: int = PairVHEConfig.latent_dim,
        structure: Literal["learned", "none"] = PairVHEConfig.structure,
        structure_dim: int = PairVHEConfig.structure_dim,
        hidden_dim: int = PairVHEConfig.hidden_dim,
        homophily: float = PairVHEConfig.homophily,
        pi0: float | None = PairVHEConfig.pi0,
        residual: bool = PairVHEConfig.residual,
        shared_posterior: bool = PairVHEConfig.shared_posterior,
        link_posterior: Literal["text", "mlp"] = PairVHEConfig.link_posterior,
        link_features: str = PairVHEConfig.link_features,
        decoder: Literal["gaussian", "multinomial"] = PairVHEConfig.decoder,
        target: Literal["mean", "max"] = PairVHEConfig.target,
        fixed_target: bool = PairVHEConfig.fixed_target,
        precision: float = PairVHEConfig.precision,
        alpha: float = PairVHEConfig.alpha,
        negatives: int = PairVHEConfig.negatives,
        link_weight: float = PairVHEConfig.link_weight,
        batch_size: int = PairVHEConfig.batch_size,
        near_pairs: int = PairVHEConfig.near_pairs,
        learning_rate: float = PairVHEConfig.learning_rate,
        structure_rate: float = PairVHEConfig.structure_rate,
        warmup: int = PairVHEConfig.warmup,
        decay: bool = PairVHEConfig.decay,
        steps: int = PairVHEConfig.steps,
        epochs: float = PairVHEConfig.epochs,
        validation: float = PairVHEConfig.validation,
        contexts: int = PairVHEConfig.contexts,
    ) -> None:
        self._store_parameters(locals())

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

    def _remarks(
        self, network: TextNetwork, vectors: tuple[VectorSource, Rows] | None
    ) -> Sequence[str]:
        given = {"the vectors": network.vectors, "the weights of links": network.edge_weights}
        unused = [name for name, values in given.items() if values is not None]
        if not unused:
            return ()
        return (f"the pair model does not use {' and '.join(unused)} of {network.name}",)

    def _masked_scales(
        self, prepared: Preparation, names: list[str]
    ) -> list[tuple[MaskedScales, NDArray[np.int64]]]:
        known = LinkSet(prepared.links, len(prepared.network))  # held-out links were never seen
        contexts = min(self.config.contexts, CALIBRATION_CONTEXTS)

        def scales(hidden: NDArray[np.bool_], vertices: NDArray[np.int64]) -> dict[str, Rows]:
            model, corpus, seed = self._pairs, prepared.corpus, prepared.seed
            found = embedding_of(model, corpus, known, vertices, contexts=contexts, seed=seed)
            return {"embedding": found}

        return [(scales, prepared.held_out)]

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
        """Return the embedding of one vertex, of several or of all.

        Parameters
        ----------
        ids : id, or list or array of ids, optional
            default: all vertices
        return_std : bool
            also return the standard deviation
        contexts : int or "all", optional
            number of other vertices over which the local embeddings are averaged; default: the
            embedding of the fit

        Returns
        -------
        mean : (d,) for one id, otherwise (k, d)
        std : of the same shape
            only with ``return_std``
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

    def _extend(
        self, texts: Corpus, found: pair_inductive.InductivePairs, scales: dict[str, Rows]
    ) -> None:
        table = self._pairs.structure.weight.detach().cpu().numpy()
        structure = np.concatenate([table, found.structure])
        self._pairs = pair_inductive.with_structure(self._pairs, structure)
        self.embedding_ = np.concatenate([self.embedding_, found.mean])
        self.embedding_std_ = np.concatenate([self.embedding_std_, standard_deviation(found)])

    def _keep(self, kept: NDArray[np.int64]) -> None:
        structure = self._pairs.structure.weight.detach().cpu().numpy()[kept]
        self._pairs = pair_inductive.with_structure(self._pairs, structure)
        self.embedding_, self.embedding_std_ = self.embedding_[kept], self.embedding_std_[kept]

    def _attribute(
        self, a: TextReading, b: TextReading
    ) -> tuple[Side, Side, dict[str, float], float]:
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
            {"texts": found.text_score},
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
