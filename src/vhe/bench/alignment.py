"""A training step of `PairVHE` relative to a straightforward implementation padded to 300 words."""

from __future__ import annotations

import copy
import itertools
import statistics
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from vhe.bench.measure import MATRIX_WORK, interleaved, matrix_product, pair_trainer, training_step
from vhe.config import PairVHEConfig
from vhe.data.network import TextNetwork
from vhe.data.sampling import Pairs
from vhe.data.text import Corpus
from vhe.pair.alignment import Aligned, PhraseToWordAlignment, align
from vhe.pair.model import PairVAE, TextPairs
from vhe.pair.packed_tokens import Texts
from vhe.pair.training import PairTrainer

PAIRS, LARGE = 128, 1024  # pairs per step
AT_ONCE = 32  # pairs that the straightforward implementation pads together
OPERATIONS = 4000  # per word of one text and word of the other: 200 kernels of width 5


def useful(pairs: Pairs, corpus: Corpus) -> float:
    """The operations of the alignment as the equations have them, without padding."""
    return OPERATIONS * float((corpus.lengths[pairs.i] * corpus.lengths[pairs.j]).sum())


class StraightforwardAlignment(PhraseToWordAlignment):
    """The equations of appendix B by torch's operations."""

    def forward(self, words: Tensor, parts: Sequence[Texts]) -> Aligned:
        return Aligned(*align(words, self.kernels, parts))


def padded(pairs: TextPairs, most: int) -> TextPairs:
    """The same pairs, each text padded to ``most`` words."""
    i, j = (pad(part, (0, most - part.shape[1])) for part in (pairs.tokens_i, pairs.tokens_j))
    return replace(pairs, tokens_i=i, tokens_j=j)


class Comparison:
    """The gradient of one batch by our trainer and by the straightforward implementation."""

    def __init__(self, network: TextNetwork) -> None:
        # the samples of the reconstruction differ; with such a precision they do not matter
        config = PairVHEConfig(validation=0.0, precision=1e-6, near_pairs=0)
        self.config, self.trainer = config, pair_trainer(network, config)
        self.corpus = self.trainer.corpus
        assert isinstance(self.trainer.model, PairVAE)
        self.model, self.plain = self.trainer.model, copy.deepcopy(self.trainer.model)
        self.plain.alignment.__class__ = StraightforwardAlignment
        pairs = self.trainer.batch(0)
        self.pairs = pairs[np.random.default_rng(0).permutation(len(pairs))[:PAIRS]]

    def ours(self) -> dict[str, float]:
        return self.trainer.backward(self.pairs, 0)

    def straightforward(self) -> dict[str, float]:
        self.plain.zero_grad()
        noise = torch.Generator().manual_seed(0)
        means: dict[str, float] = {}
        for rows in np.array_split(np.arange(len(self.pairs)), -(-len(self.pairs) // AT_ONCE)):
            part = TextPairs.of(self.pairs[rows], self.corpus, torch.device("cpu"))
            terms = self.plain.loss([padded(part, self.config.max_words)], noise)
            share = len(rows) / len(self.pairs)
            (share * self.plain.objective(terms).mean()).backward()
            for name, mean in terms.means().items():
                means[name] = means.get(name, 0.0) + share * mean
        return means

    def difference(self) -> tuple[float, float]:
        """Relative differences of the ELBO, and of the gradients of the kernels."""
        ours, other = self.ours()["bound"], self.straightforward()["bound"]
        gradients = [m.alignment.kernels.grad for m in (self.model, self.plain)]
        assert gradients[0] is not None
        assert gradients[1] is not None
        largest = float((gradients[0] - gradients[1]).abs().max() / gradients[1].abs().max())
        return abs(ours / other - 1), largest


def alignment(network: TextNetwork, rounds: int) -> dict[str, float]:
    """Pairs per second relative to the straightforward implementation and to matrix products."""
    both = Comparison(network)
    elbo, gradients = both.difference()
    programs = {"ours": both.ours, "straightforward": both.straightforward}
    seconds = interleaved({**programs, "matrix": matrix_product()}, rounds)
    ours, matrix = (
        useful(both.pairs, both.corpus) / seconds["ours"],
        MATRIX_WORK / seconds["matrix"],
    )
    return {
        "pairs per second": len(both.pairs) / seconds["ours"],
        "straightforward pairs per second": len(both.pairs) / seconds["straightforward"],
        "ratio": seconds["straightforward"] / seconds["ours"],
        "relative difference of the ELBO": elbo,
        "relative difference of the gradients": gradients,
        "useful Gflop/s": ours / 1e9,
        "matrix Gflop/s": matrix / 1e9,
        "share of the matrix rate": ours / matrix,
    }


def step(network: TextNetwork, rounds: int) -> dict[str, float]:
    """A training step with the default settings: its share of the matrix rate, and data loading.

    In a step with more pairs the constant cost of a step matters less.
    """
    trainer = pair_trainer(network)
    large = pair_trainer(network, PairVHEConfig(batch_size=LARGE, near_pairs=LARGE // 2))
    numbers = itertools.count()
    seconds = interleaved(
        {
            "step": training_step(trainer),
            "large": training_step(large),
            "matrix": matrix_product(),
            "loading": lambda: trainer.parts(trainer.batch(next(numbers))),
        },
        rounds,
    )
    rate = MATRIX_WORK / seconds["matrix"]
    share_of_large = _work(large) / seconds["large"] / rate
    return {
        "pairs per second": len(trainer.batch(0)) / seconds["step"],
        "matrix Gflop/s": rate / 1e9,
        "share of the matrix rate": _work(trainer) / seconds["step"] / rate,
        f"share with {len(large.batch(0)):,} pairs per step": share_of_large,
        "share of data loading": seconds["loading"] / seconds["step"],
    }


def _work(trainer: PairTrainer) -> float:
    """Mean useful operations of a step."""
    return statistics.mean(useful(trainer.batch(number), trainer.corpus) for number in range(8))
