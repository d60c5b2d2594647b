"""Naive-VAE, the baseline of section 3 of the VHE paper: a variational auto-encoder of each text,
concatenated with node2vec's embedding of the links.

max Σ_i E_q[log N(x_i | f(z_i), s²)] - KL(q(z_i | x_i)‖N(0, I)), x_i the mean of the word vectors of
text i, encoder and decoder with one hidden layer, s learned. A text's embedding is the mean of q.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import nn

from vhe.baselines.node2vec import Node2Vec
from vhe.data.network import TextNetwork
from vhe.data.text import Corpus
from vhe.predict.scoring import CosineMethod
from vhe.runtime.arrays import unit_rows
from vhe.text.lsa import lsa_word_vectors, mean_words

HIDDEN = 200
BATCH = 256


@dataclass(kw_only=True)
class NaiveVAE(CosineMethod):
    """Text and structure embedding, each scaled to unit length, concatenated; scored by cosine.

    A vertex without words has zeros in its first half, one without links in its second.

    Parameters
    ----------
    dimensions : dimension of each half.
    epochs, learning_rate : of Adam over the texts.
    structure : the second half; default: node2vec with the same dimension.
    random_state : seed.

    Attributes
    ----------
    losses_ : mean loss of the texts in each epoch.
    """

    dimensions: int = 100
    epochs: int = 100
    learning_rate: float = 1e-3
    structure: Node2Vec | None = None
    random_state: int = 0

    def fit(self, network: TextNetwork) -> Self:
        """Train the halves independently."""
        corpus = Corpus.build(network.texts)
        pooled = mean_words(corpus, lsa_word_vectors(corpus, self.dimensions, self.random_state))
        text, self.losses_ = auto_encode(
            pooled, self.dimensions, self.epochs, self.learning_rate, self.random_state
        )
        text[corpus.lengths == 0] = 0
        structure = self.structure or Node2Vec(
            dimensions=self.dimensions, random_state=self.random_state
        )
        links = structure.fit(network).embedding_
        self.embedding_ = np.concatenate([unit_rows(text), unit_rows(links)], axis=1)
        return self


def auto_encode(
    pooled: np.ndarray, dimensions: int, epochs: int, learning_rate: float, seed: int
) -> tuple[np.ndarray, list[float]]:
    """Posterior means (n, dimensions) of rows (n, width), and the mean loss of each epoch."""
    x = torch.from_numpy(pooled - pooled.mean(axis=0))
    x = x / x.std(correction=0).clamp_min(1e-6)
    width = x.shape[1]
    losses = []
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        encoder = nn.Sequential(
            nn.Linear(width, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, 2 * dimensions)
        )
        decoder = nn.Sequential(nn.Linear(dimensions, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, width))
        log_s = nn.Parameter(torch.zeros(()))
        adam = torch.optim.Adam(
            [*encoder.parameters(), *decoder.parameters(), log_s], lr=learning_rate
        )
        for _ in range(epochs):
            total = 0.0
            for rows in torch.randperm(len(x)).split(BATCH):
                mu, log_sigma = encoder(x[rows]).chunk(2, dim=1)
                sigma = log_sigma.exp()
                error = ((decoder(mu + sigma * torch.randn_like(mu)) - x[rows]) ** 2).sum(dim=1)
                kl = 0.5 * (mu**2 + sigma**2 - 1 - 2 * log_sigma).sum(dim=1)
                loss = (error / (2 * torch.exp(2 * log_s)) + width * log_s + kl).mean()
                adam.zero_grad()
                loss.backward()
                adam.step()
                total += float(loss.detach()) * len(rows)
            losses.append(total / len(x))
        with torch.no_grad():
            means = encoder(x)[:, :dimensions]
    return means.numpy(), losses
