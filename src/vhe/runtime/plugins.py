"""Extension points: methods, readers and encoders that other packages provide.

A package announces them as entry points of the groups `vhe.methods`, `vhe.readers` and
`vhe.encoders` (docs/extending.md); nothing is imported before it is used.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib import import_module, metadata
from typing import Any, Literal

from vhe.errors import VHEError

Group = Literal["vhe.methods", "vhe.readers", "vhe.encoders"]


@cache
def _entry_points(group: Group) -> dict[str, metadata.EntryPoint]:
    return {point.name: point for point in metadata.entry_points(group=group)}


def names(group: Group) -> tuple[str, ...]:
    """Return the names that installed packages provide in a group."""
    return tuple(sorted(_entry_points(group)))


def load(group: Group, name: str) -> Any:
    """Return what an installed package provides under that name; None if there is none."""
    point = _entry_points(group).get(name)
    if point is None:
        return None
    try:
        return point.load()
    except Exception as error:  # code of others can raise anything
        package = point.dist.name if point.dist else point.module
        raise VHEError(
            f"{name}: cannot load {point.value} of the package {package}: "
            f"{type(error).__name__}: {error}"
        ) from error


def load_object(path: str) -> Any:
    """Return the object at ``package.module:name``; the current folder is searched last."""
    module, _, attribute = path.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        return getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise VHEError(f"{path}: {module} needs {error.name}, which is not installed") from None
        raise VHEError(
            f"{path}: no module {error.name!r}; install its package, or run the command in its "
            "folder"
        ) from None
    except AttributeError:
        if module in sys.modules and not hasattr(sys.modules[module], attribute):
            raise VHEError(f"{path}: the module {module} has no {attribute!r}") from None
        raise
    except Exception as error:  # code of others can raise anything
        raise VHEError(
            f"{path}: cannot import {module}: {type(error).__name__}: {error}"
        ) from error
