"""`VHE`, the default estimator: the graph-wide prior, solved for all codes at once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from vhe.config import VHEConfig
from vhe.data.network import TextNetwork
from vhe.data.text import PADDING
from vhe.errors import VHEError
from vhe.estimators.base import Estimator, MaskedScales, Preparation
from vhe.fitted import FittedGraph
from vhe.graph.blocks import Blocks
from vhe.graph.isolated import (
    isolated_couplings,
    isolated_posterior,
    isolated_weight,
    posterior_given,
)
from vhe.graph.memory import Size, columns_within
from vhe.graph.model import GraphModel, effective_lengths
from vhe.graph.neighbours import text_neighbours
from vhe.graph.prior import WHOLE_GRAPH, GraphPrior, mean_log_length
from vhe.graph.selection import EncoderChoice, choose_encoder_weight, choose_weights
from vhe.graph.training import CrossFitTrainer, GraphTrainer
from vhe.graph.validation import Fold, validation_folds
from vhe.predict.pair_features import LINK_STRENGTHS, Rows
from vhe.runtime import process_group
from vhe.runtime.arrays import distinct, release
from vhe.runtime.loop import TrainingLoop, TrainingState
from vhe.runtime.progress import Progress
from vhe.runtime.tables import parse_bytes
from vhe.text.codes import JointCodes, TextCodes
from vhe.text.lsa import lsa_word_vectors, random_word_vectors
from vhe.text.vertex_vectors import AnyEncoder, VectorSource, find_encoder, vertex_vectors


class VHE(FittedGraph, Estimator):
    """Variational Homophilic Embedding with the prior over the whole graph (the default).

    Text codes are smoothed over links and nearest texts by solving one sparse linear system, the
    posterior of all codes; the word vectors are fine-tuned through the solution. Settings are those
    of `VHEConfig`; the other parameters are those below and those of `Estimator`.

    Parameters
    ----------
    max_memory : int or str, optional
        bytes, or such as "3GB": columns are solved for in smaller blocks, with the same result
    encoder : str, path, callable or TextEncoder, optional
        Pretrained encoder whose vectors join the text codes: name or folder of a
        sentence-transformers model, or a function from a list of k texts to an array (k, columns).
        The vectors of a network that has some (``network.vectors``) are used without an encoder.
    encoder_device : str
        "auto" uses a GPU if there is one
    encoder_batch : int
        number of texts encoded at a time

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
    _masks_vertices = True
    max_memory: int | str | None

    def __init__(
        self,
        *,
        random_state: int | None = None,
        threads: int | None = None,
        device: str = "auto",
        verbose: bool = True,
        max_memory: int | str | None = None,
        encoder: AnyEncoder | None = None,
        encoder_device: str = "auto",
        encoder_batch: int = 32,
        max_words: int = VHEConfig.max_words,
        min_count: int = VHEConfig.min_count,
        latent_dim: int = VHEConfig.latent_dim,
        word_init: Literal["lsa", "random"] = VHEConfig.word_init,
        encoder_weight: float | None = VHEConfig.encoder_weight,
        link_strength: float | None = VHEConfig.link_strength,
        text_knn_weight: float | None = VHEConfig.text_knn_weight,
        link_features: str = VHEConfig.link_features,
        learning_rate: float = VHEConfig.learning_rate,
        step_links: int = VHEConfig.step_links,
        max_steps: int = VHEConfig.max_steps,
        validation: float = VHEConfig.validation,
        validate_every: int = VHEConfig.validate_every,
        patience: int = VHEConfig.patience,
    ) -> None:
        self._store_parameters(locals())

    def _processes(self) -> contextlib.AbstractContextManager[None]:
        if process_group.world_size() > 1:
            raise VHEError(
                "the graph model trains in one process: start it without torchrun, or use the pair "
                "model (PairVHE, --model pair)"
            )
        return contextlib.nullcontext()

    def _train(self, prepared: Preparation) -> TrainingState:
        config, corpus, seed = self.config, prepared.corpus, prepared.seed
        with Progress("word vectors", show=self.verbose) as progress:
            words = torch.zeros(len(corpus.vocabulary) + 1, config.latent_dim)
            words[PADDING + 1 :] = torch.from_numpy(
                lsa_word_vectors(corpus, config.latent_dim, seed, progress.report)
                if config.word_init == "lsa"
                else random_word_vectors(len(corpus.vocabulary), config.latent_dim, seed)
            )
            words = words.to(prepared.device)
        folds = validation_folds(prepared.links, prepared.validation, seed)
        resumed = prepared.resumed()
        if resumed is not None:
            chosen = resumed[0].chosen
            names = ("link_strength", "text_knn_weight", "encoder_weight")
            strength, weight, share = (chosen.get(name, 0.0) for name in names)
        else:
            share = self.config.encoder_weight
        words = self._use_vectors(prepared, words, share, folds)
        self._blocks = Blocks(self._codes, self._columns(prepared), self.verbose)
        with Progress("text codes", show=self.verbose) as progress:
            codes = self._blocks.use(words, progress.report)
        with Progress("text neighbours", show=self.verbose) as progress:
            self._neighbours = text_neighbours(codes, self._codes.without_code, progress.report)
        if resumed is None:
            with Progress("choosing strengths", show=self.verbose) as progress:
                strength, weight = choose_weights(
                    codes,
                    self._lengths,
                    self._neighbours,
                    folds,
                    link_strength=config.link_strength,
                    text_knn_weight=config.text_knn_weight,
                    relative_weights=prepared.network.relative_weights,
                    device=prepared.device,
                    progress=progress.update,
                )
        self._strengths: dict[str, Any] = {"link_strength": strength, "text_knn_weight": weight}
        trainer = CrossFitTrainer(
            [
                GraphTrainer(
                    config,
                    words,
                    self._codes,
                    self._prior(prepared, fold.links),
                    fold.held_out,
                    seed,
                    (codes, self._blocks.centre),
                    self._blocks.columns,
                )
                for fold in folds
            ]
        )
        del codes
        steps = config.max_steps if words.shape[1] else 0  # without word vectors, nothing to train
        with Progress("training", steps, show=self.verbose) as progress:
            loop = TrainingLoop(
                trainer,
                steps=steps,
                validate_every=config.validate_every,
                patience=config.patience,
                report=progress.update,
                checkpoint=prepared.saved_in,
            )
            loop.state.chosen = dict(self._strengths)
            if prepared.vectors is not None:
                loop.state.chosen["encoder_weight"] = self._choice.weight
            if resumed is not None:
                loop.resume(*resumed)
            state = loop.run()
        fold_words = trainer.words()
        self._words = torch.stack(fold_words).mean(dim=0) if len(folds) > 1 else fold_words[0]
        self._folds = list(zip(fold_words, (fold.held_out for fold in folds), strict=True))
        del trainer, loop
        if len(corpus) > WHOLE_GRAPH:  # tables for the link posterior; otherwise `means` solves
            self._blocks.use(self._words)
            for name in self._scale_names(self._feature_names()):
                self._blocks.table(name, partial(self._prior_of, prepared, name))
        return state

    def _vertex_vectors(self, network: TextNetwork, seed: int) -> tuple[VectorSource, Rows] | None:
        encoder = None
        if self.encoder is not None:
            encoder = find_encoder(self.encoder, self.encoder_device, self.encoder_batch)
        return vertex_vectors(
            network.texts,
            network.vectors,
            encoder,
            dim=self.config.latent_dim,
            seed=seed,
            show=self.verbose,
        )

    def _use_vectors(
        self,
        prepared: Preparation,
        words: torch.Tensor,
        weight: float | None,
        folds: list[Fold],
    ) -> torch.Tensor:
        """Choose the share of the vectors and set up the codes; return the word vectors to train.

        Words or vectors with a share of 0 are left out.
        """
        corpus, device = prepared.corpus, prepared.device
        self._codes, self._lengths = TextCodes(corpus, device), corpus.lengths
        self._choice = EncoderChoice(0.0, None, None)
        self._offered = self._vector_source = None
        self._vectors = np.zeros((len(corpus), 0), dtype=np.float32)
        if prepared.vectors is None:
            return words
        source, vectors = prepared.vectors
        lengths = effective_lengths(corpus.lengths, vectors)
        with Progress("encoder weight", show=self.verbose) as progress:
            self._choice = choose_encoder_weight(
                self._codes(words),
                torch.from_numpy(vectors).to(device),
                lengths,
                folds,
                given=weight if corpus.vocabulary else 1.0,
                relative_weights=prepared.network.relative_weights,
            )
            self._offered = source
            progress.update(1, encoder_sentence(self._details()["encoder"]))
        if not self._choice.weight:
            return words
        self._vector_source, self._vectors, self._lengths = source, vectors, lengths
        self._codes = JointCodes(corpus, vectors, self._choice.weight, device)
        return words if self._choice.weight < 1 else words[:, :0]

    def _details(self) -> dict[str, Any]:
        if self._offered is None:
            return {}
        identity = self._offered.identity
        choice = {
            "source": self._offered.name,
            "name": None if identity is None else identity.name,
            "weight": self._choice.weight,
            "validation_auc": self._choice.auc,
            "validation_auc_without": self._choice.auc_without,
        }
        return {"encoder": choice}

    def _prior(self, prepared: Preparation, links: NDArray[np.int64]) -> GraphPrior:
        return GraphPrior(
            links,
            self._lengths,
            self._neighbours,
            relative_weights=prepared.network.relative_weights(links),
            device=prepared.device,
            **self._strengths,
        )

    def _prior_of(self, prepared: Preparation, name: str) -> GraphPrior:
        """The prior of all links, of the embedding or of a scale, which couples the links only."""
        links = prepared.network.links
        if name == "embedding":
            return self._prior(prepared, links)
        return GraphPrior(
            links,
            self._lengths,
            link_strength=LINK_STRENGTHS[name],
            relative_weights=prepared.network.relative_weights(links),
            device=prepared.device,
        )

    def _columns(self, prepared: Preparation) -> int:
        """Columns of the posterior that are solved for at a time, so that memory suffices."""
        limit = self.max_memory
        network, corpus = prepared.network, prepared.corpus
        size = Size(
            vertices=len(network),
            links=len(network.links),
            characters=sum(map(len, network.texts)) if limit is not None else 0,
            words=int(corpus.lengths.mean()) + 1,
            vocabulary=len(corpus.vocabulary),
            dimensions=self.config.latent_dim,
            threads=torch.get_num_threads(),
        )
        return columns_within(size, parse_bytes(limit) if isinstance(limit, str) else limit)

    def _scale_names(self, names: Iterable[str]) -> list[str]:
        """The embedding and the scales among some features."""
        return ["embedding", *(name for name in LINK_STRENGTHS if name in names)]

    def _masked_scales(
        self, prepared: Preparation, names: list[str]
    ) -> list[tuple[MaskedScales, NDArray[np.int64]]]:
        """Embeddings of some vertices without some of the links, at each named scale."""
        links = prepared.network.links
        priors = {name: self._prior_of(prepared, name) for name in self._scale_names(names)}

        def scales(
            words: torch.Tensor, hidden: NDArray[np.bool_], vertices: NDArray[np.int64]
        ) -> dict[str, Rows]:
            codes = self._blocks.use(words)
            numbers, found = np.flatnonzero(hidden), {}
            for name, prior in priors.items():
                if name != "embedding":
                    found[name] = self._blocks.means(name, prior, numbers, vertices)
                    continue
                weight, n = self._isolated_weight(), len(codes)
                isolated, couplings = isolated_couplings(
                    links[~hidden], self._neighbours, n, weight
                )
                own = np.isin(isolated, vertices)
                isolated, couplings = isolated[own], couplings[own]
                near = distinct(couplings.indices)
                read = np.union1d(vertices, near)
                means = self._blocks.means(name, prior, numbers, read)
                found[name] = means[np.searchsorted(read, vertices)]
                found[name][np.searchsorted(vertices, isolated)], _ = posterior_given(
                    couplings[:, near],
                    prior.precision[isolated],
                    codes[isolated],
                    means[np.searchsorted(read, near)],
                )
            return found

        if not len(prepared.validation):
            return [(partial(scales, self._words), prepared.held_out)]
        return [(partial(scales, words), held_out) for words, held_out in self._folds]

    def _isolated_weight(self) -> float:
        """The weight of the nearest texts of vertices without links."""
        return isolated_weight(self.config.text_knn_weight, self._strengths["text_knn_weight"])

    def _finalise(self, prepared: Preparation) -> None:
        links = prepared.network.links
        prior = self._prior_of(prepared, "embedding")
        posterior = prior.posterior()
        codes = self._blocks.use(self._words)
        mean = self._blocks.table("embedding", lambda: prior)
        with Progress("variance", show=self.verbose), torch.no_grad():
            arrays: dict[str, Any] = {
                "words": self._words,
                "variance": posterior.variance(prepared.seed, width=self._blocks.columns),
                "precision": posterior.precision.squeeze(1),
                "diagonal": posterior.diagonal.squeeze(1),
            }
            arrays = {name: value.cpu().numpy() for name, value in arrays.items()}
        arrays |= {"mean": mean, "centre": self._blocks.centre, "vectors": self._vectors}
        isolated = isolated_posterior(
            links,
            self._neighbours,
            prior.precision,
            codes,
            mean,
            arrays["variance"],
            self._isolated_weight(),
        )
        for name in ("mean", "variance", "diagonal"):
            arrays[name][isolated.vertices] = getattr(isolated, name)
        release(codes)
        release(mean)
        numbers: dict[str, Any] = {
            "encoder_weight": self._choice.weight,
            "mean_log_length": mean_log_length(self._lengths),
        }
        self._use(GraphModel(**arrays, **numbers, **self._strengths, neighbours=self._neighbours))
        self._scales = {
            name: self._blocks.table(name, partial(self._prior_of, prepared, name))
            for name in self._scale_names(self._link_posterior.names)[1:]
        }
        del self._codes, self._words, self._folds, self._neighbours, self._strengths, self._blocks
        del self._vectors, self._lengths


def encoder_sentence(choice: dict[str, Any]) -> str:
    """A sentence on the share of the encoder, and on the validation AUC with and without it."""
    name = "encoder weight" if choice["source"] == "encoder" else "weight of the vectors"
    auc, without = choice["validation_auc"], choice["validation_auc_without"]
    if auc is None or without is None:
        return f"{name} {choice['weight']:g}"
    if not choice["weight"]:
        return f"{name} 0: not used, words alone are better (validation AUC {100 * without:.1f})"
    gain = f"validation AUC {100 * auc:.1f} against {100 * without:.1f} without"
    return f"{name} {choice['weight']:g} ({gain})"
