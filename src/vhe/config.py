"""Settings of the two estimators: one field per setting, with its default, help text and check.

The command line, the documentation and the validation read these fields; nothing repeats them.
Every setting changes the result of a fit: options that do not (threads, verbosity, checkpoint
interval) are arguments of the estimators and of `fit`.
"""

from __future__ import annotations

import dataclasses
import json
import tomllib
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal, Self

from vhe.errors import VHEError, similar

__all__ = ["PairVHEConfig", "VHEConfig"]

LIMIT = 2**31  # of integers: sizes and counts of NumPy, torch and the kernels


def _setting(default: Any, help: str, check: Callable[[Any], bool], expected: str) -> Any:
    return field(default=default, metadata={"help": help, "check": check, "expected": expected})


def _choice(default: str, *others: str, help: str) -> Any:
    allowed = (default, *others)
    return _setting(default, help, lambda v: v in allowed, "one of " + ", ".join(allowed))


def _count(default: int, help: str, least: int = 1) -> Any:
    return _setting(default, help, lambda v: v >= least, f"an integer of at least {least}")


def _fraction(default: float, help: str, high: float = 1.0) -> Any:
    return _setting(default, help, lambda v: 0 <= v <= high, f"a number in [0, {high:g}]")


def _positive(default: float, help: str) -> Any:
    return _setting(default, help, lambda v: 0 < v < float("inf"), "a positive number")


def _not_negative(default: float, help: str) -> Any:
    return _setting(default, help, lambda v: 0 <= v < float("inf"), "a number of at least 0")


def _chosen_weight(help: str) -> Any:
    return _setting(
        None,
        help,
        lambda v: v is None or 0 <= v < float("inf"),
        "a number of at least 0, or none",
    )


def _groups(default: str, *allowed: str) -> Any:
    return _setting(
        default,
        f"what the link posterior reads beside the embedding: {', '.join(allowed)}, separated by "
        "commas",
        lambda v: not v or all(group.strip() in allowed for group in v.split(",")),
        "any of " + ", ".join(allowed) + ", separated by commas, or empty",
    )


def _switch(default: bool, help: str) -> Any:
    return _setting(default, help, lambda v: isinstance(v, bool), "true or false")


