"""The settings of both estimators: their defaults, their checks, and all ways to give them."""

import dataclasses
import json
import math
import typing
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vhe.config import PairVHEConfig, Settings, VHEConfig
from vhe.errors import VHEError

CONFIGS: list[type[Settings]] = [VHEConfig, PairVHEConfig]
FIELDS = {(cls, f.name): f for cls in CONFIGS for f in dataclasses.fields(cls)}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("cls", "name"), FIELDS, ids=[f"{cls.__name__}-{name}" for cls, name in FIELDS]
)
def test_every_setting_has_a_help_text_and_a_valid_default(cls: Any, name: str) -> None:
    field = FIELDS[cls, name]
    assert field.metadata["help"]
    assert field.metadata["expected"]
    assert field.metadata["check"](field.default)
    assert getattr(cls(), name) == field.default
    assert cls.field(name) is field


def test_the_settings_of_the_paper() -> None:
    paper = PairVHEConfig.paper()
    assert (paper.homophily, paper.alpha, paper.learning_rate) == (0.99, 0.2, 1e-4)
    assert (paper.kernels, paper.kernel_width) == (200, 5)
    assert (paper.word_dim, paper.structure_dim, paper.latent_dim) == (100, 100, 200)
    assert (paper.structure, paper.link_posterior, paper.decoder) == ("learned", "mlp", "gaussian")
    assert (paper.target, paper.fixed_target, paper.precision) == ("max", False, 1)
    assert (paper.word_init, paper.structure_rate) == ("random", 1e-4)
    assert not paper.residual
    assert not paper.shared_posterior
    assert not paper.decay
    assert paper.pi0 is None  # the density of the network
    assert paper.link_weight == paper.near_pairs == paper.warmup == 0
    assert paper.link_features == ""


def test_settings_are_immutable_and_can_be_replaced() -> None:
    config = PairVHEConfig()
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.homophily = 0.5  # type: ignore[misc]
    changed = config.replace(homophily=0.5, steps=3)
    assert (changed.homophily, changed.steps) == (0.5, 3)
    assert config == PairVHEConfig() != changed
    assert hash(config) == hash(PairVHEConfig())


