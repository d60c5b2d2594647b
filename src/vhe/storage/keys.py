"""Vertex ids and labels as JSON values."""

from __future__ import annotations

from typing import Any

import numpy as np

from vhe.errors import VHEError


def encode_key(value: Any) -> Any:
    """Return a vertex id or a label as a JSON value from which `decode_key` restores its type.

    >>> decode_key(encode_key(("p", 12))) == ("p", 12)
    True
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, tuple):
        return {"tuple": [encode_key(part) for part in value]}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    raise VHEError(
        f"the id or label {value!r} is a {type(value).__name__}, which cannot be saved: "
        "use strings, numbers, or tuples of them"
    )


def decode_key(value: Any) -> Any:
    """Return the id or label of a JSON value, or raise `ValueError` if it is none."""
    if isinstance(value, dict) and [*value] == ["tuple"] and isinstance(value["tuple"], list):
        return tuple(decode_key(part) for part in value["tuple"])
    if isinstance(value, dict) and [*value] == ["bytes"] and isinstance(value["bytes"], str):
        return bytes.fromhex(value["bytes"])
    if isinstance(value, dict | list):
        raise ValueError("not an id or a label")
    return value
