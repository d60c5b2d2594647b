"""The identity of a text encoder: whether it is the one that a model was fitted with."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from vhe.errors import VHEError
from vhe.runtime.messages import shown

PROBE = "Each vertex of the network carries a text, and linked vertices have similar texts."
PROBE_VALUES = 16
PROBE_TOLERANCE = 0.05  # devices and half precision differ by less, other models by more


@dataclass(frozen=True)
class EncoderIdentity:
    """The properties by which the encoder of a fit is recognised.

    Attributes
    ----------
    name : name or folder of the model, or name of the function
    revision : commit of a downloaded model, "sha256:" and a digest of the files of a folder, or
        empty for a function
    dimension : of the vectors
    probe : first components of the vector of `PROBE`, scaled to the length √dimension; they
        identify a model as a hash would, but allow for the rounding of another device
    """

    name: str
    revision: str
    dimension: int
    probe: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the identity as values that JSON can store."""
        return asdict(self) | {"probe": list(self.probe)}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Self:
        """Restore an identity."""
        try:
            name, revision = stored["name"], stored["revision"]
            probe = tuple(map(float, stored["probe"]))
            if isinstance(name, str) and isinstance(revision, str) and np.isfinite(probe).all():
                return cls(name, revision, int(stored["dimension"]), probe)
        except (LookupError, TypeError, ValueError):
            pass
        raise VHEError("the description of the encoder is damaged; fit the model again.")

    def check(self, given: EncoderIdentity) -> None:
        """Raise `VHEError` unless the encoder `given` has the same vectors as this one.

        The vector of `PROBE` decides: a model may have been moved or downloaded again.
        """
        difference = ""
        if given.dimension != self.dimension:
            difference = f"has {given.dimension} dimensions instead of {self.dimension}"
        elif not np.allclose(given.probe, self.probe, rtol=0, atol=PROBE_TOLERANCE):
            difference = "encodes the same text differently"
        if difference:
            raise VHEError(
                f"the model was fitted with the encoder {shown(self.name)}, but "
                f"{shown(given.name)} {difference}; use the encoder of the fit, or fit again."
            )
