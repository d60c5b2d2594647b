"""Settings of the pair model with which training takes a fraction of a second."""

from typing import Any

import pytest

from vhe.config import PairVHEConfig
from vhe.data.network import TextNetwork
from vhe.data.text import Corpus

TINY: dict[str, Any] = {
    "max_words": 16,
    "min_count": 1,
    "word_dim": 16,
    "latent_dim": 16,
    "structure_dim": 16,
    "hidden_dim": 16,
    "kernels": 8,
    "kernel_width": 3,
    "batch_size": 32,
    "near_pairs": 16,
    "warmup": 3,
    "steps": 12,
    "validation": 0.1,
    "contexts": 4,
}


@pytest.fixture(scope="session")
def pair_config() -> PairVHEConfig:
    return PairVHEConfig(**TINY)


@pytest.fixture(scope="session")
def pair_corpus(network: TextNetwork, pair_config: PairVHEConfig) -> Corpus:
    return Corpus.build(
        network.texts, min_count=pair_config.min_count, max_words=pair_config.max_words
    )
