"""The effect of words on an encoder's vector: its change when they are left out (occlusion)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from vhe.data.attributes import Vectors
from vhe.data.text import original_spelling

SPANS = 12  # a text is encoded again at most so often, without some neighbouring words each time


def occlusion_effects(
    texts: tuple[str, str],
    encode: Callable[[list[str]], Vectors],
    effect: Callable[[int, Vectors], NDArray[np.float64]],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What each word of two texts adds, as the loss without it: (W_a,) and (W_b,).

    A text of up to `SPANS` words is encoded without each of its words in turn, a longer one without
    runs of neighbouring words, which share the effect of their run. The variants of a text are
    encoded at once; they have about the same length, so that little is spent on padding.

    Parameters
    ----------
    encode : codes (k, p) of texts
    effect : of codes (k, p) of variants of text 0 or 1 on the score: (k,)
    """
    effects = []
    for number, text in enumerate(texts):
        words = original_spelling(text)
        edges = np.linspace(0, len(words), min(SPANS, len(words)) + 1).round().astype(int)
        spans = list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
        codes = encode([text, *(" ".join(words[:a] + words[b:]) for a, b in spans)])
        found = effect(number, codes)
        lost = np.zeros(len(words))
        for (a, b), without in zip(spans, found[1:], strict=True):
            lost[a:b] = (found[0] - without) / (b - a)
        effects.append(lost)
    return effects[0], effects[1]
