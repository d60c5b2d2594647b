"""The mixed membership stochastic blockmodel (Airoldi et al., JMLR 2008): each vertex has a
distribution over blocks, which determine the probabilities of links; texts are not used.

π_i ~ Dirichlet(1/K), y_ij ~ Bernoulli(π_i' B π_j), B symmetric. Stochastic variational inference:
max over γ and B of E_q[Σ log p(y_ij | π_i, π_j, B)] - Σ_i KL(q(π_i)‖p(π_i)), with
q(π_i) = Dirichlet(γ_i) sampled by reparametrisation; links and non-links are subsampled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from sklearn.cluster import KMeans
from torch.distributions import Dirichlet, kl_divergence

from vhe.baselines.inner_product import InnerProductMethod
from vhe.baselines.matrices import lsa, normalised_adjacency
from vhe.data.network import TextNetwork
from vhe.data.sampling import LinkSet
from vhe.data.splits import validation_links
from vhe.runtime.arrays import unit_rows

BLOCKS = (10, 20, 40)
VALIDATION = 0.1  # fraction of the training links on which the number of blocks is chosen
MAX_VALIDATION_LINKS = 1000
BATCH = 8192  # maximum number of links per step
NON_LINKS = 5  # per link in a step
VALIDATION_NON_LINKS = 20  # per validation link
LEARNING_RATE = 0.05  # of Adam, decays linearly to zero
INITIAL_MEMBERSHIP = 3.0  # added to the initial γ of the block to which clustering assigns a vertex


@dataclass(kw_only=True)
class MMB(InnerProductMethod):
    """Scores a pair by the probability of a link, π_i' B π_j; ``embedding_`` is the mean of q(π).

    Memberships are initialised by a spectral clustering of the links: a random initialisation
    converges to equal memberships in all blocks.

    Parameters
    ----------
    blocks : number of blocks (K); default: the one of 10, 20 and 40 with the highest likelihood of
        validation links and non-links.
    steps : optimiser steps of Adam.
    random_state : seed.

    Attributes
    ----------
    rates_ : B, (K, K).
    """

    blocks: int | None = None
    steps: int = 150
    random_state: int = 0

    def fit(self, network: TextNetwork) -> Self:
        """Choose the number of blocks and infer the memberships."""
        blocks = self.blocks or self._choose(network)
        self.embedding_, self.rates_ = infer(
            network.links, len(network), blocks, self.steps, self.random_state
        )
        return self

    def _source_rows(self, vertices: np.ndarray) -> np.ndarray:
        return self.embedding_[vertices] @ self.rates_  # π_i' B

    def _choose(self, network: TextNetwork) -> int:
        n = len(network)
        training, validation = validation_links(
            network.links, VALIDATION, self.random_state, MAX_VALIDATION_LINKS
        )
        if not len(validation):
            return BLOCKS[0]
        rng = np.random.default_rng([self.random_state, 1])
        count = VALIDATION_NON_LINKS * len(validation)
        unlinked = draw_non_links(LinkSet(network.links, n), count, rng)
        unlinked_per_link = (n * (n - 1) / 2 - len(network.links)) / len(network.links)
        train = network.with_edges(training)

        def likelihood(blocks: int) -> float:
            trial = MMB(blocks=blocks, steps=self.steps, random_state=self.random_state).fit(train)
            of_links = np.log(trial.score_indices(*validation.T)).mean()
            of_others = np.log1p(-trial.score_indices(*unlinked.T)).sum() / max(len(unlinked), 1)
            return float(of_links + unlinked_per_link * of_others)

        return max(BLOCKS, key=likelihood)


def infer(
    links: np.ndarray, n: int, blocks: int, steps: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Mean memberships (n, blocks) and link rates B (blocks, blocks)."""
    rng = np.random.default_rng(seed)
    link_set = LinkSet(links, n)
    unlinked = n * (n - 1) / 2 - len(links)
    density = (1 + len(links)) / (2 + len(links) + unlinked)
    gamma = 0.1 + 0.1 * rng.random((n, blocks))
    gamma = gamma + INITIAL_MEMBERSHIP * spectral_blocks(links, n, blocks, seed)
    log_gamma = torch.from_numpy(np.log(gamma).astype(np.float32)).requires_grad_()
    inside, between = min(density * blocks, 0.5), density / 10
    logits = torch.where(torch.eye(blocks) > 0, inside, between).logit().requires_grad_()
    prior = Dirichlet(torch.full((blocks,), 1 / blocks))
    adam = torch.optim.Adam([log_gamma, logits], lr=LEARNING_RATE)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for step in range(steps if len(links) else 0):
            adam.param_groups[0]["lr"] = LEARNING_RATE * (1 - step / steps)
            linked = links[rng.permutation(len(links))[:BATCH]]
            others = draw_non_links(link_set, NON_LINKS * len(linked), rng)
            used, position = np.unique(np.concatenate([linked, others]), return_inverse=True)
            i, j = torch.from_numpy(np.ascontiguousarray(position.reshape(-1, 2).T))
            pi = Dirichlet(log_gamma[torch.from_numpy(used)].exp()).rsample()  # (used, blocks)
            rates = ((logits + logits.T) / 2).sigmoid()  # B
            probability = ((pi @ rates)[i] * pi[j]).sum(dim=1)  # π_i' B π_j
            probability = probability.clamp(1e-9, 1 - 1e-6)
            likelihood = len(links) * probability[: len(linked)].log().mean()
            if len(others):
                likelihood = likelihood + unlinked * torch.log1p(-probability[len(linked) :]).mean()
            some = torch.from_numpy(rng.permutation(n)[:BATCH])
            posterior = Dirichlet(log_gamma[some].exp())
            kl = n * kl_divergence(posterior, prior.expand(some.shape)).mean()
            adam.zero_grad()
            ((kl - likelihood) / n).backward()
            adam.step()
    gamma = log_gamma.detach().exp().numpy()
    rates = ((logits + logits.T) / 2).sigmoid().detach()
    return gamma / gamma.sum(axis=1, keepdims=True), rates.numpy()


def spectral_blocks(links: np.ndarray, n: int, blocks: int, seed: int) -> np.ndarray:
    """Indicators (n, blocks) of a clustering; rows of vertices without links are zero."""
    rows = unit_rows(lsa(normalised_adjacency(links, n), blocks, seed)[:, :blocks])
    member = np.zeros((n, blocks))
    vertices = np.unique(links)
    if len(vertices):
        clusters = KMeans(min(blocks, len(vertices)), n_init=3, random_state=seed)
        member[vertices, clusters.fit_predict(rows[vertices])] = 1
    return member


def draw_non_links(link_set: LinkSet, count: int, rng: np.random.Generator) -> np.ndarray:
    """Random pairs that are not linked: (at most ``count``, 2)."""
    i, j = rng.integers(link_set.vertices, size=(2, count))
    valid = (i != j) & ~link_set.linked(i, j)
    return np.stack([i[valid], j[valid]], axis=1)
