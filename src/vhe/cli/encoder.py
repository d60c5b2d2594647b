"""Options of text encoders and vectors."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Group, Parameter
from cyclopts.types import PositiveInt

from vhe.cli.options import Help

Vectors = Annotated[
    Path | None, Help("array of shape (vertices, columns) in the order of the vertices (.npy)")
]


@Parameter(name="*", group=Group("Text encoders and vectors", sort_key=2))
@dataclass(frozen=True)
class EncoderOptions:
    """Vectors beside words: encoded from the texts, or given."""

    encoder: Annotated[
        str | None,
        Help("sentence-transformers model, such as all-MiniLM-L6-v2", metavar="NAME|FOLDER"),
    ] = None
    encoder_weight: Annotated[
        float | None, Help("share of the vectors, 0 to 1 (default: chosen on validation links)")
    ] = None
    encoder_device: Annotated[
        str, Help("device of the encoder (default: a GPU if there is one)", show_default=False)
    ] = "auto"
    encoder_batch: Annotated[PositiveInt, Help("texts encoded at a time")] = 32
    vectors: Vectors = None

    @property
    def first_given(self) -> str | None:
        """Name of the first of the options that is given."""
        given = {
            "--encoder": self.encoder,
            "--vectors": self.vectors,
            "--encoder-weight": self.encoder_weight,
        }
        return next((name for name, value in given.items() if value is not None), None)
