"""Unusual texts and links: every network can be fitted, and every number is finite."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vhe.config import PairVHEConfig
from vhe.data.network import TextNetwork
from vhe.estimators import PairVHE, load_model

New = Callable[..., Any]


def clique(n: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(n) for j in range(i)]


WORDS = [f"w{k} x{k % 3} common" for k in range(12)]
RING = [(k, (k + 1) % 12) for k in range(12)]
ODD: dict[str, tuple[list[str], list[tuple[int, int]]]] = {
    "empty texts": ([""] * 12, RING),
    "texts without a word": (["?!", " \n", "--"] * 4, RING),
    "some empty texts": (["", *WORDS[1:6], "", "", *WORDS[8:]], RING),
    "one word": (["word"] * 12, RING),
    "one word, often": (["word " * k for k in range(12)], RING),
    "one text with a word": (["word"] + [""] * 11, RING),
    "two vertices": (WORDS[:2], [(0, 1)]),
    "two vertices, one word": (["word"] * 2, [(0, 1)]),
    "three vertices": (WORDS[:3], [(0, 1)]),
    "a star": (WORDS, [(0, k) for k in range(1, 12)]),
    "a clique": (WORDS[:7], clique(7)),
    "two cliques": (WORDS[:8], clique(4) + [(4 + i, 4 + j) for i, j in clique(4)]),
    "pairs": (WORDS, [(k, k + 1) for k in range(0, 12, 2)]),
    "isolated vertices": (WORDS, [(0, 1), (1, 2)]),
    "loops and repeats": (WORDS, [*RING, *RING, (3, 3), (1, 0)]),
    "long texts": ([f"w{k} common " * 40 for k in range(12)], RING),
    "scripts": (["图神经 网络", "कुत्ता भौंकता है", "ça é naïve", "🙂 🙃", "كلب", "Ωμέγα"] * 2, RING),
}
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "graph": ("graph", {}),
    "graph, random words": ("graph", {"word_init": "random", "validation": 0.0}),
    "pair": ("pair", {}),
    "pair, random words": ("pair", {"word_init": "random"}),
    "pair, multinomial": (
        "pair",
        {"decoder": "multinomial", "shared_posterior": False, "structure": "none"},
    ),
}
FOR_ALL_VARIANTS = {"empty texts", "some empty texts", "one word", "two vertices", "a clique"}


@pytest.fixture
def make(hasty: New, new_pair: New) -> New:
    """Makes an estimator of a variant that trains for four steps only."""

    def model(variant: str, **changes: Any) -> Any:
        kind, settings = VARIANTS[variant]
        if kind == "graph":
            return hasty(**settings, **changes)
        return new_pair(steps=4, **settings, **changes)

    return model


@pytest.mark.parametrize(
    ("name", "variant"),
    [
        (name, variant)
        for name in ODD
        for variant in (VARIANTS if name in FOR_ALL_VARIANTS else ["graph", "pair"])
    ],
)
def test_any_network_can_be_fitted(make: New, name: str, variant: str) -> None:
    texts, edges = ODD[name]
    network = TextNetwork(range(len(texts)), texts, edges)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # of numpy, such as an overflow
        model = make(variant).fit(network)
        added = model.embed_texts(["common", "", "unheard"], [(0, 0)])
        explained = model.explain(0, 1)
    assert model.result_["stopped"] == ""
    assert model.embedding_.shape == (len(network), 16)
    assert model.embedding_std_.shape in ((len(network), 1), (len(network), 16))
    for array in (model.embedding_, model.embedding_std_, *added):
        assert np.isfinite(array).all()
    assert np.isfinite([explained.score, explained.text_score, explained.probability]).all()
    i, j = (side.ravel() for side in np.indices((len(network),) * 2))
    probabilities = model.probability_indices(i, j)
    assert ((probabilities >= 0) & (probabilities <= 1)).all()
    # one function for both: equal texts must not make rounding decide
    assert explained.balanced_probability == pytest.approx(probabilities[1], rel=1e-9)
    assert len(model.suggest_links(0, k=3)) <= 3
    assert all(np.isfinite(list(record.values())).all() for record in model.history_)


@pytest.mark.parametrize("variant", ["graph", "pair"])
def test_texts_without_a_word_give_a_warning(make: New, variant: str, logs: Any) -> None:
    with logs("no tokens found in any text: only links are used"):
        make(variant).fit(TextNetwork(range(4), [""] * 4, [[0, 1], [2, 3]]))


@pytest.mark.parametrize("variant", ["graph", "pair"])
def test_truncated_texts_give_a_warning(make: New, variant: str, logs: Any) -> None:
    texts = ["a b c d", "a b", "c d", "a " * 10]
    with logs("2 of 4 texts were truncated to 3 words"):
        make(variant, max_words=3).fit(TextNetwork(range(4), texts, [[0, 1], [2, 3]]))


def test_the_settings_of_the_paper(network: TextNetwork, tiny_pair: dict[str, Any]) -> None:
    names = ("max_words", "min_count", "word_dim", "structure_dim", "hidden_dim", "kernels")
    config = PairVHEConfig.paper().replace(**{name: tiny_pair[name] for name in names})
    config = config.replace(latent_dim=24, steps=40, epochs=0.0, contexts=4)
    model = PairVHE.from_config(config, random_state=0).set_params(verbose=False, threads=1)
    model.fit(network)
    assert model.embedding_.shape == (len(network), 24)
    assert np.isfinite(model.embedding_).all()
    bounds = [record["bound"] for record in model.history_[1:]]
    assert bounds[-1] > bounds[0]
    assert model.result_["best_step"] == 40  # trained to its length, whatever validation shows


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_is_the_same_after_loading(
    make: New, network: TextNetwork, variant: str, tmp_path: Path
) -> None:
    model = make(variant).fit(network)
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.embedding_, model.embedding_)
    texts = ["t0w1 t0w2", ""]
    np.testing.assert_array_equal(loaded.embed_texts(texts)[0], model.embed_texts(texts)[0])
