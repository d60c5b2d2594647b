"""One model, two solvers: the paper's ELBO over pairs against the sparse linear system.

    python benchmarks/two_solvers.py [--steps 300] [--package scipy.signal]

A `PairVAE` whose means are μ_i = m_i + h_i, without MLP and with uniform alignment weights, is
trained by the stochastic optimisation of its ELBO; only the structure table h is learned. The
stationary point of the same ELBO is solved for directly. docs/two-solvers.md has the derivation.

Prints, for several λ, the weight of the neighbours in a code, and the correlation of all pairwise
cosines of the solved codes with those of the model before and after training, and the relative
error of the trained codes.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import spsolve

import vhe
from vhe.config import PairVHEConfig
from vhe.data.network import TextNetwork
from vhe.data.sampling import LinkSet
from vhe.data.text import Corpus
from vhe.pair.decoder import GaussianDecoder
from vhe.pair.embedding import global_embedding
from vhe.pair.model import PairVAE
from vhe.pair.training import PairTrainer, train

HOMOPHILY = (0.0, 0.5, 0.9, 0.99, 0.999)

Codes = NDArray[np.float64]  # (n, d)


def settings(homophily: float, dim: int, links: int, steps: int) -> PairVHEConfig:
    """The ELBO of pairs with known edges and nothing else; every step sees every link once."""
    return PairVHEConfig(
        homophily=homophily,
        word_dim=dim,
        latent_dim=dim,
        structure_dim=dim,
        hidden_dim=1,
        kernels=1,
        kernel_width=1,
        min_count=1,
        max_words=50,
        alpha=0.0,
        link_weight=0.0,
        near_pairs=0,
        negatives=1,
        batch_size=2 * links,
        steps=steps,
        structure_rate=0.1,
    )


class TwoSolvers:
    """A network, a model over its pairs, and both ways to find the codes of its vertices."""

    def __init__(
        self,
        network: TextNetwork,
        homophily: float,
        *,
        steps: int,
        dim: int = 50,
        seed: int = 0,
    ) -> None:
        self.links, n = network.links, len(network)
        self.config = settings(homophily, dim, len(self.links), steps)
        self.corpus = Corpus.build(network.texts, min_count=1, max_words=self.config.max_words)
        self.seed = seed
        self.model = PairVAE(self.config, len(self.corpus.vocabulary), n, pi0=0.01)
        self.model.initialise(self.corpus, seed)
        with torch.no_grad():
            self.model.integrator.hidden.weight.zero_()  # no MLP: variances and γ are constants
            self.model.alignment.kernels.zero_()  # uniform weights: a mean reads its own text only
        self.model.requires_grad_(False)
        self.model.structure.weight.requires_grad_(True)

    @property
    def text_codes(self) -> Codes:
        """m: what the decoder reconstructs."""
        decoder = self.model.decoder
        assert isinstance(decoder, GaussianDecoder)
        tokens = torch.from_numpy(self.corpus.padded(np.arange(len(self.corpus))))
        return decoder.target(self.model.words.weight, [tokens]).numpy().astype(np.float64)

    @property
    def means(self) -> Codes:
        """μ of the model as it is now."""
        links = LinkSet(self.links, len(self.corpus))
        found = global_embedding(self.model, self.corpus, links, contexts=1, seed=self.seed)
        return found.mean.astype(np.float64)

    def train(self) -> Codes:
        """Optimise the ELBO over the structure table; return the means."""
        none = np.zeros((0, 2), dtype=np.int64)
        trainer = PairTrainer(self.model, self.corpus, self.links, none, seed=self.seed)
        train(trainer, validate_every=self.config.steps)
        return self.means

    def unlinked_visits(self) -> NDArray[np.float64]:
        """u (n,): expected visits of a vertex in unlinked pairs while each link is visited once.

        Each link draws a non-neighbour for one of its ends, with probability ∝ (1 + degree)^¾.
        """
        n, r = len(self.corpus), self.config.negatives
        degree = np.bincount(self.links.ravel(), minlength=n)
        weight = np.tile((1.0 + degree) ** 0.75, (n, 1))
        weight[self.links[:, 0], self.links[:, 1]] = weight[self.links[:, 1], self.links[:, 0]] = 0
        np.fill_diagonal(weight, 0)
        drawn = weight / np.maximum(weight.sum(axis=1, keepdims=True), 1e-12)
        visits: NDArray[np.float64] = r * (degree / 2 + (degree / 2) @ drawn)
        return visits

    def system(self) -> tuple[sparse.csc_array, NDArray[np.float64]]:
        """A (n, n) and Λ (n,) of the stationary point A z = Λ m."""
        lam, rho, n = self.config.homophily, self.config.precision, len(self.corpus)
        i, j = self.links.T
        adjacency = sparse.coo_array((np.ones(len(i)), (i, j)), shape=(n, n)).tocsc()
        adjacency += adjacency.T
        linked, unlinked = adjacency.sum(axis=0), self.unlinked_visits()
        precision = 2 * rho * (linked + unlinked)
        diagonal = precision + linked / (1 - lam**2) + unlinked
        return (sparse.diags_array(diagonal) - lam / (1 - lam**2) * adjacency).tocsc(), precision

    def solve(self) -> Codes:
        """The stationary point of the ELBO."""
        matrix, precision = self.system()
        solution: Codes = spsolve(matrix, precision[:, None] * self.text_codes)
        return solution

    def neighbours_share(self) -> float:
        """λ/(1-λ²) over the sum of all weights, for r unlinked visits per linked one."""
        lam, rho, r = self.config.homophily, self.config.precision, self.config.negatives
        own, linked = 2 * rho * (1 + r), lam / (1 - lam**2)
        return linked / (own + 1 / (1 - lam**2) + r)


def pairwise_cosines(codes: Codes) -> NDArray[np.float64]:
    """The cosine of each pair of rows, each pair once."""
    unit = codes / np.linalg.norm(codes, axis=1, keepdims=True)
    cosines: NDArray[np.float64] = (unit @ unit.T)[np.triu_indices(len(codes), 1)]
    return cosines


def correlation(first: Codes, second: Codes) -> float:
    """Pearson's correlation of all pairwise cosines."""
    return float(np.corrcoef(pairwise_cosines(first), pairwise_cosines(second))[0, 1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--package", default="scipy.signal", help="part of the See Also network")
    arguments = parser.parse_args()
    whole = vhe.load("seealso")
    own = [k for k, name in enumerate(whole.ids) if name.startswith(arguments.package + ".")]
    network = whole.subnetwork([k for k in own if whole.texts[k].strip()])
    print(f"{arguments.package}: {len(network)} vertices, {len(network.links)} links")
    print(f"{'λ':>6} {'neighbours':>11} {'initial':>8} {'trained':>8} {'rel. error':>11}")
    for homophily in HOMOPHILY:
        both = TwoSolvers(network, homophily, steps=arguments.steps)
        solved, before, trained = both.solve(), both.means, both.train()
        error = np.linalg.norm(trained - solved) / np.linalg.norm(solved)
        print(
            f"{homophily:>6} {both.neighbours_share():>11.2f} {correlation(before, solved):>8.4f} "
            f"{correlation(trained, solved):>8.4f} {error:>11.4f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
