"""Checks of arguments."""

from __future__ import annotations

from numbers import Integral


def is_integer(value: object) -> bool:
    """Return whether a value is an integer of Python or numpy; booleans are not.

    >>> is_integer(3), is_integer(3.0), is_integer(True)
    (True, False, False)
    """
    return isinstance(value, Integral) and not isinstance(value, bool)
