"""Fine-tuning of the word vectors through the posterior.

A step masks some links, solves for the posterior of the codes without them, and minimises the
contrastive loss of the masked links: no link contributes to the codes from which it is predicted.
Only the word vectors and the scale of the cosine are learned.

Up to `WHOLE_GRAPH` vertices a step solves for all codes. In a larger network it solves for the ends
of its links and their strongest neighbours only, with all other codes fixed at the posterior before
training, so that the cost of a step does not grow with the network. These fixed codes were computed
with the masked links, which therefore reach the predicted ends through the boundary of the region:
by less than 1 % of their full effect.

Where links are few, the word vectors are trained once for each fold of held-out links
(`validation.py`), all in step: the number of steps is chosen on all held-out links together, and
the mean of the word vectors of the folds is used.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vhe.config import VHEConfig
from vhe.data.sampling import LinkBatches
from vhe.graph.contrastive import contrastive_loss
from vhe.graph.posterior import COLUMNS, TRAINING_ITERATIONS
from vhe.graph.prior import WHOLE_GRAPH, GraphPrior
from vhe.graph.validation import win_rates
from vhe.runtime.adam import Adam
from vhe.runtime.loop import load_optimisers, optimiser_tensors
from vhe.text.codes import TextCodes

START_ITERATIONS = 6  # for the codes outside of a region: relative error of about 1e-3
HALO = 1024  # strongest neighbours that are solved for in a larger graph
INITIAL_SCALE = 10.0  # of the cosine

Vertices = NDArray[np.int64]


class GraphTrainer:
    """Word vectors that are trained through the posterior, on one fold of the links.

    Parameters
    ----------
    words : (1 + V, d), the first row belongs to padding
    prior : couples the training links, without those of validation
    validation : (m, 2) held-out links
    initial : codes (n, d) and centre (d,) by these words, if they are known
    columns : of a posterior that are solved for at a time
    """

    def __init__(
        self,
        config: VHEConfig,
        words: Tensor,
        codes: TextCodes,
        prior: GraphPrior,
        validation: NDArray[np.int64],
        seed: int,
        initial: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None,
        columns: int = COLUMNS,
    ) -> None:
        self.words = nn.Parameter(words.clone())
        self.log_scale = nn.Parameter(torch.tensor(INITIAL_SCALE, device=words.device).log())
        self.codes, self.prior, self.validation = codes, prior, validation
        step_links = min(config.step_links, max(1, len(prior.links) // 3))
        self.batches = LinkBatches(prior.links, step_links, seed)
        self.optimiser = Adam(([self.words, self.log_scale], config.learning_rate))
        self._outside: tuple[NDArray[np.float32], Tensor] | None = None
        if len(codes) > WHOLE_GRAPH:
            table, centre = initial or codes.table(words)
            start = prior.posterior().mean_table(table, START_ITERATIONS, columns)
            self._outside = start, torch.from_numpy(centre).to(words.device)

    def step(self, number: int) -> dict[str, float]:
        masked = self.batches.numbers(number)
        vertices, rows = np.unique(self.prior.links[masked], return_inverse=True)
        codes = self.means(vertices, masked)
        links = torch.from_numpy(rows.reshape(-1, 2)).to(codes.device)
        loss = contrastive_loss(codes, links, self.log_scale.exp())
        self.optimiser.zero_grad()
        if bool(loss.isfinite()):
            loss.backward()
            self.optimiser.step()
        return {"contrastive": float(loss.detach())}

    def means(self, vertices: Vertices, masked: Vertices | None = None) -> Tensor:
        """Posterior means (k, d) of some vertices, without some links (by number)."""
        if self._outside is None:
            posterior = self.prior.posterior(masked)
            means = posterior.mean(self.codes(self.words), TRAINING_ITERATIONS)
            return means[torch.from_numpy(vertices).to(means.device)]
        outside, centre = self._outside
        region = self.prior.region(vertices, HALO)
        posterior, inflow = self.prior.restricted_posterior(region, outside, masked)
        codes = self.codes.rows(region, self.words, centre)
        solution = posterior.solve_with_gradient(
            posterior.precision * codes + inflow, TRAINING_ITERATIONS
        )
        return solution[torch.from_numpy(np.searchsorted(region, vertices)).to(codes.device)]

    @torch.no_grad()
    def validate(self) -> NDArray[np.float64]:
        """The win rates of the held-out links, none where there is nothing to compare."""
        if not len(self.validation) or len(self.codes) < 3:
            return np.zeros(0)
        vertices, rows = np.unique(self.validation, return_inverse=True)
        rates = win_rates(self.means(vertices).cpu().numpy(), rows.reshape(-1, 2))
        return rates[np.isfinite(rates)]

    def weights(self) -> dict[str, Tensor]:
        return {"words": self.words.data, "log_scale": self.log_scale.data}

    def load_weights(self, weights: dict[str, Tensor]) -> None:
        for name, value in weights.items():
            getattr(self, name).data.copy_(value)

    def optimiser_state(self) -> dict[str, Tensor]:
        return optimiser_tensors([self.optimiser])

    def load_optimiser_state(self, tensors: dict[str, Tensor]) -> None:
        load_optimisers([self.optimiser], tensors)


class CrossFitTrainer:
    """The trainers of all folds as one `vhe.runtime.loop.Trainable`."""

    def __init__(self, folds: Sequence[GraphTrainer]) -> None:
        self.folds = folds

    def words(self) -> list[Tensor]:
        """The word vectors (1 + V, d) of each fold."""
        return [fold.words.detach() for fold in self.folds]

    def step(self, number: int) -> dict[str, float]:
        terms = [fold.step(number) for fold in self.folds]
        return {name: float(np.mean([term[name] for term in terms])) for name in terms[0]}

    def validate(self) -> float | None:
        rates = np.concatenate([fold.validate() for fold in self.folds])
        return float(rates.mean()) if len(rates) else None

    def weights(self) -> dict[str, Tensor]:
        return self._numbered([fold.weights() for fold in self.folds])

    def load_weights(self, weights: dict[str, Tensor]) -> None:
        for number, fold in enumerate(self.folds):
            fold.load_weights(_of_number(number, weights))

    def optimiser_state(self) -> dict[str, Tensor]:
        return self._numbered([fold.optimiser_state() for fold in self.folds])

    def load_optimiser_state(self, tensors: dict[str, Tensor]) -> None:
        for number, fold in enumerate(self.folds):
            fold.load_optimiser_state(_of_number(number, tensors))

    def _numbered(self, tensors: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
        return {
            f"fold{number}.{name}": value
            for number, named in enumerate(tensors)
            for name, value in named.items()
        }


def _of_number(number: int, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of one fold, by their names there."""
    start = f"fold{number}."
    return {k.removeprefix(start): v for k, v in tensors.items() if k.startswith(start)}