WRONG: list[tuple[type[Settings], str, Any]] = [
    *((VHEConfig, name, value) for name, value in [
        ("latent_dim", 0), ("latent_dim", 3.0), ("latent_dim", True), ("max_words", 0),
        ("min_count", 0), ("word_init", "glove"), ("word_init", None), ("link_strength", -1.0),
        ("link_strength", math.inf), ("link_strength", math.nan), ("link_strength", "1"),
        ("text_knn_weight", -0.5), ("learning_rate", 0.0), ("link_features", "texts"),
        ("link_features", "words,"), ("link_features", "words degree"), ("link_features", None),
        ("link_features", " "), ("link_features", ("words",)),
        ("learning_rate", math.inf), ("step_links", 0), ("max_steps", -1), ("validation", 0.6),
        ("validation", -0.1), ("validate_every", 0), ("patience", 0),
    ]),
    *((PairVHEConfig, name, value) for name, value in [
        ("homophily", 1.0), ("homophily", -0.1), ("homophily", math.nan), ("homophily", "0.9"),
        ("homophily", None), ("pi0", 0.0), ("pi0", 1.0), ("kernel_width", 4), ("kernel_width", 0),
        ("kernel_width", -1), ("word_dim", 0), ("word_dim", 3.0), ("word_dim", True),
        ("max_words", 0), ("steps", -1), ("epochs", -0.5), ("epochs", math.inf),
        ("precision", 0.0), ("precision", math.inf), ("learning_rate", 0.0),
        ("structure_rate", -1.0), ("alpha", 1.1), ("alpha", -0.1), ("validation", 0.6),
        ("negatives", 0), ("near_pairs", -1), ("warmup", -1), ("decay", 1), ("contexts", 0),
        ("link_weight", -1.0), ("structure", "graph"), ("structure", None),
        ("decoder", "poisson"), ("target", 3), ("residual", 1), ("residual", "true"),
        ("fixed_target", None), ("link_features", "scales"), ("link_features", 1),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("cls", "name", "value"), WRONG)
def test_a_wrong_value_is_refused_with_what_is_expected(cls: Any, name: str, value: Any) -> None:
    expected = FIELDS[cls, name].metadata["expected"]
    for make in (cls, cls().replace, lambda **settings: cls.from_dict(settings)):
        with pytest.raises(VHEError) as error:
            make(**{name: value})
        assert str(error.value) == f"{name} is {value!r}, but must be {expected}"


@pytest.mark.parametrize(
    ("cls", "name", "value"),
    [
        (VHEConfig, "link_strength", 0.0),
        (VHEConfig, "text_knn_weight", 0.0),
        (VHEConfig, "link_features", ""),
        (VHEConfig, "link_features", "structure"),
        (VHEConfig, "link_features", "degree, words"),
        (PairVHEConfig, "link_features", "words,degree,structure"),
        (VHEConfig, "max_steps", 0),
        (VHEConfig, "validation", 0.5),
        (VHEConfig, "validation", 0.0),
        (PairVHEConfig, "homophily", 0.0),
        (PairVHEConfig, "pi0", 0.5),
        (PairVHEConfig, "kernel_width", 1),
        (PairVHEConfig, "steps", 0),
        (PairVHEConfig, "epochs", 0.0),
        (PairVHEConfig, "alpha", 0.0),
        (PairVHEConfig, "alpha", 1.0),
        (PairVHEConfig, "near_pairs", 0),
        (PairVHEConfig, "warmup", 0),
        (PairVHEConfig, "link_weight", 0.0),
        (PairVHEConfig, "word_init", "random"),
    ],
)
def test_the_limits_of_a_range_are_valid(cls: Any, name: str, value: Any) -> None:
    assert getattr(cls(**{name: value}), name) == value


@given(st.floats())
def test_homophily_is_at_least_0_and_less_than_1(value: float) -> None:
    if 0 <= value < 1:
        assert PairVHEConfig(homophily=value).homophily == value
    else:
        with pytest.raises(VHEError):
            PairVHEConfig(homophily=value)


def test_an_integer_is_accepted_for_a_float() -> None:
    config = PairVHEConfig(precision=2, homophily=0)
    assert (config.precision, config.homophily) == (2.0, 0.0)
    assert isinstance(config.precision, float)
    assert isinstance(config.homophily, float)
    assert isinstance(VHEConfig(link_strength=2).link_strength, float)
    with pytest.raises(VHEError, match="precision is True"):
        PairVHEConfig(precision=True)


@pytest.mark.parametrize("name", ["max_words", "kernels", "negatives", "homophily"])
def test_very_large_integers_are_refused(name: str) -> None:
    for value in (2**31, 10**30, 10**5000, -(10**400)):
        with pytest.raises(VHEError, match=f"{name} must be less than 2147483648"):
            PairVHEConfig(**{name: value})


def test_numbers_of_numpy_become_those_of_python() -> None:
    config = VHEConfig(latent_dim=np.int64(8), learning_rate=np.float32(0.5))  # type: ignore[arg-type]
    assert (type(config.latent_dim), type(config.learning_rate)) == (int, float)
    with pytest.raises(VHEError, match="latent_dim is 8"):
        VHEConfig(latent_dim=np.float32(8))  # type: ignore[arg-type]


@pytest.mark.parametrize("config", [VHEConfig(), PairVHEConfig(), PairVHEConfig.paper()])
def test_every_value_has_the_type_of_its_annotation(config: Settings) -> None:
    for name, hint in typing.get_type_hints(type(config)).items():
        value = getattr(config, name)
        if hint in (int, float, bool):
            assert type(value) is hint
        elif typing.get_origin(hint) is typing.Literal:
            assert value in typing.get_args(hint)
        elif hint is str:
            assert type(value) is str
        else:
            assert value is None or type(value) is float


EQUAL = {"word_dim": 100, "latent_dim": 100, "structure_dim": 100}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"latent_dim": 50}, "latent_dim is 50"),
        ({"structure_dim": 50}, "structure_dim is 50"),
        ({"structure": "learned", "structure_dim": 50}, "structure_dim is 50"),
        ({"structure": "none", "latent_dim": 50}, "latent_dim is 50"),
    ],
)
def test_dimensions_that_are_added_must_be_equal(changes: dict[str, Any], message: str) -> None:
    PairVHEConfig(**EQUAL)
    with pytest.raises(VHEError) as error:
        PairVHEConfig(**EQUAL | changes)
    assert message in str(error.value)
    assert "word_dim is 100" in str(error.value)
    assert str(error.value).endswith("but they must be equal with residual=true")


@pytest.mark.parametrize(
    "changes",
    [
        {"residual": False, "word_dim": 9, "structure_dim": 9, "latent_dim": 50},
        {"residual": False, "structure": "learned", "structure_dim": 50, "latent_dim": 7},
        {"structure": "none", "structure_dim": 50},
        {"word_dim": 30, "latent_dim": 30, "structure_dim": 30},
    ],
)
def test_other_dimensions_may_differ(changes: dict[str, Any]) -> None:
    config = PairVHEConfig(**changes)
    assert {name: getattr(config, name) for name in changes} == changes


