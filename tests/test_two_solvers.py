"""One model, two solvers: the trained table of `PairVAE` is the solution of a linear system.

The program is benchmarks/two_solvers.py, the derivation docs/two-solvers.md.
"""

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from vhe.data.network import TextNetwork
from vhe.graph.posterior import Posterior
from vhe.pair.homophily import PairGaussian, kl_to_prior

PROGRAM = Path(__file__).parent.parent / "benchmarks" / "two_solvers.py"


@pytest.fixture(scope="module")
def program() -> dict[str, Any]:
    return runpy.run_path(str(PROGRAM))


@pytest.fixture
def both(program: dict[str, Any], network: TextNetwork, one_thread: None) -> Any:
    return program["TwoSolvers"](network, 0.99, steps=120, dim=16)


def test_the_trained_table_agrees_with_the_linear_system(
    program: dict[str, Any], both: Any
) -> None:
    solved, initial = both.solve(), both.means
    weights = {name: value.clone() for name, value in both.model.state_dict().items()}
    assert program["correlation"](initial, solved) < 0.95  # text alone is not the answer
    trained = both.train()
    assert program["correlation"](trained, solved) >= 0.99
    assert np.linalg.norm(trained - solved) < 0.1 * np.linalg.norm(solved)
    changed = {k for k, v in both.model.state_dict().items() if not torch.equal(v, weights[k])}
    assert changed == {"structure.weight"}


def test_the_linear_system_is_the_stationary_point_of_the_expected_elbo(both: Any) -> None:
    """The gradient of the ELBO, summed over all linked pairs and expected unlinked visits, is 0."""
    config, m = both.config, torch.from_numpy(both.text_codes)
    i, j = torch.from_numpy(both.links.copy()).T

    def gradient(codes: np.ndarray) -> torch.Tensor:
        z = torch.from_numpy(codes).requires_grad_()
        zero = torch.zeros_like(z)
        pairs = PairGaussian(z[i], z[j], zero[i], zero[j], zero[i])
        linked = torch.bincount(torch.cat([i, j]), minlength=len(z))
        unlinked = torch.from_numpy(both.unlinked_visits())
        alone = kl_to_prior(PairGaussian(z, zero, zero, zero), 0.0)  # of one end of a pair
        reconstruction = -config.precision * (m - z).square().sum(dim=1)
        bound = (
            ((linked + unlinked) * reconstruction).sum()
            - kl_to_prior(pairs, config.homophily).sum()
            - (unlinked * alone).sum()
        )
        return torch.autograd.grad(bound, z)[0]

    assert gradient(both.solve()).abs().max() < 1e-8
    assert gradient(both.text_codes).abs().max() > 1


@pytest.mark.filterwarnings("ignore:Sparse CSR")
def test_the_solver_of_the_graph_model_solves_it(both: Any) -> None:
    matrix, precision = both.system()
    diagonal = matrix.diagonal()
    weights = torch.from_numpy((np.diag(diagonal) - matrix.toarray()).astype(np.float32))
    posterior = Posterior(
        weights.to_sparse_csr(),
        torch.from_numpy(precision.astype(np.float32))[:, None],
        torch.from_numpy(diagonal.astype(np.float32))[:, None],
    )
    mean = posterior.mean(torch.from_numpy(both.text_codes.astype(np.float32)), 30)
    assert np.allclose(mean.numpy(), both.solve(), atol=1e-4)


def test_unlinked_visits_are_those_of_the_sampler(both: Any) -> None:
    from vhe.data.sampling import PairSampler

    sampler = PairSampler(
        both.links, len(both.corpus), batch_size=2 * len(both.links), negatives=1, alpha=0.0, seed=0
    )
    visits, batches = np.zeros(len(both.corpus)), 400
    for step in range(batches):
        pairs = sampler.batch(step)
        for ends in (pairs.i, pairs.j):
            visits += np.bincount(ends[pairs.links == 0], minlength=len(visits))
    assert np.allclose(visits / batches, both.unlinked_visits(), atol=0.5, rtol=0.05)
