"""Checks of arguments."""

from __future__ import annotations

from numbers import Integral, Real


def is_integer(value: object) -> bool:
    """Return whether a value is an integer of Python or numpy; booleans are not.

    >>> is_integer(3), is_integer(3.0), is_integer(True)
    (True, False, False)
    """
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """Return whether a value is a real number of Python or numpy; booleans are not."""
    return isinstance(value, Real) and not isinstance(value, bool)
