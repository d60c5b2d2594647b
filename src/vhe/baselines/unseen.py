"""Inductive forms of the contextual baselines: unseen vertices, of which only the texts are given
(† and ‡ in the paper's comparison, section 4).

† (`…Text`) uses the text half only; ‡ (`…MLP`) predicts the structure half from the text half, by
an MLP with one hidden layer that is fitted on the vertices of the training network. `VHEOfAllTexts`
is the transductive form of VHE, for comparison.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor

from vhe.baselines.cane import CANE
from vhe.baselines.contextual import Contextual
from vhe.baselines.pwa import PWA
from vhe.baselines.wane import WANE
from vhe.data.network import TextNetwork
from vhe.data.sampling import LinkSet, random_stream
from vhe.data.text import Corpus
from vhe.estimators import VHE
from vhe.pair.embedding import local_embedding
from vhe.pair.inductive import with_structure
from vhe.predict.scoring import CosineMethod

MLP_EPOCHS = 200
EARLY_STOPPING = 100  # vertices beyond which some are held out to stop the MLP


class TextHalf(CosineMethod):
    """† of a contextual baseline: all vertices, seen or not, by their texts.

    ``settings`` are those of the baseline. The contexts of an unseen text are random seen
    vertices.
    """

    def __init__(self, method: type[Contextual], **settings: Any) -> None:
        self.contextual = method(**settings)

    def fit(self, network: TextNetwork) -> Self:
        """Fit the baseline; ``embedding_`` is its text half."""
        self.contextual.fit(network)
        self.embedding_ = self._text(self.contextual.embedding_)
        return self

    def add_vertices(self, texts: Mapping[Hashable, str]) -> Self:
        """Add unseen vertices: their rows follow those of ``embedding_``."""
        rows = self._rows(list(texts.values()))
        self.embedding_ = np.concatenate([self.embedding_, rows])
        return self

    def _rows(self, texts: Sequence[str]) -> np.ndarray:
        """Rows of unseen texts, in the space of ``embedding_``: (k, d)."""
        return text_vectors(self.contextual, texts)

    def _text(self, rows: np.ndarray) -> np.ndarray:
        return rows[:, self.contextual.config.structure_dim :]


class PredictedStructure(TextHalf):
    """‡ of a contextual baseline: seen vertices have the embedding of the baseline, others
    [MLP(text half) ; text half]."""

    def fit(self, network: TextNetwork) -> Self:
        """Fit the baseline, then the MLP on the vertices that have links."""
        self.contextual.fit(network)
        self.embedding_ = rows = self.contextual.embedding_
        size = self.contextual.config.structure_dim
        linked = np.unique(network.links)
        known = linked if len(linked) else np.arange(len(network))
        self.mlp_ = MLPRegressor(
            hidden_layer_sizes=2 * size,
            early_stopping=len(known) > EARLY_STOPPING,
            max_iter=MLP_EPOCHS,
            random_state=self.contextual.random_state,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # it need not converge
            self.mlp_.fit(self._text(rows)[known], rows[known, :size])
        return self

    def _rows(self, texts: Sequence[str]) -> np.ndarray:
        text = super()._rows(texts)
        if not len(text):
            return np.empty((0, self.embedding_.shape[1]), dtype=np.float32)
        structure = self.mlp_.predict(text).reshape(len(text), -1)
        return np.concatenate([structure, text], axis=1).astype(np.float32)


def text_vectors(method: Contextual, texts: Sequence[str]) -> np.ndarray:
    """The text half of unseen texts, averaged over seen contexts: (k, word_dim)."""
    config, seen = method.config, method.corpus_
    new = Corpus.encode(texts, seen.vocabulary, max_words=config.max_words)
    corpus = seen.joined(new)
    structure = method.model_.structure.weight.detach().numpy()
    model = with_structure(method.model_, np.pad(structure, ((0, len(new)), (0, 0))))
    no_links = LinkSet(np.empty((0, 2), dtype=np.int64), len(corpus))
    vertices = np.arange(len(seen), len(corpus))
    total = np.zeros((len(texts), config.word_dim), dtype=np.float32)
    rng = random_stream(method.random_state, 8)
    for _ in range(config.contexts):
        others = rng.integers(len(seen), size=len(vertices))
        local = local_embedding(model, corpus, no_links, vertices, others)
        total += local.mean_i[:, config.structure_dim :]
    return total / np.float32(config.contexts)


CANEText, CANEMLP = partial(TextHalf, CANE), partial(PredictedStructure, CANE)
WANEText, WANEMLP = partial(TextHalf, WANE), partial(PredictedStructure, WANE)
PWAText, PWAMLP = partial(TextHalf, PWA), partial(PredictedStructure, PWA)


class VHEOfAllTexts(VHE):
    """VHE fitted to all texts, as TF-IDF and diffused text are: an unseen vertex is one without a
    link."""

    reads_all_texts: ClassVar = True