class Settings:
    """What both sets of settings can do: check themselves, be read from text and be changed."""

    def __post_init__(self) -> None:
        hints = typing.get_type_hints(type(self))
        for f in dataclasses.fields(self):  # type: ignore[arg-type]
            value, allowed = getattr(self, f.name), _python_types(hints[f.name])
            kind = type(value)
            if kind is not bool and issubclass(kind, Real):  # also the numbers of NumPy
                if issubclass(kind, Integral) and abs(value) >= LIMIT:
                    raise VHEError(f"{f.name} must be less than {LIMIT}")
                exact = int if issubclass(kind, Integral) and float not in allowed else float
                value = exact(value)
                object.__setattr__(self, f.name, value)
            right_type = isinstance(value, allowed) and (
                bool in allowed or not isinstance(value, bool)
            )
            if not right_type or not f.metadata["check"](value):
                raise VHEError(f"{f.name} is {value!r}, but must be {f.metadata['expected']}")

    @classmethod
    def from_toml(cls, path: str | Path) -> Self:
        """Settings from a TOML file; a setting that it does not name has its default."""
        try:
            settings = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise VHEError(f"{path}: no such configuration file; check the path") from None
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise VHEError(f"{path}: cannot read the configuration: {reason}") from None
        except (ValueError, RecursionError) as error:  # also of numbers of thousands of digits
            raise VHEError(f"{path}: not valid TOML ({error})") from None
        return cls.from_dict(settings)

    @classmethod
    def from_dict(cls, settings: dict[str, Any]) -> Self:
        for name in settings:
            cls.field(name)
        return cls(**settings)

    @classmethod
    def parse_setting(cls, name: str, text: str) -> Any:
        """The value that ``text`` stands for, as in ``--set homophily=0.9``.

        >>> PairVHEConfig.parse_setting("steps", "10"), PairVHEConfig.parse_setting("pi0", "none")
        (10, None)
        """
        f = cls.field(name)
        if isinstance(f.default, str):
            return text
        if text.lower() in ("none", "null"):
            return None
        try:
            return json.loads(text.lower())
        except (ValueError, RecursionError):  # also of numbers of thousands of digits
            raise VHEError(f"{name} is {text!r}, but must be {f.metadata['expected']}") from None

    def replace(self, **changes: Any) -> Self:
        for name in changes:
            self.field(name)
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)  # type: ignore[call-overload, no-any-return]

    @classmethod
    def field(cls, name: str) -> dataclasses.Field[Any]:
        """The setting of that name, with its default, help and check."""
        known = {f.name: f for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
        if name not in known:
            near = similar(name, known)
            hint = f"did you mean {near}?" if near else "known settings: " + ", ".join(known)
            raise VHEError(f"unknown setting {name!r}: {hint}")
        return known[name]


@dataclass(frozen=True, kw_only=True)
class VHEConfig(Settings):
    """Settings of `vhe.VHE`, the graph-wide prior; the defaults measured best on validation links.

    >>> VHEConfig().latent_dim
    200
    >>> VHEConfig(latent_dim=0)
    Traceback (most recent call last):
        ...
    vhe.errors.VHEError: latent_dim is 0, but must be an integer of at least 1
    """

    # text
    max_words: int = _count(300, "words read of each text; longer texts are truncated")
    min_count: int = _count(2, "minimum number of occurrences of a word in the network")
    latent_dim: int = _count(200, "dimension of word vectors and embeddings")
    word_init: Literal["lsa", "random"] = _choice(
        "lsa", "random", help="initial word vectors: latent semantic analysis, or random"
    )

    encoder_weight: float | None = _setting(
        None,
        "share of encoded or given vectors in the codes beside words, from 0 to 1; none: chosen on "
        "validation links",
        lambda v: v is None or 0 <= v <= 1,
        "a number in [0, 1], or none",
    )

    # prior
    link_strength: float | None = _chosen_weight(
        "coupling strength of a link in the prior; none: chosen on validation links"
    )
    text_knn_weight: float | None = _chosen_weight(
        "coupling strength of nearest texts in the prior; none: chosen on validation links"
    )
    link_features: str = _groups(
        "scales,words,degree,structure", "scales", "words", "degree", "structure"
    )

    # training of the word vectors
    learning_rate: float = _positive(1e-2, "step size of Adam")
    step_links: int = _count(512, "links masked and predicted in each step")
    max_steps: int = _count(40, "maximum number of optimiser steps; 0: no training", least=0)
    validation: float = _fraction(
        0.15,
        "fraction of the training links held out for validation and calibration (at most 256)",
        high=0.5,
    )
    validate_every: int = _count(5, "optimiser steps between validations")
    patience: int = _count(4, "validations without improvement before training stops")


@dataclass(frozen=True, kw_only=True)
class PairVHEConfig(Settings):
    """Settings of `vhe.PairVHE`, the paper's model over pairs.

    The defaults are the recipe that trains well; `PairVHEConfig.paper` is the paper to the letter.

    >>> PairVHEConfig(homophily=1.0)
    Traceback (most recent call last):
        ...
    vhe.errors.VHEError: homophily is 1.0, but must be a number in [0, 1)
    """

    # text
    max_words: int = _count(300, "words read of each text; longer texts are truncated")
    min_count: int = _count(2, "minimum number of occurrences of a word in the network")
    word_dim: int = _count(200, "dimension of word vectors (the paper's d_w)")
    word_init: Literal["lsa", "random"] = _choice(
        "lsa", "random", help="initial word vectors: latent semantic analysis, or random"
    )
    kernels: int = _count(200, "kernels of the phrase-to-word alignment (the paper's K)")
    kernel_width: int = _setting(
        5,
        "words in a phrase: width of an alignment kernel",
        lambda v: v >= 1 and v % 2 == 1,
        "an odd integer",
    )

    # latent variables
    latent_dim: int = _count(200, "dimension of embeddings (the paper's d)")
    structure: Literal["learned", "none"] = _choice(
        "learned", "none", help="structure embeddings: a learned table, or none"
    )
    structure_dim: int = _count(200, "dimension of structure embeddings")
    hidden_dim: int = _count(200, "hidden units of the integrator and of the decoder")
    homophily: float = _setting(
        0.99,
        "λ, the prior correlation of the codes of linked vertices",
        lambda v: 0 <= v < 1,
        "a number in [0, 1)",
    )
    pi0: float | None = _setting(
        None,
        "prior probability of a link, for link_posterior=mlp; none: the density of the network",
        lambda v: v is None or 0 < v < 1,
        "a number between 0 and 1, or none",
    )
    residual: bool = _switch(
        True, "posterior means start at text code + structure embedding; the MLP adds to them"
    )
    shared_posterior: bool = _switch(
        True, "q0 has the means and variances of q1, without its correlation"
    )
    link_posterior: Literal["text", "mlp"] = _choice(
        "text", "mlp", help="π from the cosine of the text codes, or from the integrator's MLP"
    )
    link_features: str = _groups("", "words", "degree", "structure")

    # reconstruction
    decoder: Literal["gaussian", "multinomial"] = _choice(
        "gaussian", "multinomial", help="decode the pooled word vectors, or the words themselves"
    )
    target: Literal["mean", "max"] = _choice(
        "mean", "max", help="pooling of the word vectors into the target of the Gaussian decoder"
    )
    fixed_target: bool = _switch(
        True, "standardise the target and stop its gradient, so that it cannot collapse"
    )
    precision: float = _positive(3.0, "ρ, the weight of the squared error in log p(x|z)")

    # objective and training
    alpha: float = _fraction(0.2, "fraction of the pairs whose edge is treated as unknown")
    negatives: int = _count(1, "unlinked pairs per linked pair")
    link_weight: float = _not_negative(
        1.0, "weight of log q(w|x) on known pairs, a link term that the paper does not have"
    )
    batch_size: int = _count(512, "pairs per optimiser step")
    near_pairs: int = _count(
        256, "further pairs per step, of texts that are nearest neighbours", least=0
    )
    learning_rate: float = _positive(1e-4, "step size of Adam for words and layers")
    structure_rate: float = _positive(0.1, "step size of Adam for the structure table")
    warmup: int = _count(20, "optimiser steps with a linearly growing step size", least=0)
    decay: bool = _switch(True, "let the step size decay to 0 (cosine)")
    steps: int = _count(90, "optimiser steps, at least", least=0)
    epochs: float = _not_negative(0.0, "passes over the training links, at least")
    validation: float = _fraction(
        0.05, "fraction of the training links held out for calibration (at most 256)", high=0.5
    )
    contexts: int = _count(8, "other vertices over which a global embedding is averaged")

    def __post_init__(self) -> None:
        super().__post_init__()
        sizes = {"word_dim": self.word_dim, "latent_dim": self.latent_dim}
        if self.structure == "learned":
            sizes["structure_dim"] = self.structure_dim
        if self.residual and len(set(sizes.values())) > 1:
            found = ", ".join(f"{name} is {size}" for name, size in sizes.items())
            raise VHEError(f"{found}, but they must be equal with residual=true")

    @classmethod
    def paper(cls) -> PairVHEConfig:
        """The paper to the letter (section 3, appendices A to C).

        It states no length of training: 2,000 steps or 20 epochs, whichever is longer.
        """
        return cls(
            word_init="random",
            word_dim=100,
            structure_dim=100,
            latent_dim=200,
            residual=False,
            shared_posterior=False,
            link_posterior="mlp",
            target="max",
            fixed_target=False,
            precision=1.0,
            link_weight=0.0,
            near_pairs=0,
            learning_rate=1e-4,
            structure_rate=1e-4,
            warmup=0,
            decay=False,
            batch_size=64,
            steps=2000,
            epochs=20.0,
        )


def _python_types(hint: Any) -> tuple[type, ...]:
    """The classes that a value of this annotation may have."""
    if typing.get_origin(hint) is Literal:
        return (str,)
    if isinstance(hint, types.UnionType):
        return tuple(t for part in typing.get_args(hint) for t in _python_types(part))
    return (hint,)
