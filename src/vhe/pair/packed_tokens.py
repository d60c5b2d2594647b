"""The texts of a batch of pairs as one flat array of tokens, as alignment.c reads them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from vhe.data.text import PADDING

Texts = tuple[Tensor, Tensor]  # tokens (batch, L_i) and (batch, L_j) of some pairs


class PackedTokens:
    """The first texts of all parts of a batch, then the second texts, padding included.

    Attributes
    ----------
    tokens : (positions,)
    first : (2 pairs,) the first position of each text
    length : (2 pairs,) up to the last word of each text
    """

    def __init__(self, parts: Sequence[Texts]) -> None:
        self.sides = [texts[k] for k in (0, 1) for texts in parts]
        self.tokens = torch.cat([tokens.flatten() for tokens in self.sides])
        texts, widths = np.array([tokens.shape for tokens in self.sides]).T
        width = np.repeat(widths, texts)  # of each text
        self.first = np.cumsum(width) - width
        position = np.arange(1, len(self.tokens) + 1) - np.repeat(self.first, width)
        self.length = np.maximum.reduceat(
            position * (self.tokens != PADDING).cpu().numpy(), self.first
        )

    def split(self, values: Tensor) -> list[Texts]:
        """Values (positions,) in the shape of the tokens of each part."""
        pieces = values.split([tokens.numel() for tokens in self.sides])
        found = [p.view(tokens.shape) for p, tokens in zip(pieces, self.sides, strict=True)]
        half = len(found) // 2
        return list(zip(found[:half], found[half:], strict=True))
