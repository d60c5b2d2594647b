"""Link prediction by a graph neural network on text features: what a practitioner would try first.

An encoder of two layers (GCN or GraphSAGE) and a head (MLP or common neighbours) are trained by
the cross-entropy of links and of as many random non-links. The links of a batch are masked while
they are predicted, and training stops by the AUC of validation links. `benchmarks/tune_gnn.py`
searches the settings on validation links.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import partial
from typing import Literal, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from vhe.baselines.graph_networks import Head, Layer, PairHead, TwoLayers, unit_features
from vhe.baselines.matrices import lsa
from vhe.baselines.sentences import Encoder, sentence_vectors
from vhe.baselines.tfidf import tfidf_rows
from vhe.baselines.validation import Validation
from vhe.data.network import TextNetwork
from vhe.data.splits import NonNeighbourSampler
from vhe.predict.scoring import PAIRS_AT_ONCE

LSA_DIMENSIONS = 300


@dataclass(kw_only=True)
class GraphNetworkLinks:
    """Scores a pair by its predicted probability; ``embedding_`` is the output of the encoder.

    Parameters
    ----------
    layer : ``gcn`` or ``sage``.
    head : ``mlp`` (product of both embeddings) or ``ncn`` (also the common neighbours).
    features : ``lsa`` of TF-IDF, or ``sentences``, vectors of a pretrained encoder.
    width : dimension of both layers.
    dropout : of the hidden layer and of the head.
    learning_rate, weight_decay : of AdamW.
    masked : fraction of the training links in a batch, at most 1,024 links.
    max_steps : limit of the optimiser steps.
    validate_every : steps between validations.
    patience : validations without improvement before training stops.
    encoder : of the sentence vectors; see `sentence_vectors`.
    random_state : seed.

    Attributes
    ----------
    validation_auc_ : highest AUC of the validation links; None without any.
    step_ : step whose weights are used.
    """

    layer: Layer
    head: Head
    features: Literal["lsa", "sentences"]
    width: int = 256
    dropout: float = 0.6
    learning_rate: float = 3e-3
    weight_decay: float = 0.01
    masked: float = 0.4
    max_steps: int = 400
    validate_every: int = 10
    patience: int = 8
    encoder: Encoder = None
    random_state: int = 0

    def fit(self, network: TextNetwork) -> Self:
        """Train on the links; the final embedding reads all of them, validation links included."""
        if self.features == "sentences":
            rows = sentence_vectors(network.texts, self.encoder)
        else:
            rows = lsa(tfidf_rows(network.texts), LSA_DIMENSIONS, self.random_state)
        x = unit_features(rows)
        self._links = network.links
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.random_state)
            self._network = TwoLayers(self.layer, x.shape[1], self.width, self.dropout)
            self._head = PairHead(self.head, self.width, self.dropout)
            self.validation_auc_, self.step_ = self._train(network, x)
        self._z = self._encoded(x, network.links)
        self.embedding_ = self._z.numpy()
        return self

    def _train(self, network: TextNetwork, x: Tensor) -> tuple[float | None, int]:
        """Train; restore the weights of the best validation; return its AUC and its step."""
        validation = Validation(network, self.random_state)
        links = validation.training
        sampler = NonNeighbourSampler(network.links, len(network))
        rng = np.random.default_rng([self.random_state, 2])
        models = torch.nn.ModuleList([self._network, self._head])
        adam = torch.optim.AdamW(
            models.parameters(), self.learning_rate, weight_decay=self.weight_decay
        )
        best: tuple[float, int] | None = None
        weights = copy.deepcopy(models.state_dict())
        size = max(min(round(self.masked * len(links)), 1024), 1)
        batches: list[np.ndarray] = []
        for step in range(1, self.max_steps + 1 if len(links) else 1):
            if not batches:
                order = rng.permutation(len(links))
                batches = [order[k : k + size] for k in range(0, len(links), size)]
            batch = batches.pop()
            loss = self._loss(x, links, batch, sampler, rng)
            adam.zero_grad()
            loss.backward()
            adam.step()
            if validation and step % self.validate_every == 0:
                self._z, self._links = self._encoded(x, links), links
                auc = validation.auc(self.score_indices)
                if best is None or auc > best[0]:
                    best, weights = (auc, step), copy.deepcopy(models.state_dict())
                elif step - best[1] >= self.patience * self.validate_every:
                    break
        self._links = network.links
        if best is None:
            models.eval()
            return None, self.max_steps if len(links) else 0
        models.load_state_dict(weights)
        models.eval()
        return best

    def _loss(
        self,
        x: Tensor,
        links: np.ndarray,
        batch: np.ndarray,
        sampler: NonNeighbourSampler,
        rng: np.random.Generator,
    ) -> Tensor:
        """Cross-entropy of the links of a batch, which are masked, and of as many non-links."""
        visible = np.delete(links, batch, axis=0)
        positive = links[batch]
        known = rng.permuted(positive, axis=1)[:, 0]  # one end of each link
        known = known[sampler.count[known] > 0]
        i = torch.from_numpy(np.concatenate([positive[:, 0], known]))
        j = torch.from_numpy(np.concatenate([positive[:, 1], sampler.draw(known, rng)]))
        self._network.train()
        self._head.train()
        z = self._network(x, self._network.matrix(visible, len(x)))
        scores = self._head(z, i, j, visible)
        linked = torch.arange(len(i)) < len(positive)
        return softplus(torch.where(linked, -scores, scores)).mean()

    @torch.no_grad()
    def _encoded(self, x: Tensor, links: np.ndarray) -> Tensor:
        self._network.eval()
        self._head.eval()
        z: Tensor = self._network(x, self._network.matrix(links, len(x)))
        return z

    @torch.no_grad()
    def score_indices(self, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Probabilities of the pairs (sources[k], targets[k]): (m,)."""
        i, j = torch.from_numpy(sources), torch.from_numpy(targets)
        scores = torch.empty(len(i), dtype=torch.float64)
        for start in range(0, len(i), PAIRS_AT_ONCE):
            part = slice(start, start + PAIRS_AT_ONCE)
            scores[part] = self._head(self._z, i[part], j[part], self._links).double()
        return torch.sigmoid(scores).numpy()

    @torch.no_grad()
    def score_matrix(self, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Probabilities of each source with each target: (len(sources), len(targets))."""
        i, j = torch.from_numpy(sources), torch.from_numpy(targets)
        return torch.sigmoid(self._head.matrix(self._z, i, j, self._links).double()).numpy()


# The settings that benchmarks/tune_gnn.py chose; results/tuning has the search.
gcn_mlp = partial(GraphNetworkLinks, layer="gcn", head="mlp", features="lsa", learning_rate=0.01)
gcn_ncn = partial(GraphNetworkLinks, layer="gcn", head="ncn", features="lsa")
sage_mlp = partial(GraphNetworkLinks, layer="sage", head="mlp", features="lsa")
sage_ncn = partial(GraphNetworkLinks, layer="sage", head="ncn", features="lsa")
gcn_mlp_sentences = partial(
    GraphNetworkLinks,
    layer="gcn",
    head="mlp",
    features="sentences",
    learning_rate=0.01,
    dropout=0.3,
    weight_decay=0.1,
)
gcn_ncn_sentences = partial(
    GraphNetworkLinks,
    layer="gcn",
    head="ncn",
    features="sentences",
    learning_rate=1e-3,
    width=128,
    dropout=0.3,
    weight_decay=0.0,
)
sage_mlp_sentences = partial(GraphNetworkLinks, layer="sage", head="mlp", features="sentences")
sage_ncn_sentences = partial(GraphNetworkLinks, layer="sage", head="ncn", features="sentences")
