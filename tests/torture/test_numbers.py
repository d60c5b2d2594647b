"""Extreme settings and networks of extreme shapes: training ends with finite numbers, or with one
sentence."""

import dataclasses
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vhe.config import PairVHEConfig, VHEConfig
from vhe.data.network import TextNetwork
from vhe.errors import VHEError
from vhe.estimators import Estimator, load_model
from vhe.graph.training import CrossFitTrainer
from vhe.pair.training import PairTrainer

New = Callable[..., Estimator]
ALMOST_ONE = math.nextafter(1, 0)


def assert_finite(estimator: Estimator) -> None:
    assert np.isfinite(estimator.embedding_).all()
    assert np.isfinite(estimator.embedding_std_).all()
    n = len(estimator.network_)
    probabilities = estimator.probability_indices(np.zeros(n, np.int64), np.arange(n))
    assert ((probabilities >= 0) & (probabilities <= 1)).all()


REAL_SETTINGS = [
    (config, field.name)
    for config in (VHEConfig, PairVHEConfig)
    for field in dataclasses.fields(config)
    if field.default is None or isinstance(field.default, float)
]


@pytest.mark.parametrize(("config", "name"), REAL_SETTINGS)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1.0])
def test_settings_must_be_finite(
    config: type[VHEConfig] | type[PairVHEConfig], name: str, value: float
) -> None:
    with pytest.raises(VHEError, match=name):
        config(**{name: value})


EXTREMES: list[tuple[str, dict[str, Any]]] = [
    ("graph", {"learning_rate": 5e-324}),
    ("graph", {"learning_rate": 100.0}),
    ("graph", {"learning_rate": 1e30}),
    ("graph", {"learning_rate": 1.7e308}),
    ("graph", {"learning_rate": 1e30, "validation": 0.0}),
    ("graph", {"text_knn_weight": 1e300}),
    ("graph", {"text_knn_weight": 5e-324}),
    ("graph", {"text_knn_weight": 0.0, "link_strength": 0.0}),
    ("graph", {"link_strength": 1e300}),
    ("graph", {"link_strength": 5e-324}),
    ("graph", {"link_features": ""}),
    ("graph", {"link_features": "degree"}),
    ("graph", {"link_features": "structure", "validation": 0.0}),
    ("graph", {"validation": 0.5}),
    ("graph", {"step_links": 10**6}),
    ("graph", {"latent_dim": 1}),
    ("graph", {"word_init": "random"}),
    ("graph", {"max_steps": 0}),
    ("pair", {"homophily": 0.0}),
    ("pair", {"homophily": 5e-324}),
    ("pair", {"homophily": ALMOST_ONE}),
    ("pair", {"homophily": ALMOST_ONE, "shared_posterior": False}),
    ("pair", {"learning_rate": 5e-324}),
    ("pair", {"learning_rate": 100.0}),
    ("pair", {"learning_rate": 1e30}),
    ("pair", {"learning_rate": 1.7e308}),
    ("pair", {"learning_rate": 1e30, "validation": 0.0}),
    ("pair", {"structure_rate": 1e30}),
    ("pair", {"precision": 1e-300}),
    ("pair", {"precision": 1e300}),
    ("pair", {"link_weight": 1e300}),
    ("pair", {"link_weight": 0.0, "alpha": 1.0}),
    ("pair", {"alpha": 0.0, "pi0": 5e-324}),
    ("pair", {"alpha": 1.0, "pi0": 5e-324}),
    ("pair", {"alpha": 1.0, "pi0": ALMOST_ONE}),
    ("pair", {"link_features": "words,degree,structure"}),
    ("pair", {"validation": 0.5, "negatives": 50}),
    ("pair", {"batch_size": 10**6}),
    ("pair", {"near_pairs": 10**4}),
    ("pair", {"contexts": 10**9}),
    ("pair", {"decoder": "multinomial", "learning_rate": 1e20}),
    ("pair", {"word_dim": 1, "latent_dim": 1, "structure_dim": 1, "hidden_dim": 1, "kernels": 1}),
    ("pair", {"kernel_width": 99}),
    ("pair", {"steps": 0, "epochs": 0.0}),
    ("pair", {"epochs": 5e-324, "steps": 0}),
]


@pytest.mark.parametrize(("model", "extreme"), EXTREMES, ids=str)
def test_extreme_settings(
    network: TextNetwork, new_estimator: New, model: str, extreme: dict[str, Any]
) -> None:
    try:
        estimator = new_estimator(model, **extreme).fit(network)
    except VHEError as error:
        assert "\n" not in str(error)  # noqa: PT017
        return
    assert_finite(estimator)


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("validation", [0.0, 0.1])
@pytest.mark.parametrize(
    ("model", "trainer_class"), [("graph", CrossFitTrainer), ("pair", PairTrainer)]
)
def test_weights_that_become_non_finite(
    network: TextNetwork,
    new_estimator: New,
    model: str,
    trainer_class: Any,
    value: float,
    validation: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The fitted model has the last finite weights."""
    genuine = trainer_class.step

    def step(trainer: Any, number: int) -> dict[str, float]:
        terms: dict[str, float] = genuine(trainer, number)
        if number == 2:
            for weight in trainer.weights().values():
                if weight.is_floating_point():
                    weight.fill_(value)
        return terms

    monkeypatch.setattr(trainer_class, "step", step)
    estimator = new_estimator(model, validation=validation).fit(network)
    assert "not finite" in estimator.result_["stopped"]
    assert_finite(estimator)


def star(n: int) -> list[tuple[int, int]]:
    return [(0, k) for k in range(1, n)]


def clique(n: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(n) for j in range(i)]


def couples(n: int) -> list[tuple[int, int]]:
    return [(k, k + 1) for k in range(0, n, 2)]


@pytest.mark.parametrize(
    ("shape", "short", "long"), [(star, 300, 20_000), (clique, 40, 300), (couples, 400, 20_000)]
)
@pytest.mark.parametrize("shared", ["all", "none", "some"])
def test_networks_of_extreme_shapes(
    new_estimator: New,
    model: str,
    times: Callable[[int, int], int],
    shape: Callable[[int], list[tuple[int, int]]],
    short: int,
    long: int,
    shared: str,
    tmp_path: Path,
) -> None:
    """Texts share all words, no words or some words; `couples` has n/2 components."""
    n = times(short, long)
    texts = {
        "all": ["word"] * n,
        "none": [f"word{k}" for k in range(n)],
        "some": [f"w{k % 7} w{k % 11} common" for k in range(n)],
    }
    network = TextNetwork(range(n), texts[shared], shape(n))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        steps = {"graph": {"max_steps": 2}, "pair": {"steps": 2, "contexts": 1}}
        estimator = new_estimator(model, **steps[model]).fit(network)
    assert_finite(estimator)
    estimator.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.embedding_, estimator.embedding_)


def test_texts_of_100_thousand_words(new_estimator: New, model: str) -> None:
    texts = [" ".join(f"w{(k * i) % 5000}" for k in range(100_000)) for i in (1, 3, 7, 11)]
    network = TextNetwork("abcd", texts, [(0, 1), (1, 2), (2, 3)])
    assert_finite(new_estimator(model, max_words=300).fit(network))
    if model == "graph":
        assert_finite(new_estimator(model, max_words=100_000).fit(network))
    else:  # the alignment of two such texts takes too much memory
        with pytest.raises(VHEError, match="max_words"):
            new_estimator(model, max_words=100_000).fit(network)
