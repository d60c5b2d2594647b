"""Numbers at their edges and networks of extreme shapes: training ends with finite numbers, or
with one sentence."""

import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vhe.config import VHEConfig
from vhe.data.network import TextNetwork
from vhe.errors import VHEError
from vhe.estimators import VHE

New = Callable[..., VHE]
ALMOST_ONE = math.nextafter(1, 0)
pytestmark = pytest.mark.filterwarnings("ignore:.*stopped early", "ignore:.*texts were cut")


def assert_finite(model: VHE) -> None:
    assert np.isfinite(model.embedding_).all()
    assert np.isfinite(model.embedding_std_).all()
    n = len(model.network_)
    chances = model.probability_indices(np.zeros(n, np.int64), np.arange(n))
    assert ((chances >= 0) & (chances <= 1)).all()


NOT_NUMBERS = [math.nan, math.inf, -math.inf, -1.0]
MUST_BE_FINITE = ["learning_rate", "homophily", "precision", "link_weight", "pi0", "text_knn_weight",
                  "link_strength", "degree_weight", "alpha", "epochs", "validation",
                  "checkpoint_minutes"]  # fmt: skip


@pytest.mark.parametrize("name", MUST_BE_FINITE)
@pytest.mark.parametrize("value", NOT_NUMBERS)
def test_no_setting_takes_what_is_no_number(name: str, value: float) -> None:
    with pytest.raises(VHEError, match=name):
        VHEConfig(**{name: value})


EDGES: list[dict[str, Any]] = [
    {"homophily": 0.0},
    {"homophily": 5e-324},
    {"homophily": ALMOST_ONE},
    {"homophily": ALMOST_ONE, "structure": "learned", "shared_posterior": False},
    {"learning_rate": 5e-324},
    {"learning_rate": 100.0},
    {"learning_rate": 1e30},
    {"learning_rate": 1.7e308},
    {"learning_rate": 1e30, "structure": "learned"},
    {"learning_rate": 1e30, "validation": 0.0},
    {"precision": 1e-300},
    {"precision": 1e300},
    {"link_weight": 1e300},
    {"link_weight": 0.0, "alpha": 1.0},
    {"alpha": 0.0, "pi0": 5e-324},
    {"alpha": 1.0, "pi0": 5e-324},
    {"alpha": 1.0, "pi0": ALMOST_ONE},
    {"text_knn_weight": 1e300},
    {"text_knn_weight": 5e-324},
    {"validation": 0.5, "negatives": 50},
    {"batch_size": 10**6},
    {"contexts": 10**9},
    {"decoder": "multinomial", "learning_rate": 1e20},
    {"word_dim": 1, "latent_dim": 1, "structure_dim": 1, "hidden_dim": 1, "kernels": 1},
    {"kernel_width": 99},
    {"steps": 0, "epochs": 0.0},
    {"epochs": 5e-324, "steps": 0},
]


@pytest.mark.parametrize("edge", EDGES, ids=str)
def test_settings_at_their_edges(network: TextNetwork, hasty: New, edge: dict[str, Any]) -> None:
    try:
        model = hasty(**edge).fit(network)
    except VHEError as error:
        assert "\n" not in str(error)  # noqa: PT017
        return
    assert_finite(model)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("validation", [0.0, 0.1])
def test_weights_that_stop_being_numbers(
    network: TextNetwork, hasty: New, bad: float, validation: float, monkeypatch: Any
) -> None:
    """Whatever has spoiled them, what is saved is from before."""
    from vhe.pair.training import Trainer

    honest = Trainer._step

    def step(trainer: Trainer, number: int) -> dict[str, float]:
        told = honest(trainer, number)
        if number == 2:
            trainer.model.words.weight.data[1:] = bad
        return told

    monkeypatch.setattr(Trainer, "_step", step)
    model = hasty(steps=8, validation=validation).fit(network)
    assert "not finite" in model.result_["stopped"]
    assert_finite(model)


def star(n: int) -> list[tuple[int, int]]:
    return [(0, k) for k in range(1, n)]


def clique(n: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(n) for j in range(i)]


def couples(n: int) -> list[tuple[int, int]]:
    return [(k, k + 1) for k in range(0, n, 2)]


@pytest.mark.parametrize(
    ("shape", "short", "long"), [(star, 300, 20_000), (clique, 40, 300), (couples, 400, 20_000)]
)
@pytest.mark.parametrize("words", ["one", "own", "many"])
def test_networks_of_extreme_shapes(
    hasty: New,
    times: Callable[[int, int], int],
    shape: Callable[[int], list[tuple[int, int]]],
    short: int,
    long: int,
    words: str,
    tmp_path: Path,
) -> None:
    """`couples` of 20,000 has ten thousand components; one word in all, or each its own."""
    n = times(short, long)
    texts = {
        "one": ["word"] * n,
        "own": [f"word{k}" for k in range(n)],
        "many": [f"w{k % 7} w{k % 11} common" for k in range(n)],
    }
    network = TextNetwork(range(n), texts[words], shape(n))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = hasty(steps=2, contexts=1).fit(network)
    assert_finite(model)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(VHE.load(tmp_path / "model").embedding_, model.embedding_)


def test_texts_of_100_thousand_words(hasty: New) -> None:
    texts = [" ".join(f"w{(k * i) % 5000}" for k in range(100_000)) for i in (1, 3, 7, 11)]
    network = TextNetwork("abcd", texts, [(0, 1), (1, 2), (2, 3)])
    assert_finite(hasty(max_words=300, steps=2).fit(network))
    with pytest.raises(VHEError, match="max_words"):
        hasty(max_words=100_000, steps=2).fit(network)
