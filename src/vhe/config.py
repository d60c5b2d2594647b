"""Every setting of the model and its training: one field, its default, its help and its check.

The command line, the documentation and the validation read these fields; nothing repeats them.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import tomllib
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from vhe.errors import VHEError


def _setting(default: Any, help: str, check: Callable[[Any], bool], wanted: str) -> Any:
    return field(default=default, metadata={"help": help, "check": check, "wanted": wanted})


def _choice(default: str, *others: str, help: str) -> Any:
    allowed = (default, *others)
    return _setting(default, help, lambda v: v in allowed, "one of " + ", ".join(allowed))


def _count(default: int, help: str, least: int = 1) -> Any:
    return _setting(default, help, lambda v: v >= least, f"a whole number of at least {least}")


def _number(default: float, help: str, low: float, high: float, wanted: str) -> Any:
    return _setting(default, help, lambda v: low <= v <= high, wanted)


def _positive(default: float, help: str) -> Any:
    return _setting(default, help, lambda v: 0 < v < float("inf"), "a positive number")


def _not_negative(default: float, help: str) -> Any:
    return _setting(default, help, lambda v: 0 <= v < float("inf"), "a number of at least 0")


def _switch(default: bool, help: str) -> Any:
    return _setting(default, help, lambda v: isinstance(v, bool), "true or false")


@dataclass(frozen=True, kw_only=True)
class VHEConfig:
    """The settings of VHE; the defaults are the recipe that measured best on validation edges.

    >>> VHEConfig().homophily
    0.99
    >>> VHEConfig(homophily=1.0)
    Traceback (most recent call last):
        ...
    vhe.errors.VHEError: homophily is 1.0, but it has to be a number in [0, 1)
    """

    # text
    max_words: int = _count(300, "words of a text that are read; the rest is cut")
    min_count: int = _count(2, "a word that occurs less often in the whole network is left out")
    word_dim: int = _count(200, "numbers in a word vector (the paper's d_w)")
    word_init: Literal["lsa", "random"] = _choice(
        "lsa", "random", help="word vectors start from the corpus (LSA) or at random"
    )
    kernels: int = _count(200, "kernels of the phrase-to-word alignment (the paper's K)")
    kernel_width: int = _setting(
        5,
        "words in a phrase: the width of an alignment kernel",
        lambda v: v >= 1 and v % 2 == 1,
        "an odd whole number",
    )

    # latent variables
    latent_dim: int = _count(200, "numbers in a vertex embedding (the paper's d)")
    structure: Literal["joint", "learned", "none"] = _choice(
        "joint",
        "learned",
        "none",
        help="structure embedding h: the joint posterior of all vertices under the homophilic "
        "prior of the whole graph, a learned table, or none",
    )
    text_knn_weight: float | None = _setting(
        None,
        "weight of near texts as soft links in the joint posterior; none chooses by validation",
        lambda v: v is None or 0 <= v < float("inf"),
        "a number of at least 0, or none",
    )
    link_strength: float | None = _setting(
        None,
        "link_strength of a link in the joint posterior; none takes 2, or 8 where validation links are "
        "clearly told better by it, as where texts say little",
        lambda v: v is None or 0 < v < float("inf"),
        "a positive number, or none",
    )
    structure_dim: int = _count(200, "numbers in a structure embedding")
    hidden_dim: int = _count(200, "hidden units of the integrator and of the decoder")
    homophily: float = _setting(
        0.99,
        "λ, the prior correlation of two linked vertices",
        lambda v: 0 <= v < 1,
        "a number in [0, 1)",
    )
    pi0: float | None = _setting(
        None,
        "prior probability of a link; none takes the density of the network",
        lambda v: v is None or 0 < v < 1,
        "a number between 0 and 1, or none",
    )
    degree_weight: float | None = _setting(
        None,
        "what a unit of log(1 + links) of an end adds to the cosine in a score; none chooses by "
        "held-out links",
        lambda v: v is None or 0 <= v < float("inf"),
        "a number of at least 0, or none",
    )
    residual: bool = _switch(
        True, "means start at the text and structure embeddings; the MLP adds to them"
    )
    shared_posterior: bool = _switch(
        True, "q0 has the means and deviations of q1, only without its correlation"
    )
    link_posterior: Literal["latent", "mlp"] = _choice(
        "latent", "mlp", help="π from the cosine of the means, or from the integrator's MLP"
    )

    # reconstruction
    decoder: Literal["gaussian", "multinomial"] = _choice(
        "gaussian", "multinomial", help="decode the pooled word vectors, or the words themselves"
    )
    target: Literal["mean", "max"] = _choice(
        "mean", "max", help="how word vectors are pooled into the target of the Gaussian decoder"
    )
    fixed_target: bool = _switch(
        True,
        "scale the target to the prior and let no gradient into it, so that it cannot collapse",
    )
    precision: float = _positive(3.0, "weight of the squared error in log p(x|z)")

    # objective and training
    alpha: float = _number(
        0.2, "share of the pairs whose edge is treated as unknown", 0, 1, "a number in [0, 1]"
    )
    negatives: int = _count(1, "unlinked pairs for each linked one")
    link_weight: float = _not_negative(
        3000.0, "weight of log q(w|x) on known pairs, a link term that the paper does not have"
    )
    learning_rate: float = _positive(3e-3, "step size of Adam")
    batch_size: int = _count(128, "pairs in an optimiser step")
    step_links: int = _count(
        512, "links a step whose ends have to find each other in the joint posterior without them"
    )
    steps: int = _count(100, "optimiser steps at least", 0)
    epochs: float = _not_negative(0.0, "passes over the training links at least")
    validation: float = _number(
        0.15,
        "share of the training links held out for validation and calibration, at most 256 links",
        0,
        0.5,
        "a number in [0, 0.5]",
    )
    validate_every: int = _count(10, "steps between two looks at the validation links")
    patience: int = _count(4, "looks without an improvement before training stops")
    checkpoint_minutes: float = _positive(1.0, "minutes after which the training is kept on disk")
    checkpoint_epochs: float = _not_negative(
        0.0, "passes over the links after which it is kept as well; 0 goes by the clock alone"
    )
    embedding: Literal["joint", "average"] = _choice(
        "joint",
        "average",
        help="global embedding of a vertex: its joint posterior given the whole graph, where the "
        "structure is that, or the average of its local embeddings (the paper's)",
    )
    contexts: int = _count(8, "other vertices over which a global embedding is averaged")

    def __post_init__(self) -> None:
        hints = typing.get_type_hints(type(self))
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            allowed = _python_types(hints[f.name])
            if isinstance(value, int) and not isinstance(value, bool) and float in allowed:
                value = float(value)
                object.__setattr__(self, f.name, value)
            right_type = isinstance(value, allowed) and (
                bool in allowed or not isinstance(value, bool)
            )
            if not right_type or not f.metadata["check"](value):
                raise VHEError(f"{f.name} is {value!r}, but it has to be {f.metadata['wanted']}")
        sizes = {"word_dim": self.word_dim}
        if self.residual:
            sizes["latent_dim"] = self.latent_dim
        if self.structure == "joint" or (self.residual and self.structure == "learned"):
            sizes["structure_dim"] = self.structure_dim
        if len(set(sizes.values())) > 1:
            found = ", ".join(f"{name} is {size}" for name, size in sizes.items())
            raise VHEError(
                f"{found}, but they have to be equal with residual={str(self.residual).lower()} "
                f"and structure={self.structure}"
            )

    @property
    def embeds_jointly(self) -> bool:
        """Whether the joint posterior is the global embedding."""
        return self.structure == "joint" and self.embedding == "joint"

    @classmethod
    def paper(cls) -> VHEConfig:
        """The paper to the letter (section 3, appendices A-C)."""
        return cls(
            word_init="random",
            word_dim=100,
            structure_dim=100,
            latent_dim=200,
            structure="learned",
            embedding="average",
            residual=False,
            shared_posterior=False,
            link_posterior="mlp",
            degree_weight=0.0,
            target="max",
            fixed_target=False,
            precision=1.0,
            link_weight=0.0,
            learning_rate=1e-4,
            batch_size=64,
            steps=2000,
            epochs=20.0,
            validate_every=100,
            validation=0.05,  # a learned table never hears of these links
        )

    @classmethod
    def from_toml(cls, path: str | Path) -> VHEConfig:
        """Settings from a TOML file; what it does not name keeps its default."""
        try:
            settings = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise VHEError(f"{path}: there is no such configuration file") from None
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise VHEError(f"{path}: the configuration cannot be read, {reason}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise VHEError(f"{path}: this is not TOML ({error})") from None
        return cls.from_dict(settings)

    @classmethod
    def from_dict(cls, settings: dict[str, Any]) -> VHEConfig:
        for name in settings:
            cls._field(name)
        return cls(**settings)

    @classmethod
    def parse_setting(cls, name: str, text: str) -> Any:
        """The value that ``text`` stands for, as in ``--set homophily=0.9``.

        >>> VHEConfig.parse_setting("steps", "10"), VHEConfig.parse_setting("pi0", "none")
        (10, None)
        """
        f = cls._field(name)
        if isinstance(f.default, str):
            return text
        if text.lower() in ("none", "null"):
            return None
        try:
            return json.loads(text.lower())
        except json.JSONDecodeError:
            raise VHEError(f"{name} is {text!r}, but it has to be {f.metadata['wanted']}") from None

    def replace(self, **changes: Any) -> VHEConfig:
        for name in changes:
            self._field(name)
        return dataclasses.replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def _field(cls, name: str) -> dataclasses.Field[Any]:
        known = {f.name: f for f in dataclasses.fields(cls)}
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else "known are " + ", ".join(known)
            raise VHEError(f"there is no setting named {name!r}: {hint}")
        return known[name]


def _python_types(hint: Any) -> tuple[type, ...]:
    """The classes that a value of this annotation may have."""
    if typing.get_origin(hint) is Literal:
        return (str,)
    if isinstance(hint, types.UnionType):
        return tuple(t for part in typing.get_args(hint) for t in _python_types(part))
    return (hint,)
