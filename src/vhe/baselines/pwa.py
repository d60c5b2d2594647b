"""PWA (the paper's own comparison): VHE's phrase-to-word alignment under CANE's objective, without
anything variational. What VHE adds to its encoder is the difference to this."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from vhe.baselines.contextual import CANEObjective, Contextual, ContextualPairs
from vhe.config import VHEConfig
from vhe.data.text import Corpus
from vhe.pair.alignment import PhraseToWordAlignment
from vhe.pair.model import TextPairs


class PWAPairs(ContextualPairs):
    """A text is the mean of its words, weighted by how they fit the phrases of its partner."""

    def __init__(self, config: VHEConfig, weights: CANEObjective, corpus: Corpus) -> None:
        super().__init__(config, weights, corpus)
        self.alignment = PhraseToWordAlignment(
            config.kernels, config.kernel_width, config.max_words
        )

    def start_layers(self, generator: torch.Generator) -> None:
        self.alignment.reset(generator)

    def texts(self, batch: Sequence[TextPairs]) -> tuple[Tensor, Tensor]:
        tokens = [(pairs.tokens_i, pairs.tokens_j) for pairs in batch]
        aligned = self.alignment(self.words.weight, tokens)
        return aligned.text_i, aligned.text_j


class PWA(Contextual):
    """Phrase-to-word alignment with CANE's objective; see `Contextual`."""

    pairs = PWAPairs
