"""VHE: the one class most people meet."""

from __future__ import annotations

import difflib
import inspect
import secrets
import time
import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from vhe.config import VHEConfig
from vhe.data.checked import is_whole, number_edges
from vhe.data.network import TextNetwork
from vhe.data.pairs import LinkSet
from vhe.data.split import validation_links
from vhe.data.text import Corpus
from vhe.errors import VHEError
from vhe.evaluate.calibration import ReliabilityCurve, sigmoid
from vhe.evaluate.contract import CosineMethod
from vhe.infer import explain as words_behind
from vhe.infer.embed import GlobalEmbedding, context_pairs, global_embedding
from vhe.infer.explain import Explanation, Reading
from vhe.infer.likely import at_density, known_pairs
from vhe.infer.neighbours import nearest, partners
from vhe.infer.score import calibrate, warped
from vhe.infer.unseen import (
    AT_ONCE,
    CONTEXTS,
    Placed,
    Residents,
    Way,
    joined,
    place,
    with_structure,
)
from vhe.nn.pair_vae import PairVAE
from vhe.train.machine import find_device, using_threads
from vhe.train.model_folder import SavedModel, pair_vae, read_model, write_model
from vhe.train.progress import Progress
from vhe.train.provenance import provenance
from vhe.train.trainer import Trainer

