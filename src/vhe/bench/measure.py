"""What every figure needs: turns, the machine's own rate, and networks of any size."""

from __future__ import annotations

import resource
import statistics
import sys
import time
from collections.abc import Callable, Mapping

import numpy as np
import torch

from vhe.config import VHEConfig
from vhe.data.network import TextNetwork
from vhe.data.splits import validation_links
from vhe.data.text import Corpus
from vhe.pair.model import PairVAE
from vhe.pair.training import Trainer

MATRIX = 2048  # rows of the matrices whose product tells the machine's rate
TOPICS, LINKS = 100, 2.3  # of a made-up network: topics, links a vertex (as Cora)
LENGTH, VOCABULARY = 88, 8700  # words a text, and in all (as Cora)


def in_turns(
    programs: Mapping[str, Callable[[], object]], rounds: int, calls: int = 4
) -> dict[str, float]:
    """Median seconds of each program. They take turns, so that what disturbs one disturbs all.

    A turn is several calls, as a training is one step after another; the first of them, which
    finds caches and memory as somebody else left them, is not counted."""
    took: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(rounds):
        for name, program in programs.items():
            for call in range(calls):
                began = time.perf_counter()
                program()
                if call:
                    took[name].append(time.perf_counter() - began)
    return {name: statistics.median(times) for name, times in took.items()}


def matrix_product() -> Callable[[], object]:
    """A program that does `MATRIX_WORK` operations in the best way that the machine knows."""
    matrix = torch.randn(MATRIX, MATRIX)
    return lambda: matrix @ matrix


MATRIX_WORK = 2 * MATRIX**3


def made_up(n: int, seed: int = 0) -> TextNetwork:
    """A network of n texts in topics, with links mostly inside a topic: the size is all that
    differs between two of them."""
    rng = np.random.default_rng(seed)
    topic = rng.integers(TOPICS, size=n)
    common = (VOCABULARY * rng.random((n, LENGTH)) ** 3).astype(np.int64)
    own = common - common % TOPICS + topic[:, None]
    words = np.where(rng.random((n, LENGTH)) < 0.4, own, common)
    texts = [" ".join(f"w{k}" for k in row) for row in words]
    order = np.argsort(topic, kind="stable")
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    source = rng.integers(n, size=round(LINKS * n))
    near = order[(place[source] + rng.integers(1, 12, size=len(source))) % n]
    target = np.where(rng.random(len(source)) < 0.9, near, rng.integers(n, size=len(source)))
    return TextNetwork(range(n), texts, np.stack([source, target], axis=1), name=f"made-up {n:,}")


def trainer_of(network: TextNetwork, config: VHEConfig | None = None) -> Trainer:
    """A training that is about to start."""
    config = config or VHEConfig(text_knn_weight=2.0)
    corpus = Corpus.build(network.texts, min_count=config.min_count, max_words=config.max_words)
    links, validation = validation_links(network.links, config.validation, 0, 256)
    model = PairVAE(config, len(corpus.vocabulary), len(network), 0.001)
    model.start(corpus, 0)
    return Trainer(model, corpus, links, validation, seed=0)


def peak_gigabytes() -> float:
    """The most memory that this process has held."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9
