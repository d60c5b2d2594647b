"""The two estimators: `VHE` solves the graph-wide prior, `PairVHE` optimises the paper's ELBO.

Both have one contract, `Estimator`; everything downstream (`vhe.predict`) works with either.
"""

from __future__ import annotations

from pathlib import Path

from vhe.estimators.base import Estimator
from vhe.estimators.graph import VHE
from vhe.estimators.pair import PairVHE
from vhe.fitted import checked
from vhe.storage.model_folder import read_model

__all__ = ["VHE", "Estimator", "PairVHE", "load_model"]


def load_model(folder: str | Path) -> VHE | PairVHE:
    """Read a model folder that `save` or ``vhe fit`` wrote."""
    saved = read_model(Path(folder))
    return checked(VHE if saved.model == "graph" else PairVHE, saved, Path(folder))
