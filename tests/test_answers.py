"""Answers of a model are the caller's own, and agree with each other."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from vhe.data.network import TextNetwork
from vhe.estimators import VHE, PairVHE


@pytest.mark.parametrize("kind", ["graph", "pair"])
def test_changing_an_answer_does_not_change_the_model(
    kind: str, fitted: VHE, fitted_pair: PairVHE
) -> None:
    model: Any = fitted if kind == "graph" else fitted_pair
    before = np.array(model.embedding_)
    for answer in (model.embed(), model.embed(["v0", "v1"]), model.embed("v0")):
        answer[...] = np.nan
    np.testing.assert_array_equal(model.embedding_, before)
    np.testing.assert_array_equal(model.embed(), before)


def test_explain_and_predict_proba_agree_where_all_texts_are_equal(
    hasty: Callable[..., VHE],
) -> None:
    """A slope of millions would make them differ by rounding."""
    rng = np.random.default_rng(0)
    n = 60
    edges = rng.integers(n, size=(150, 2))
    model = hasty().fit(TextNetwork(range(n), ["the same words"] * n, edges))
    pairs = rng.integers(n, size=(30, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    explained = [model.explain(int(a), int(b)).balanced_probability for a, b in pairs]
    predicted = model.predict_proba([(int(a), int(b)) for a, b in pairs])
    np.testing.assert_allclose(explained, predicted, rtol=1e-3, atol=1e-6)
