"""The one error a user can cause: a sentence that says what is wrong, where, and what to do."""

import difflib
from collections.abc import Iterable

__all__ = ["VHEError"]


class VHEError(ValueError):
    """A mistake the user can mend; the command prints it as one line and exits with status 2."""


class VHETypeError(VHEError, TypeError):
    """An argument of a wrong type."""


def similar(word: str, known: Iterable[str], cutoff: float = 0.75) -> str | None:
    """Return the known word that was probably meant, whatever its case.

    >>> similar("HepHT", ["cora", "hepth"]), similar("wikipedia", ["cora", "hepth"])
    ('hepth', None)
    """
    names = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(word.casefold(), names, n=1, cutoff=cutoff)
    return names[near[0]] if near else None
