"""`vhe`: networks whose vertices carry text. What most people need, imported only when it is used.

>>> import vhe
>>> network = vhe.TextNetwork.from_edges({"a": "cats purr", "b": "dogs bark"}, [("a", "b")])
>>> len(network)
2
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vhe.config import VHEConfig
    from vhe.data.datasets import load
    from vhe.data.network import TextNetwork
    from vhe.errors import VHEError
    from vhe.estimators import VHE
    from vhe.evaluation.link import evaluate

__version__ = "0.1.0"

__all__ = ["VHE", "TextNetwork", "VHEConfig", "VHEError", "__version__", "evaluate", "load"]

_HOMES = {
    "VHE": "vhe.estimators",
    "VHEConfig": "vhe.config",
    "VHEError": "vhe.errors",
    "TextNetwork": "vhe.data.network",
    "load": "vhe.data.datasets",
    "evaluate": "vhe.evaluation.link",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'vhe' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value  # the next access does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
