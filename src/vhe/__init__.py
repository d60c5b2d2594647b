"""`vhe`: networks whose vertices carry text. Names are imported on first use.

>>> import vhe
>>> network = vhe.TextNetwork.from_edges({"a": "cats purr", "b": "dogs bark"}, [("a", "b")])
>>> len(network)
2
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vhe.config import PairVHEConfig, VHEConfig
    from vhe.data.datasets import load
    from vhe.data.network import TextNetwork
    from vhe.data.sources import read
    from vhe.errors import VHEError
    from vhe.estimators import VHE, PairVHE, load_model
    from vhe.evaluation.link import evaluate
    from vhe.predict.scoring import CosineMethod, Method

__version__ = "0.2.0"

__all__ = [
    "VHE",
    "CosineMethod",
    "Method",
    "PairVHE",
    "PairVHEConfig",
    "TextNetwork",
    "VHEConfig",
    "VHEError",
    "__version__",
    "evaluate",
    "load",
    "load_model",
    "read",
]

_MODULES = {
    "VHE": "vhe.estimators",
    "PairVHE": "vhe.estimators",
    "VHEConfig": "vhe.config",
    "PairVHEConfig": "vhe.config",
    "VHEError": "vhe.errors",
    "TextNetwork": "vhe.data.network",
    "load": "vhe.data.datasets",
    "load_model": "vhe.estimators",
    "read": "vhe.data.sources",
    "evaluate": "vhe.evaluation.link",
    "CosineMethod": "vhe.predict.scoring",
    "Method": "vhe.predict.scoring",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'vhe' has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value  # later accesses skip this function
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
