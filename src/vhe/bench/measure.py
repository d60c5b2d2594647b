"""What all benchmarks need: interleaved runs, the rate of matrix products, synthetic networks."""

from __future__ import annotations

import itertools
import statistics
import sys
import time
from collections.abc import Callable, Mapping

import numpy as np
import torch

from vhe.config import PairVHEConfig
from vhe.data.network import TextNetwork
from vhe.data.splits import validation_links
from vhe.data.text import Corpus
from vhe.pair.model import PairVAE
from vhe.pair.training import PairTrainer

MATRIX = 2048  # rows of the matrices whose product measures the machine
MATRIX_WORK = 2 * MATRIX**3  # floating-point operations of one product
TOPICS, LINKS = 100, 2.3  # of a synthetic network: topics, links per vertex (as Cora)
LENGTH, VOCABULARY = 88, 8700  # words per text, and in the vocabulary (as Cora)


def interleaved(
    programs: Mapping[str, Callable[[], object]], rounds: int, calls: int = 4
) -> dict[str, float]:
    """Median seconds of each program. They run in turn, so that a disturbance affects all of them.

    A turn is several calls, as training is one step after another; the first of them, which finds
    caches and memory in another state, is not counted. A long program has one call per turn.
    """
    seconds: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(rounds):
        for name, program in programs.items():
            for call in range(calls):
                began = time.perf_counter()
                program()
                if call or calls == 1:
                    seconds[name].append(time.perf_counter() - began)
    return {name: statistics.median(times) for name, times in seconds.items()}


def matrix_product() -> Callable[[], object]:
    """A program of `MATRIX_WORK` operations: what this machine achieves at best."""
    matrix = torch.randn(MATRIX, MATRIX)
    return lambda: matrix @ matrix


def synthetic(n: int) -> TextNetwork:
    """A network of n texts in topics, with links mostly inside a topic.

    Two such networks differ in size only.
    """
    rng = np.random.default_rng(0)
    topic = rng.integers(TOPICS, size=n)
    common = (VOCABULARY * rng.random((n, LENGTH)) ** 3).astype(np.int64)
    own = common - common % TOPICS + topic[:, None]
    words = np.where(rng.random((n, LENGTH)) < 0.4, own, common)
    texts = [" ".join(f"w{k}" for k in row) for row in words]
    order = np.argsort(topic, kind="stable")
    position = np.empty(n, dtype=np.int64)
    position[order] = np.arange(n)
    source = rng.integers(n, size=round(LINKS * n))
    near = order[(position[source] + rng.integers(1, 12, size=len(source))) % n]
    target = np.where(rng.random(len(source)) < 0.9, near, rng.integers(n, size=len(source)))
    return TextNetwork(range(n), texts, np.stack([source, target], axis=1), name=f"synthetic {n:,}")


def pair_trainer(network: TextNetwork, config: PairVHEConfig | None = None) -> PairTrainer:
    """A trainer before its first step."""
    config = config or PairVHEConfig()
    corpus = Corpus.build(network.texts, min_count=config.min_count, max_words=config.max_words)
    links, validation = validation_links(network.links, config.validation, 0)
    model = PairVAE(config, len(corpus.vocabulary), len(network), 0.001)
    model.initialise(corpus, 0)
    return PairTrainer(model, corpus, links, validation, seed=0)


def training_step(trainer: PairTrainer) -> Callable[[], object]:
    """A program that runs the next training step."""
    numbers = itertools.count()
    return lambda: trainer.step(next(numbers) % trainer.steps)


def peak_gigabytes() -> float:
    """The largest amount of memory that this process has used; NaN on Windows."""
    try:
        import resource
    except ImportError:
        return float("nan")
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9
