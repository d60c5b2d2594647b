"""Occlusion: what a score loses without some words."""

import numpy as np

from vhe.text.occlusion import SPANS, occlusion_effects


def test_words_share_the_loss_of_their_run() -> None:
    calls: list[list[str]] = []

    def encode(texts: list[str]) -> np.ndarray:
        calls.append(texts)
        return np.array([[text.count("cat"), text.count("star")] for text in texts], np.float32)

    def effect(end: int, codes: np.ndarray) -> np.ndarray:
        return codes[:, end].astype(np.float64)

    long = " ".join(["word"] * (2 * SPANS - 2) + ["stars", "shine"])
    first, second = occlusion_effects(("A cat sleeps", long), encode, effect)
    np.testing.assert_allclose(first, [0, 1, 0])
    np.testing.assert_allclose(second, [0] * (2 * SPANS - 2) + [0.5, 0.5])
    assert [len(texts) for texts in calls] == [4, SPANS + 1]  # one batch per text


def test_empty_texts_have_no_words() -> None:
    found = occlusion_effects(
        ("", "cat"),
        lambda texts: np.zeros((len(texts), 1), np.float32),
        lambda end, codes: codes[:, 0].astype(np.float64),
    )
    assert [len(effects) for effects in found] == [0, 1]
