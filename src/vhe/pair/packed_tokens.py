"""Where the words of the texts of a batch of pairs are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vhe.data.text import PADDING

Texts = tuple[Tensor, Tensor]  # tokens (batch, L_i) and (batch, L_j) of some pairs


class PackedTokens:
    """Both texts of all pairs as one row of places: the first texts of each part, then the second.

    The parts of a batch have texts of about equal length.
    """

    def __init__(self, parts: Sequence[Texts]) -> None:
        self.parts = parts
        sides = [texts[k] for k in (0, 1) for texts in parts]
        self.tokens = torch.cat([tokens.flatten() for tokens in sides])
        # many small steps, for which numpy takes a third of the time
        self.texts, widths = np.array([tokens.shape for tokens in sides]).T  # of each side
        self.sizes = self.texts * widths
        self.side = np.repeat(np.arange(len(sides)), self.texts)  # of each text
        self.width = widths[self.side]
        self.first = np.cumsum(self.width) - self.width
        self.text = np.repeat(np.arange(len(self.side)), self.width)  # of each place
        self.position = np.arange(len(self.tokens)) - self.first[self.text]
        self.mask = (self.tokens != PADDING).cpu().numpy()
        # of each text, up to its last word
        self.length = np.maximum.reduceat((self.position + 1) * self.mask, self.first)

    def tensor(self, array: NDArray[Any]) -> Tensor:
        return torch.from_numpy(array).to(self.tokens.device)

    def split(self, values: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """What there is for each place (places, ...), by parts, of their first and second sides."""
        each = values.split(self.sizes.tolist())
        found = [
            part.view(tokens.shape + values.shape[1:])
            for part, tokens in zip(each, (t[k] for k in (0, 1) for t in self.parts), strict=True)
        ]
        return found[: len(self.parts)], found[len(self.parts) :]
