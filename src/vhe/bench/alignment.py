"""A training step beside a straightforward implementation that pads every text to 300 words."""

from __future__ import annotations

import copy
import statistics
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import conv1d, embedding, pad

from vhe.bench.measure import MATRIX_WORK, in_turns, matrix_product, trainer_of
from vhe.config import VHEConfig
from vhe.data.network import TextNetwork
from vhe.data.sampling import Pairs, length_buckets, longer_first
from vhe.data.text import PADDING, Corpus
from vhe.pair.alignment import MASKED, Aligned, PhraseToWordAlignment
from vhe.pair.embedding import AREA
from vhe.pair.model import PairVAE, TextPairs
from vhe.pair.packed_tokens import Texts
from vhe.pair.training import Trainer

PAIRS, LARGE = 128, 1024  # pairs a step, by default and where there are many
AT_ONCE = 32  # how many of them the straightforward way pads together
OPERATIONS = 4000  # for each word of one text and word of the other: 200 kernels of width 5


def useful(pairs: Pairs, corpus: Corpus) -> float:
    """The operations that their alignment takes at least, counted plainly."""
    return OPERATIONS * float((corpus.lengths[pairs.i] * corpus.lengths[pairs.j]).sum())


class StraightforwardAlignment(PhraseToWordAlignment):
    """The equations of appendix B as one would first write them."""

    def forward(self, words: Tensor, parts: Sequence[Texts]) -> Aligned:
        found = [self._aligned(words, *texts) for texts in parts]
        return Aligned(
            torch.cat([text_i for text_i, _ in found]),
            torch.cat([text_j for _, text_j in found]),
            [],
        )

    def _aligned(self, words: Tensor, tokens_i: Tensor, tokens_j: Tensor) -> Texts:
        words_i, words_j = (embedding(tokens, words, PADDING) for tokens in (tokens_i, tokens_j))
        similarity = words_i @ words_j.transpose(1, 2)  # (batch, L_i, L_j)
        text_i = self._weights(similarity, tokens_i != PADDING).unsqueeze(1) @ words_i
        text_j = (
            self._weights(similarity.transpose(1, 2), tokens_j != PADDING).unsqueeze(1) @ words_j
        )
        return text_i.squeeze(1), text_j.squeeze(1)

    def _weights(self, similarity: Tensor, mask: Tensor) -> Tensor:
        convolved = conv1d(
            similarity.transpose(1, 2), self.kernels.transpose(1, 2), padding="same"
        )  # (batch, K, L)
        scores = torch.tanh(convolved).amax(dim=1)
        return torch.softmax(scores.masked_fill(~mask, MASKED), dim=1) * mask


def padded(pairs: TextPairs, most: int) -> TextPairs:
    """The same pairs, each text padded to ``most`` words."""
    wide = {
        name: pad(tokens, (0, most - tokens.shape[1]))
        for name, tokens in (("tokens_i", pairs.tokens_i), ("tokens_j", pairs.tokens_j))
    }
    return TextPairs(**{**vars(pairs), **wide})


