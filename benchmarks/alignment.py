"""Training pairs a second, over a straightforward implementation that pads every text to 300 words.

Both take the same training step on the same pairs from the same weights, in turns, so that a
noisy machine is noisy to both. Prints the ratio, how far their gradients are apart, and the
arithmetic rate beside the machine's own for matrix products.

    .venv/bin/python benchmarks/alignment.py cora
"""

from __future__ import annotations

import argparse
import copy
import statistics
import time

import numpy as np
import torch
from torch import Tensor

import vhe
from vhe.config import VHEConfig
from vhe.data.pairs import Pairs
from vhe.data.text import Corpus
from vhe.nn.alignment import MASKED, PhraseToWordAlignment
from vhe.nn.pair_vae import PairVAE, TextPairs
from vhe.train.trainer import Trainer

PAIRS = 128


class StraightforwardAlignment(PhraseToWordAlignment):
    """The equations of appendix B as one would first write them."""

    def weights(self, similarity: Tensor, mask: Tensor) -> Tensor:
        convolved = torch.nn.functional.conv1d(
            similarity.transpose(1, 2), self.kernels.transpose(1, 2), padding=self.width // 2
        )  # (batch, K, L)
        scores = torch.tanh(convolved).amax(dim=1)
        return torch.softmax(scores.masked_fill(~mask, MASKED), dim=1) * mask


def widened(pairs: TextPairs, most: int) -> TextPairs:
    """The same pairs, each text padded to ``most`` words."""
    wide = {
        name: torch.nn.functional.pad(tokens, (0, most - tokens.shape[1]))
        for name, tokens in (("tokens_i", pairs.tokens_i), ("tokens_j", pairs.tokens_j))
    }
    return TextPairs(**{**vars(pairs), **wide})


def straightforward_step(trainer: Trainer, pairs: Pairs, most: int) -> None:
    """Forward and backward over the pairs, 32 at a time, each text padded to ``most`` words."""
    for rows in np.array_split(np.arange(len(pairs)), max(1, len(pairs) // 32)):
        part = TextPairs.of(pairs[rows], trainer.corpus, torch.device("cpu"))
        padded = widened(part, most)
        terms = trainer.model.loss([padded], torch.Generator().manual_seed(0))
        (trainer.model.objective(terms).sum() / len(pairs)).backward()


def matrix_rate() -> float:
    """Floating-point operations a second of a large matrix product."""
    matrix = torch.randn(2048, 2048)
    began = time.perf_counter()
    matrix @ matrix
    return 2 * 2048**3 / (time.perf_counter() - began)


def gradient_gap(model: PairVAE, plain: PairVAE, pairs: TextPairs) -> float:
    """How far apart the kernels' gradients of the aligned texts are, relative to the largest."""
    found = []
    for network in (model, plain):
        seen = network.infer(pairs)
        weighed = (seen.weight_i.unsqueeze(1) @ seen.words_i).square().sum()
        found.append(torch.autograd.grad(weighed, network.alignment.kernels)[0])
    ours, theirs = found
    return float((ours - theirs).abs().max() / theirs.abs().max())


def measure(name: str, rounds: int) -> None:
    network = vhe.load(name)
    # the partner term needs the whole batch at once, which the straightforward way has not
    config = VHEConfig(structure="learned", link_weight=0.0)
    corpus = Corpus.build(network.texts, max_words=config.max_words)
    model = PairVAE(config, len(corpus.vocabulary), len(network), 0.001)
    model.start(corpus, 0)
    plain = copy.deepcopy(model)
    plain.alignment.__class__ = StraightforwardAlignment
    none = network.links[:0]
    ours = Trainer(model, corpus, network.links, none, seed=0)
    theirs = Trainer(plain, corpus, network.links, none, seed=0)
    ours.sampler.links_in_batch = theirs.sampler.links_in_batch = PAIRS // 2
    pairs = ours.sampler.batch(0)
    work = 4000 * float((corpus.lengths[pairs.i] * corpus.lengths[pairs.j]).sum())
    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    rates = []
    for _ in range(rounds + 1):
        for who, run in (
            ("ours", lambda: ours.backward(pairs, 0)),
            ("theirs", lambda: straightforward_step(theirs, pairs, config.max_words)),
        ):
            began = time.perf_counter()
            run()
            times[who].append(time.perf_counter() - began)
        rates.append(matrix_rate())
        model.zero_grad()
        plain.zero_grad()
    some = TextPairs.of(pairs[np.arange(16)], corpus, torch.device("cpu"))
    apart = gradient_gap(model, plain, widened(some, config.max_words))
    quick, slow = (statistics.median(times[who][1:]) for who in ("ours", "theirs"))
    rate = statistics.median(rates)
    print(f"{name}, {torch.get_num_threads()} threads, {len(pairs)} pairs a step")
    print(f"  pairs a second                {len(pairs) / quick:10.0f}")
    print(f"  straightforward, padded       {len(pairs) / slow:10.0f}")
    print(f"  ratio                         {slow / quick:10.1f}")
    print(f"  kernel gradients apart        {apart:10.1e}  (relative to the largest)")
    print(f"  useful Gflop/s                {work / quick / 1e9:10.1f}")
    print(f"  matrix product Gflop/s        {rate / 1e9:10.1f}")
    print(f"  share of the machine's rate   {work / quick / rate:10.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="*", default=["seealso"])
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    for dataset in arguments.datasets:
        measure(dataset, arguments.rounds)
