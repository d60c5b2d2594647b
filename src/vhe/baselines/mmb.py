"""The mixed membership stochastic blockmodel (Airoldi et al., JMLR 2008): each vertex belongs to
several blocks at once, and two vertices are linked as their blocks are; texts are not used.

π_i ~ Dirichlet(1/K), y_ij ~ Bernoulli(π_i' B π_j), B symmetric. Stochastic variational inference:
max over γ and B of E_q[Σ log p(y_ij | π_i, π_j, B)] - Σ_i KL(q(π_i)‖p(π_i)), with
q(π_i) = Dirichlet(γ_i) sampled by its reparametrisation, links and non-links subsampled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np

from vhe.baselines.diffused_text import lsa, normalised_adjacency
from vhe.data.sampling import LinkSet
from vhe.data.splits import validation_links
from vhe.predict.scoring import PAIRS_AT_ONCE, unit_rows

if TYPE_CHECKING:
    from vhe.data.network import TextNetwork

BLOCKS = (10, 20, 40)
VALIDATION = 0.1  # of the links decide on the number of blocks, but no more than a thousand
BATCH = 8192  # links a step; networks with fewer use all of them
NON_LINKS = 5  # drawn for each link of a step
RATE = 0.05  # of Adam, falls to zero in a straight line
START = 3.0  # what γ has more, at first, in the block a vertex is put into


class MMB:
    """Scores a pair by the chance of a link, π_i' B π_j; ``embedding_`` is the mean of q(π).

    Learning starts from a spectral clustering of the links: from a random start it ends with all
    vertices in every block.

    Parameters
    ----------
    blocks : how many (K); where not given, the one of 10, 20 and 40 under which links held out of
        the training links are likeliest.
    steps : of Adam.
    random_state : seed.

    Attributes
    ----------
    rates_ : B, (K, K).
    """

    embedding_: np.ndarray
    rates_: np.ndarray

    def __init__(
        self, *, blocks: int | None = None, steps: int = 150, random_state: int = 0
    ) -> None:
        self.blocks = blocks
        self.steps = steps
        self.random_state = random_state

    def fit(self, network: TextNetwork) -> Self:
        """Choose the number of blocks and infer the memberships."""
        blocks = self.blocks or self._choose(network)
        self.embedding_, self.rates_ = infer(
            network.links, len(network), blocks, self.steps, self.random_state
        )
        return self

    def score_indices(self, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Chances of a link of the pairs (sources[k], targets[k]): (m,)."""
        pi = self.embedding_
        scores = np.empty(len(sources), dtype=pi.dtype)
        for start in range(0, len(sources), PAIRS_AT_ONCE):
            part = slice(start, start + PAIRS_AT_ONCE)
            scores[part] = np.einsum("mk,mk->m", pi[sources[part]] @ self.rates_, pi[targets[part]])
        return scores

    def score_matrix(self, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Chances of a link of each source with each target: (len(sources), len(targets))."""
        return self.embedding_[sources] @ self.rates_ @ self.embedding_[targets].T

    def _choose(self, network: TextNetwork) -> int:
        n = len(network)
        kept, held_out = validation_links(network.links, VALIDATION, self.random_state, 1000)
        if not len(held_out):
            return BLOCKS[0]
        rng = np.random.default_rng([self.random_state, 1])
        others = non_links(LinkSet(network.links, n), 20 * len(held_out), rng)
        others_of_a_link = (n * (n - 1) / 2 - len(network.links)) / len(network.links)
        train = network.with_edges(kept)

        def likelihood(blocks: int) -> float:
            trial = MMB(blocks=blocks, steps=self.steps, random_state=self.random_state).fit(train)
            found = np.log(trial.score_indices(*held_out.T)).mean()
            missed = np.log1p(-trial.score_indices(*others.T)).sum() / max(len(others), 1)
            return float(found + others_of_a_link * missed)

        return max(BLOCKS, key=likelihood)


def infer(
    links: np.ndarray, n: int, blocks: int, steps: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Mean memberships (n, blocks) and link rates B (blocks, blocks)."""
    import torch
    from torch.distributions import Dirichlet, kl_divergence

    rng = np.random.default_rng(seed)
    link_set = LinkSet(links, n)
    unlinked = n * (n - 1) / 2 - len(links)
    density = (1 + len(links)) / (2 + len(links) + unlinked)
    start = 0.1 + 0.1 * rng.random((n, blocks)) + START * spectral_blocks(links, n, blocks, seed)
    log_gamma = torch.from_numpy(np.log(start).astype(np.float32)).requires_grad_()
    inside, between = min(density * blocks, 0.5), density / 10
    logits = torch.where(torch.eye(blocks) > 0, inside, between).logit().requires_grad_()
    prior = Dirichlet(torch.full((blocks,), 1 / blocks))
    adam = torch.optim.Adam([log_gamma, logits], lr=RATE)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for step in range(steps if len(links) else 0):
            adam.param_groups[0]["lr"] = RATE * (1 - step / steps)
            linked = links[rng.permutation(len(links))[:BATCH]]
            others = non_links(link_set, NON_LINKS * len(linked), rng)
            used, place = np.unique(np.concatenate([linked, others]), return_inverse=True)
            i, j = torch.from_numpy(np.ascontiguousarray(place.reshape(-1, 2).T))
            pi = Dirichlet(log_gamma[torch.from_numpy(used)].exp()).rsample()  # (used, blocks)
            rates = ((logits + logits.T) / 2).sigmoid()  # B
            chance = ((pi @ rates)[i] * pi[j]).sum(dim=1)  # π_i' B π_j
            chance = chance.clamp(1e-9, 1 - 1e-6)
            evidence = len(links) * chance[: len(linked)].log().mean()
            if len(others):
                evidence = evidence + unlinked * torch.log1p(-chance[len(linked) :]).mean()
            some = torch.from_numpy(rng.permutation(n)[:BATCH])
            kl = (
                n * kl_divergence(Dirichlet(log_gamma[some].exp()), prior.expand(some.shape)).mean()
            )
            adam.zero_grad()
            ((kl - evidence) / n).backward()
            adam.step()
    gamma = log_gamma.detach().exp().numpy()
    rates = ((logits + logits.T) / 2).sigmoid().detach()
    return gamma / gamma.sum(axis=1, keepdims=True), rates.numpy()


def spectral_blocks(links: np.ndarray, n: int, blocks: int, seed: int) -> np.ndarray:
    """One 1 in each row (n, blocks), where a clustering puts the vertex; none without links."""
    from sklearn.cluster import KMeans

    rows = unit_rows(lsa(normalised_adjacency(links, n), blocks, seed)[:, :blocks])
    member = np.zeros((n, blocks))
    vertices = np.unique(links)
    if len(vertices):
        clusters = KMeans(min(blocks, len(vertices)), n_init=3, random_state=seed)
        member[vertices, clusters.fit_predict(rows[vertices])] = 1
    return member


def non_links(link_set: LinkSet, count: int, rng: np.random.Generator) -> np.ndarray:
    """Pairs that are not linked, drawn at random: (about ``count``, 2)."""
    i, j = rng.integers(link_set.vertices, size=(2, count))
    fine = (i != j) & ~link_set.linked(i, j)
    return np.stack([i[fine], j[fine]], axis=1)
