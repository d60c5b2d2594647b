"""A small network with learnable structure, settings that fit it in a fraction of a second, and
fitted models."""

import contextlib
import re
import signal
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

from vhe.config import PairVHEConfig, VHEConfig
from vhe.data.network import TextNetwork
from vhe.data.text import Corpus
from vhe.estimators import VHE, PairVHE

TOPICS, WORDS_PER_TOPIC = 5, 10

signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores Ctrl-C


def topic_network(n: int = 60, links_each: int = 2) -> TextNetwork:
    """Vertices in five topics with links inside their topic, except for three.

    A text has three to nine words of its topic and two words that all topics share.
    """
    rng = np.random.default_rng(7)
    topic = np.arange(n) % TOPICS
    texts, links = [], []
    for i in range(n):
        own = rng.integers(WORDS_PER_TOPIC, size=rng.integers(3, 10))
        common = rng.integers(4, size=2)
        texts.append(" ".join([f"t{topic[i]}w{k}" for k in own] + [f"common{k}" for k in common]))
        inside = np.flatnonzero((topic == topic[i]) & (np.arange(n) != i))
        links += [(i, int(j)) for j in rng.choice(inside, links_each, replace=False)]
    links += [(0, 1), (4, 7), (9, 11)]
    labels = [f"topic {t}" for t in topic]
    return TextNetwork([f"v{i}" for i in range(n)], texts, np.array(links), labels, name="topics")


@pytest.fixture(scope="session")
def network() -> TextNetwork:
    return topic_network()


@pytest.fixture(scope="session")
def tiny() -> dict[str, Any]:
    """Settings of `VHE` with which a fit takes a fraction of a second."""
    return {
        "max_words": 16,
        "min_count": 1,
        "latent_dim": 16,
        "max_steps": 20,
        "validate_every": 5,
        "patience": 100,
        "validation": 0.1,
    }


@pytest.fixture(scope="session")
def tiny_pair() -> dict[str, Any]:
    """Settings of `PairVHE` with which a fit takes about a second."""
    return {
        "max_words": 16,
        "min_count": 1,
        "word_dim": 16,
        "latent_dim": 16,
        "structure_dim": 16,
        "hidden_dim": 16,
        "kernels": 8,
        "kernel_width": 3,
        "batch_size": 64,
        "near_pairs": 16,
        "warmup": 2,
        "steps": 20,
        "validation": 0.1,
        "contexts": 4,
    }


@pytest.fixture(scope="session")
def config(tiny: dict[str, Any]) -> VHEConfig:
    return VHEConfig(**tiny)


@pytest.fixture(scope="session")
def pair_config(tiny_pair: dict[str, Any]) -> PairVHEConfig:
    return PairVHEConfig(**tiny_pair)


@pytest.fixture(scope="session")
def corpus(network: TextNetwork, config: VHEConfig) -> Corpus:
    return Corpus.build(network.texts, min_count=config.min_count, max_words=config.max_words)


@pytest.fixture(scope="session")
def new(tiny: dict[str, Any]) -> Callable[..., VHE]:
    """Makes a `VHE` with tiny settings, not fitted."""

    def model(**changes: Any) -> VHE:
        return VHE(**{"random_state": 3, "threads": 1, "verbose": False, **tiny, **changes})

    return model


@pytest.fixture(scope="session")
def new_pair(tiny_pair: dict[str, Any]) -> Callable[..., PairVHE]:
    """Makes a `PairVHE` with tiny settings, not fitted."""

    def model(**changes: Any) -> PairVHE:
        return PairVHE(
            **{"random_state": 3, "threads": 1, "verbose": False, **tiny_pair, **changes}
        )

    return model


@pytest.fixture(scope="session")
def hasty(new: Callable[..., VHE]) -> Callable[..., VHE]:
    """Makes a `VHE` that trains for four steps only."""

    def model(**changes: Any) -> VHE:
        return new(**{"max_steps": 4, "validate_every": 2, **changes})

    return model


@pytest.fixture(scope="session")
def fitted(network: TextNetwork, new: Callable[..., VHE]) -> VHE:
    """A `VHE` fitted to the network; tests must not change it."""
    return new().fit(network)


@pytest.fixture(scope="session")
def fitted_pair(network: TextNetwork, new_pair: Callable[..., PairVHE]) -> PairVHE:
    """A `PairVHE` fitted to the network; tests must not change it."""
    return new_pair().fit(network)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """One thread: sums in one order, the same bits every time."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(params=["native", "torch"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a test with the native kernels, and without them."""
    from vhe.runtime import native

    if request.param == "torch":
        monkeypatch.setattr(native, "is_available", lambda tensor: False)
    elif native.library() is None:
        pytest.skip("the native kernels are not built")
    return str(request.param)


@pytest.fixture
def logs(caplog: pytest.LogCaptureFixture) -> Callable[[str], Any]:
    """Expects a warning of the logger ``vhe`` inside a with statement; yields all of them."""

    @contextlib.contextmanager
    def expected(pattern: str) -> Iterator[list[str]]:
        caplog.clear()
        messages: list[str] = []
        yield messages
        messages += [r.getMessage() for r in caplog.records if r.name.startswith("vhe.")]
        assert any(re.search(pattern, message) for message in messages), messages

    return expected
