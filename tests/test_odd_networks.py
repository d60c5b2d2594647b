"""Whatever the texts and the links, a network can be learned and every number is finite."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vhe.config import VHEConfig
from vhe.data.network import TextNetwork
from vhe.estimators import VHE

New = Callable[..., VHE]


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
    "lonely vertices": (WORDS, [(0, 1), (1, 2)]),
    "loops and repeats": (WORDS, [*RING, *RING, (3, 3), (1, 0)]),
    "long texts": ([f"w{k} common " * 40 for k in range(12)], RING),
    "scripts": (["图神经 网络", "कुत्ता भौंकता है", "ça é naïve", "🙂 🙃", "كلب", "Ωμέγα"] * 2, RING),
}
SHAPES: dict[str, dict[str, Any]] = {
    "default": {},
    "learned": {"structure": "learned", "word_init": "random"},
    "multinomial": {"decoder": "multinomial", "shared_posterior": False, "structure": "none"},
}


MATTER_TO_EVERY_SHAPE = {"empty texts", "some empty texts", "one word", "two vertices", "a clique"}


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        (name, shape)
        for name in ODD
        for shape in (SHAPES if name in MATTER_TO_EVERY_SHAPE else ["default"])
    ],
)
@pytest.mark.filterwarnings("ignore:no text has a word", "ignore:.*texts were cut")
def test_any_network_can_be_learned(hasty: New, name: str, shape: str) -> None:
    texts, edges = ODD[name]
    network = TextNetwork(range(len(texts)), texts, edges)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # numpy's, of overflows and the like
        model = hasty(**SHAPES[shape]).fit(network)
    assert model.result_["stopped"] == ""
    mean, std = model.embed(contexts="all", return_std=True)
    for array in (model.embedding_, model.embedding_std_, mean, std):
        assert array.shape == (len(network), 16)
        assert np.isfinite(array).all()
    i, j = (side.ravel() for side in np.indices((len(network),) * 2))
    chances = model.probability_indices(i, j)
    assert ((chances >= 0) & (chances <= 1)).all()
    assert len(model.suggest_links(0, k=3)) <= 3
    assert all(np.isfinite(list(record.values())).all() for record in model.history_)


def test_texts_without_a_word_are_told(hasty: New) -> None:
    with pytest.warns(UserWarning, match="no text has a word"):
        hasty().fit(TextNetwork(range(4), [""] * 4, [[0, 1], [2, 3]]))


def test_texts_that_are_cut_are_told(hasty: New) -> None:
    texts = ["a b c d", "a b", "c d", "a " * 10]
    with pytest.warns(UserWarning, match="2 of 4 texts were cut to 3 words"):
        hasty(max_words=3).fit(TextNetwork(range(4), texts, [[0, 1], [2, 3]]))


def test_the_paper_to_the_letter(network: TextNetwork, tiny: dict[str, Any]) -> None:
    sizes = ("max_words", "min_count", "word_dim", "latent_dim", "structure_dim", "hidden_dim")
    more = ("kernels", "steps", "validate_every", "epochs", "contexts")
    config = VHEConfig.paper().replace(**{name: tiny[name] for name in sizes + more})
    config = config.replace(latent_dim=24)  # need not be that of the words
    model = VHE.from_config(config, random_state=0).set_params(verbose=False, threads=1)
    model.fit(network)
    assert model.embedding_.shape == (len(network), 24)
    assert np.isfinite(model.embedding_).all()
    bounds = [record["bound"] for record in model.history_[1:]]
    assert bounds[-1] > bounds[0]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_is_the_same_after_loading(
    hasty: New, network: TextNetwork, shape: str, tmp_path: Path
) -> None:
    model = hasty(**SHAPES[shape]).fit(network)
    model.save(tmp_path / "model")
    loaded = VHE.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.embed(contexts="all"), model.embed(contexts="all"))
