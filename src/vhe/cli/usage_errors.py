"""What is wrong with a command line, in the words of a user."""

from collections.abc import Iterable
from typing import Any, Literal, get_args, get_origin

from cyclopts import (
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    RepeatArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
    ValidationError,
)

from vhe.errors import similar

GLOBAL_OPTIONS = ("--help", "--install-completion", "--version")
KINDS = {int: "an integer", float: "a number"}


def usage_error(error: CycloptsError, commands: Iterable[str]) -> str:
    """Describe an invalid command line; a misspelt word with the similar one, whatever its case."""
    if isinstance(error, UnknownCommandError) and error.unused_tokens:
        word = error.unused_tokens[0]
        if word.startswith("-"):
            return _unknown("option", word, GLOBAL_OPTIONS)
        return _unknown("command", word, commands)
    if isinstance(error, UnknownOptionError):
        known = [name for argument in error.argument_collection for name in argument.names]
        return _unknown("option", error.token.keyword or error.token.value, known)
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        reading = {"fit", "evaluate"} & set(error.command_chain or ())
        hint = "; two tables are given as --vertices FILE --edges FILE" if reading else ""
        return f"unexpected argument {error.unused_tokens[0]}{hint}"
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        if error.keyword is not None:
            return f"{error.keyword} requires a value"
        return f"{error.argument.name} is required"
    if isinstance(error, RepeatArgumentError):
        return f"{error.token.keyword} is given more than once"
    if isinstance(error, CoercionError) and error.token is not None:
        name = error.token.keyword or _name(error.argument)
        return f"{name} {error.token.value}: {_expected(error)}"
    if isinstance(error, ValidationError) and error.argument is not None and error.argument.tokens:
        token, rule = error.argument.tokens[0], error.exception_message.rstrip(".")
        name = token.keyword or _name(error.argument)
        return f"{name} {token.value}: {rule[:1].lower()}{rule[1:]}"
    return str(error).strip().rstrip(".")


def _unknown(kind: str, word: str, known: Iterable[str]) -> str:
    names = {name.lstrip("-"): name for name in known}
    near = similar(word.lstrip("-"), names, cutoff=0.65)
    return f"unknown {kind} {word}" + (f" (did you mean {names[near]}?)" if near else "")


def _name(argument: Any) -> str:
    return "" if argument is None else str(argument.name).lstrip("-").upper()


def _expected(error: CoercionError) -> str:
    """What a value must be: of a type, or one of some words."""
    if error.target_type in KINDS:
        return f"must be {KINDS[error.target_type]}"
    if get_origin(error.target_type) is not Literal:
        return "not a possible value"
    choices = [str(choice) for choice in get_args(error.target_type)]
    meant = similar(error.token.value, choices, cutoff=0.6) if error.token else None
    return f"must be one of {', '.join(choices)}" + (f" (did you mean {meant}?)" if meant else "")
