"""Measures of link prediction, classification and calibration. `vhe.evaluate` is the package and,
called, the one function most people need: ``vhe.evaluate(model, test)``."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vhe.data.split import LinkTest
    from vhe.evaluate.contract import Method
    from vhe.evaluate.link import LinkScores, evaluate

__all__ = ["LinkScores", "evaluate"]


class _Evaluate(ModuleType):
    """Importing any part of a package sets its name on the parent, over a function of that name;
    so the package itself answers to a call."""

    def __call__(self, method: Method, test: LinkTest) -> LinkScores:
        from vhe.evaluate.link import evaluate

        return evaluate(method, test)


sys.modules[__name__].__class__ = _Evaluate


def __getattr__(name: str) -> Any:
    if name in __all__:
        from vhe.evaluate import link

        return getattr(link, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
