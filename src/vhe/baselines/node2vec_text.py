"""node2vec beside the texts: two halves of an embedding whose weights are chosen on validation
links."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from vhe.baselines.matrices import lsa
from vhe.baselines.node2vec import Node2Vec
from vhe.baselines.tfidf import tfidf_rows
from vhe.baselines.validation import Validation
from vhe.data.network import TextNetwork
from vhe.predict.scoring import CosineMethod
from vhe.runtime.arrays import unit_rows

TEXT_WEIGHTS = (0.0, 0.2, 0.35, 0.5, 0.65, 0.8, 1.0)


@dataclass(kw_only=True)
class Node2VecText(CosineMethod):
    """[√(1 - w) node2vec, √w LSA], each half of unit length, scored by cosine.

    The weight w is chosen by the AUC on validation links, with node2vec fitted without them; then
    node2vec is fitted on all links. A vertex without links has zeros in its first half, so that
    its text alone counts.

    Parameters
    ----------
    dimensions : dimension of each half.
    structure : the first half; default: node2vec with p = q = 1.
    random_state : seed.

    Attributes
    ----------
    text_weight_ : w.
    """

    dimensions: int = 100
    structure: Node2Vec | None = None
    random_state: int = 0

    def fit(self, network: TextNetwork) -> Self:
        """Fit both halves and choose their weights."""
        text = lsa(tfidf_rows(network.texts), self.dimensions, self.random_state)
        text = unit_rows(text - text.mean(axis=0) / 2).astype(np.float32)
        structure = self.structure or Node2Vec(
            dimensions=self.dimensions, p=1, q=1, random_state=self.random_state
        )
        self.text_weight_ = self._choose(network, text, structure)
        links = unit_rows(structure.fit(network).embedding_)
        self.embedding_ = _joined(links, text, self.text_weight_)
        return self

    def _choose(self, network: TextNetwork, text: np.ndarray, structure: Node2Vec) -> float:
        """The weight of the text with the highest AUC on validation links; ½ without them."""
        validation = Validation(network, self.random_state)
        if not validation:
            return 0.5
        links = unit_rows(structure.fit(network.with_edges(validation.training)).embedding_)

        def auc(weight: float) -> float:
            trial = CosineMethod()
            trial.embedding_ = _joined(links, text, weight)
            return validation.auc(trial.score_indices)

        return max(TEXT_WEIGHTS, key=auc)


def _joined(links: np.ndarray, text: np.ndarray, weight: float) -> np.ndarray:
    return np.concatenate([(1 - weight) ** 0.5 * links, weight**0.5 * text], axis=1)
