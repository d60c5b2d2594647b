"""The one error a user can cause: a sentence that says what is wrong, where, and what to do."""


class VHEError(ValueError):
    """A mistake the user can mend; the command prints it as one line and exits with status 2."""