if TYPE_CHECKING:
    import networkx
    import pandas
    from torch_geometric.data import Data

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
            structure = trainer.structure
            if structure is not None:  # the validation links have done their duty
                structure.use(network.links, state.softness)
            number = np.flatnonzero(known_pairs(judges, network.links, len(network)))

            def leave_out(rows: NDArray[np.int64]) -> None:
                if structure is not None:
                    structure.store(without=number[rows])

            self._calibration, curve = calibrate(
                model,
                corpus,
                LinkSet(links, len(network)),
                judges,
                contexts=min(config.contexts, CALIBRATION_CONTEXTS),
                seed=seed,
                leave_out=leave_out,
            )
            if structure is not None:
                structure.store()
            self._remember(config, network, corpus, model, seed, state.softness)
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
            "softness": state.softness,
            "calibration_error": curve.error,
            "reliability": {f.name: getattr(curve, f.name).tolist() for f in fields(curve)},
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

        ``contexts`` averages the local embeddings over that many other vertices, as the paper
        does, "all" over all of them; None gives the embedding that was made when the model was
        fitted.
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

    def predict_proba(self, pairs: Iterable[Pair], *, balanced: bool = True) -> NDArray[np.float64]:
        """The probability of a link for each pair of ids: (m,).

        It is calibrated on held-out links, for as many links as non-links; with
        ``balanced=False`` for pairs drawn from all pairs of the network, of which few are links.
        """
        return self.probability_indices(*self._ends(pairs), balanced=balanced)

    def probability_indices(
        self, sources: NDArray[np.int64], targets: NDArray[np.int64], *, balanced: bool = True
    ) -> NDArray[np.float64]:
        return self._probability(self.score_indices(sources, targets), balanced)

    def _probability(self, scores: NDArray[np.float32], balanced: bool) -> NDArray[np.float64]:
        slope, offset = self._calibration
        even = sigmoid(slope * warped(scores) + offset)
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
        chances = self._probability(scores[best], balanced=False)
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
        partner, cosine = partners(self.embedding_, network.links, _checked_k(k))
        source, place = np.nonzero(partner >= 0)
        target = partner[source, place]
        return pandas.DataFrame(
            {
                "source": [network.ids[i] for i in source],
                "target": [network.ids[j] for j in target],
                "probability": self._probability(cosine[source, place], balanced=False),
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
            )
        )

    def explain_texts(self, a: str, b: str) -> Explanation:
        """The same for two texts that are no vertices."""
        corpus, placed = self._place([a, b], np.zeros((0, 2), dtype=np.int64), None)
        tokens = np.split(corpus.tokens, corpus.offsets[1:2])
        readings = zip((a, b), tokens, placed.mean, placed.own, strict=True)
        return self._explain(*(Reading(None, t, w, z, float(o)) for t, w, z, o in readings))

    def _explain(self, a: Reading, b: Reading) -> Explanation:
        joint = self._config.structure == "joint"
        source, target, text, structure = words_behind.explain(
            self._model,
            frozenset(self._corpus.vocabulary),
            self._residents.center if joint else None,
            a,
            b,
        )
        score = np.array([text + structure], dtype=np.float32)
        even, sparse = (float(self._probability(score, balanced=b)[0]) for b in (True, False))
        return Explanation(source, target, even, sparse, text + structure, text, structure)

    # --- vertices that come later

    def embed_texts(
        self,
        texts: Sequence[str],
        edges: Iterable[tuple[int, Hashable]] | None = None,
        *,
        method: Way | None = None,
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
            if not (is_whole(text) and 0 <= text < len(texts)):
                raise VHEError(f"an edge names text {text!r}, but there are {len(texts)} texts")
        ends = self.network_.indices([vertex for _, vertex in known])
        news = np.array([text for text, _ in known], dtype=np.int64) + len(self.network_)
        _, placed = self._place(texts, np.column_stack([news, ends]), method)
        return placed.mean, np.sqrt(placed.variance)

    def add_vertices(
        self,
        texts: Mapping[Hashable, str],
        edges: Iterable[Pair] = (),
        labels: Mapping[Hashable, Hashable | None] | None = None,
        *,
        method: Way | None = None,
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
            it maximises the bound over some contexts. The better one for the model's settings
            when left out.
        """
        self._check_fitted()
        network, pairs = self.network_, list(edges)
        there = set(network.ids)
        for vertex in texts:
            if vertex in there:
                raise VHEError(f"{vertex!r} is a vertex already: give new vertices new ids")
        ids = [*network.ids, *texts]
        rows = number_edges(ids, *_columns(pairs), "edge {}".format)
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
        softness = self._residents.softness
        self._remember(self._config, grown, texts_too, model, self.seed_, softness)
        self.embedding_ = np.concatenate([self.embedding_, placed.mean])
        self.embedding_std_ = np.concatenate([self.embedding_std_, np.sqrt(placed.variance)])
        self.result_ = self.result_ | {"added": self.result_.get("added", 0) + len(texts)}
        return self

    def _place(
        self, texts: Sequence[str], links: NDArray[np.int64], method: Way | None
    ) -> tuple[Corpus, Placed]:
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
        softness = float(saved.result.get("softness", 0))
        loaded._remember(saved.config, saved.network, corpus, model, seed, softness)
        loaded.embedding_, loaded.embedding_std_ = saved.mean, saved.std
        loaded._calibration = saved.calibration
        loaded.history_, loaded.result_ = saved.history, saved.result
        return loaded

    def _remember(
        self,
        config: VHEConfig,
        network: TextNetwork,
        corpus: Corpus,
        model: PairVAE,
        seed: int,
        softness: float,
    ) -> None:
        self._config, self.network_, self._corpus = config, network, corpus
        self._model, self.seed_ = model.eval(), seed
        self._residents = Residents(self._model, corpus, network.links, softness)

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
        sources, targets = _columns(pairs)
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


def _columns(pairs: Iterable[Pair]) -> tuple[list[Hashable], list[Hashable]]:
    """The sources and the targets of pairs of ids."""
    try:
        listed = list(pairs)
        if any(isinstance(pair, str) for pair in listed):
            raise TypeError
        return [a for a, _ in listed], [b for _, b in listed]
    except (TypeError, ValueError):
        raise VHEError("pairs has to be a list of pairs of ids, as [('a', 'b')]") from None


def _checked_k(k: object) -> int:
    if not (is_whole(k) and k >= 0):  # type: ignore[operator]
        raise VHEError(f"k is {k!r}, but it has to be a whole number of at least 0")
    return int(k)  # type: ignore[call-overload]


def snippet(text: str) -> str:
    """The beginning of a text, in one line."""
    first = " ".join(text.split())
    return first if len(first) <= SNIPPET else first[: SNIPPET - 1].rstrip() + "…"
