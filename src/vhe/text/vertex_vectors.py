"""Where the vectors of vertices come from: given with the network, or made by a text encoder."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from vhe.data.attributes import Vectors, checked_vectors
from vhe.errors import VHEError
from vhe.runtime import plugins
from vhe.runtime.messages import counted, shown
from vhe.runtime.progress import Progress
from vhe.text.encoder_identity import EncoderIdentity
from vhe.text.encoders import Encode, TextEncoder, matching_encoder
from vhe.text.vector_codes import VectorCodes

AnyEncoder = str | PathLike[str] | Encode | TextEncoder


@dataclass(frozen=True, eq=False)
class VectorSource:
    """The source of the vectors of vertices and their transformation to codes.

    Attributes
    ----------
    transform : from vectors to codes
    identity : of the encoder; None for given vectors
    """

    transform: VectorCodes
    identity: EncoderIdentity | None

    @property
    def name(self) -> str:
        """The name of the part of a score that comes from the vectors."""
        return "vectors" if self.identity is None else "encoder"

    def new_codes(
        self, texts: Sequence[str], vectors: Any | None, encoder: Callable[[], TextEncoder]
    ) -> Vectors:
        """Return the codes of k vertices that were not part of the fit: (k, p).

        ``vectors`` (k, columns) are required if, and only if, the fit had given vectors; otherwise
        ``encoder`` returns the encoder of the fit.
        """
        if self.identity is None:
            if vectors is None:
                columns = counted(self.transform.standardisation.width, "column")
                raise VHEError(
                    f"the model was fitted on given vectors ({columns}); give vectors of new "
                    "vertices, too (vectors=, --vectors FILE.npy, or a column named vector)."
                )
            return self.transform(checked_vectors(vectors, len(texts)))
        if vectors is not None:
            raise VHEError(
                f"the model was fitted with the encoder {shown(self.identity.name)}, which reads "
                "texts; omit the vectors."
            )
        if not len(texts):
            return np.zeros((0, self.transform.components.shape[1]), dtype=np.float32)
        return self.transform(encoder().encode(texts))


def find_encoder(encoder: AnyEncoder, device: str, batch: int) -> TextEncoder:
    """Return the encoder that an estimator is given."""
    if isinstance(encoder, TextEncoder):
        return encoder
    from vhe.runtime.device import find_device  # imports torch

    find_device(device)  # reports a wrong one before anything is computed
    if isinstance(encoder, str) and (function := plugins.load("vhe.encoders", encoder)):
        return TextEncoder(function, name=encoder, batch=batch)
    return TextEncoder(encoder, device=device, batch=batch)


def encoder_of(
    identity: EncoderIdentity, encoder: AnyEncoder | None, device: str, batch: int
) -> TextEncoder:
    """Return the encoder of a fitted model: the given one or the one of that name, if it is the
    same. Nothing is downloaded."""
    if isinstance(encoder, TextEncoder):
        identity.check(encoder.identity)
        return encoder
    chosen = plugins.load("vhe.encoders", identity.name) if encoder is None else encoder
    return matching_encoder(identity, chosen, device=device, batch=batch, download=False)


def vertex_vectors(
    texts: Sequence[str],
    given: Vectors | None,
    encoder: TextEncoder | None,
    *,
    dim: int,
    seed: int,
    show: bool,
) -> tuple[VectorSource, Vectors] | None:
    """Return the codes (n, p) of the vertices of a fit and their source; None without vectors."""
    if encoder is None and given is None:
        return None
    identity = None
    if encoder is not None:
        if given is not None:
            raise VHEError(
                "the network has vectors, and an encoder is given; use one of them: omit the "
                "encoder, or remove the vectors (with_edges(edges, vectors=None))."
            )
        with Progress("loading the encoder", show=show):
            identity = encoder.identity
        with Progress("encoding texts", len(texts), show=show) as progress:
            given = encoder.encode(texts, progress.report)
    assert given is not None
    with Progress("vector codes", show=show):
        transform = VectorCodes.fit(given, dim, seed)
        return VectorSource(transform, identity), transform(given)


def aligned(vectors: Any, ids: Sequence[Hashable]) -> Any:
    """Return vectors given by id, or in the order of the ids, as rows in that order."""
    if not isinstance(vectors, Mapping):
        return vectors
    missing = [i for i in ids if i not in vectors]
    if missing:
        raise VHEError(f"vectors: none is given for the new vertex {shown(missing[0])}.")
    return [vectors[i] for i in ids]