class Comparison:
    """Two trainings with the same weights and pairs, ours and the straightforward one."""

    def __init__(self, network: TextNetwork) -> None:
        # the partner term needs the whole batch at once, which the straightforward way has not
        config = VHEConfig(structure="learned", link_weight=0.0, validation=0.0, precision=1e-6)
        self.config = config
        self.trainer = trainer_of(network, config)
        self.corpus = self.trainer.corpus
        assert isinstance(self.trainer.model, PairVAE)
        self.model, self.plain = self.trainer.model, copy.deepcopy(self.trainer.model)
        self.plain.alignment.__class__ = StraightforwardAlignment
        pairs = self.trainer.sampler.batch(0)
        self.pairs, _ = longer_first(pairs[np.arange(min(PAIRS, len(pairs)))], self.corpus.lengths)

    def ours(self) -> dict[str, float]:
        self.model.zero_grad()
        return self.trainer.backward(self.pairs, 0)

    def theirs(self) -> dict[str, float]:
        self.plain.zero_grad()
        noise = torch.Generator().manual_seed(0)
        means: dict[str, float] = {}
        for rows in np.array_split(np.arange(len(self.pairs)), -(-len(self.pairs) // AT_ONCE)):
            part = TextPairs.of(self.pairs[rows], self.corpus, torch.device("cpu"))
            terms = self.plain.loss([padded(part, self.config.max_words)], noise)
            weight = len(rows) / len(self.pairs)
            (weight * self.plain.objective(terms).mean()).backward()
            for name, mean in terms.means().items():
                means[name] = means.get(name, 0.0) + weight * mean
        return means

    def apart(self) -> tuple[float, float]:
        """How far the bounds are apart, and the gradients of the kernels, relative to the largest.

        The noise of the reconstruction is left out of both by its weight.
        """
        ours, theirs = self.ours()["bound"], self.theirs()["bound"]
        gradient, other = (m.alignment.kernels.grad for m in (self.model, self.plain))
        assert gradient is not None
        assert other is not None
        gap = float((gradient - other).abs().max() / other.abs().max())
        return abs(ours / theirs - 1), gap

    @property
    def work(self) -> float:
        """Useful operations of a step."""
        return useful(self.pairs, self.corpus)


def alignment(network: TextNetwork, rounds: int) -> dict[str, float]:
    """Pairs a second over the straightforward way, and the share of the machine's matrix rate."""
    both = Comparison(network)
    losses, gradients = both.apart()
    took = in_turns({"ours": both.ours, "theirs": both.theirs, "matrix": matrix_product()}, rounds)
    return {
        "pairs a second": len(both.pairs) / took["ours"],
        "straightforward pairs a second": len(both.pairs) / took["theirs"],
        "ratio": took["theirs"] / took["ours"],
        "losses apart": losses,
        "gradients apart": gradients,
        "useful Gflop/s": both.work / took["ours"] / 1e9,
        "matrix Gflop/s": MATRIX_WORK / took["matrix"] / 1e9,
        "share of the matrix rate": both.work / took["ours"] / (MATRIX_WORK / took["matrix"]),
    }


def step(network: TextNetwork, rounds: int) -> dict[str, float]:
    """A whole training step as it is by default: the share of the matrix rate, and the loader's.

    Large steps are the same with more pairs: what a step does once weighs less there.
    """
    trainer, large = (
        trainer_of(network, VHEConfig(text_knn_weight=2.0, batch_size=pairs))
        for pairs in (PAIRS, LARGE)
    )
    numbers = iter(range(10**9))
    parts = _loading(trainer)
    took = in_turns(
        {
            "step": lambda: trainer._step(next(numbers)),
            "large": lambda: large._step(next(numbers)),
            "matrix": matrix_product(),
            "loader": lambda: parts(next(numbers)),
        },
        rounds,
    )
    rate = MATRIX_WORK / took["matrix"]
    return {
        "pairs a second": len(trainer.sampler.batch(0)) / took["step"],
        "matrix Gflop/s": rate / 1e9,
        "share of the matrix rate": _work(trainer) / took["step"] / rate,
        f"share with {LARGE:,} pairs a step": _work(large) / took["large"] / rate,
        "loader's share of a step": took["loader"] / took["step"],
    }


def _work(trainer: Trainer) -> float:
    """Useful operations of a step, the mean of some."""
    batches = (trainer.sampler.batch(number) for number in range(8))
    return statistics.mean(useful(pairs, trainer.corpus) for pairs in batches)


def _loading(trainer: Trainer) -> Callable[[int], None]:
    """What a step does before it computes anything."""

    def load(number: int) -> None:
        lengths = trainer.corpus.lengths
        pairs, _ = longer_first(trainer.sampler.batch(number), lengths)
        for rows in length_buckets(pairs, lengths, AREA):
            TextPairs.of(pairs[rows], trainer.corpus, torch.device("cpu"))

    return load
