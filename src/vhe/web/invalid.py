"""The sentence that an invalid request is answered with."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

BRANCHES = ("str", "int")  # of a union, as pydantic names them in the location of an error
REWRITTEN = {
    " after validation": "",
    "a valid dictionary or object to extract fields from": "a JSON object",
}


def described_error(errors: Sequence[dict[str, Any]]) -> str:
    """One sentence on the first place of a request that is invalid, from pydantic's errors.

    >>> loc, msg = ("body", "links", 0, 1), "Input should be a valid"
    >>> described_error([{"type": "string_type", "loc": (*loc, "str"), "msg": f"{msg} string"},
    ...                  {"type": "int_type", "loc": (*loc, "int"), "msg": f"{msg} integer"}])
    'links[0][1]: input should be a valid string or a valid integer.'
    """
    first = errors[0]
    if first["type"] == "json_invalid":
        return f"The request body is not valid JSON: {first['ctx']['error'].lower()}."
    place = _place(first["loc"])
    messages = [e["msg"][0].lower() + e["msg"][1:] for e in errors if _place(e["loc"]) == place]
    others = [message.removeprefix("input should be ") for message in messages[1:]]
    message = " or ".join([messages[0], *others])
    for before, after in REWRITTEN.items():
        message = message.replace(before, after)
    return f"{place or 'request body'}: {message}."


def _place(location: Sequence[str | int]) -> str:
    """Where in a request a value is, as in ``links[0][1]``."""
    place = ""
    for part in location[1:]:
        if isinstance(part, int):
            place += f"[{part}]"
        elif re.fullmatch(r"\w+", part) and part not in BRANCHES:
            place += f".{part}" if place else part
    return place