@pytest.mark.parametrize(
    "config",
    [VHEConfig(), VHEConfig(link_strength=0.25), PairVHEConfig(), PairVHEConfig.paper()],
)
def test_settings_survive_as_a_dictionary_and_as_json(config: Settings) -> None:
    cls = type(config)
    assert cls.from_dict(config.to_dict()) == config
    assert cls.from_dict(json.loads(json.dumps(config.to_dict()))) == config


@pytest.mark.parametrize(
    ("cls", "wrong", "meant"),
    [(VHEConfig, "latent_dimm", "latent_dim"), (PairVHEConfig, "homophilly", "homophily")],
)
def test_an_unknown_name_is_answered_with_the_nearest(cls: Any, wrong: str, meant: str) -> None:
    for make in (
        lambda: cls().replace(**{wrong: 0.5}),
        lambda: cls.from_dict({wrong: 0.5}),
        lambda: cls.parse_setting(wrong, "0.5"),
        lambda: cls.field(wrong),
    ):
        with pytest.raises(VHEError) as error:
            make()
        assert str(error.value) == f"unknown setting {wrong!r}: did you mean {meant}?"
    with pytest.raises(VHEError, match="setting 'q': known settings: max_words, min_count"):
        cls.from_dict({"q": 1})


def test_settings_from_toml(tmp_path: Any) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('homophily = 0.5\nstructure = "none"\nepochs = 3\nresidual = true\n')
    expected = PairVHEConfig(homophily=0.5, structure="none", epochs=3.0, residual=True)
    assert PairVHEConfig.from_toml(file) == expected
    file.write_text("link_strength = 2\nmax_steps = 0\n")
    assert VHEConfig.from_toml(file) == VHEConfig(link_strength=2.0, max_steps=0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"homophily = ", "not valid TOML"),
        (b"\xff\xfe", "not valid TOML"),
        (b"homofily = 0.5", "unknown setting 'homofily'"),
        (b"homophily = 2", "homophily is 2"),
        (b"[homophily]\nx = 1", "homophily is {'x': 1}"),
        (b"steps = " + b"9" * 5000, "not valid TOML"),
        (b"steps = " + b"[" * 100_000, "not valid TOML"),
    ],
)
def test_an_invalid_file_is_refused(tmp_path: Any, content: bytes, message: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_bytes(content)
    with pytest.raises(VHEError, match=message):
        PairVHEConfig.from_toml(file)


def test_a_missing_file_is_named(tmp_path: Any) -> None:
    with pytest.raises(VHEError, match=r"none\.toml: no such configuration file"):
        VHEConfig.from_toml(tmp_path / "none.toml")
    with pytest.raises(VHEError, match="cannot read the configuration"):
        VHEConfig.from_toml(tmp_path)


@pytest.mark.parametrize(
    ("cls", "name", "text", "value"),
    [
        (VHEConfig, "max_steps", "10", 10),
        (VHEConfig, "link_strength", "none", None),
        (VHEConfig, "link_strength", "0.5", 0.5),
        (VHEConfig, "word_init", "random", "random"),
        (VHEConfig, "link_features", "words,degree", "words,degree"),
        (VHEConfig, "link_features", "", ""),
        (PairVHEConfig, "homophily", "0.9", 0.9),
        (PairVHEConfig, "homophily", "1e-3", 0.001),
        (PairVHEConfig, "pi0", "None", None),
        (PairVHEConfig, "pi0", "null", None),
        (PairVHEConfig, "pi0", "0.1", 0.1),
        (PairVHEConfig, "residual", "true", True),
        (PairVHEConfig, "decay", "False", False),
        (PairVHEConfig, "structure", "none", "none"),
        (PairVHEConfig, "decoder", "multinomial", "multinomial"),
    ],
)
def test_settings_from_the_command_line(cls: Any, name: str, text: str, value: Any) -> None:
    found = cls.parse_setting(name, text)
    assert found == value
    assert type(found) is type(value)
    cls(**{name: found})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *[("steps", "ten"), ("homophily", "0,9"), ("residual", "yes"), ("steps", "")],
        *[("steps", "9" * 5000), ("steps", "[" * 100_000)],
    ],
    ids=["ten", "0,9", "yes", "nothing", "5000 digits", "nested"],
)
def test_text_that_is_not_a_value_is_refused(name: str, text: str) -> None:
    expected = FIELDS[PairVHEConfig, name].metadata["expected"]
    with pytest.raises(VHEError) as error:
        PairVHEConfig.parse_setting(name, text)
    assert str(error.value) == f"{name} is {text!r}, but must be {expected}"
