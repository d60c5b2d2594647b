"""The settings: their defaults, their checks, and every way they come in."""

import dataclasses
import json
import math
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vhe.config import VHEConfig
from vhe.errors import VHEError

FIELDS = {f.name: f for f in dataclasses.fields(VHEConfig)}


@pytest.mark.parametrize("field", FIELDS.values(), ids=FIELDS)
def test_every_setting_says_what_it_is_and_allows_its_default(field):
    assert field.metadata["help"]
    assert field.metadata["wanted"]
    assert field.metadata["check"](field.default)
    assert getattr(VHEConfig(), field.name) == field.default


def test_the_paper_is_the_paper():
    paper = VHEConfig.paper()
    assert (paper.homophily, paper.alpha, paper.learning_rate) == (0.99, 0.2, 1e-4)
    assert (paper.kernels, paper.kernel_width) == (200, 5)
    assert (paper.word_dim, paper.structure_dim, paper.latent_dim) == (100, 100, 200)
    assert (paper.structure, paper.link_posterior, paper.decoder) == ("learned", "mlp", "gaussian")
    assert (paper.target, paper.fixed_target, paper.precision) == ("max", False, 1)
    assert not paper.residual
    assert not paper.shared_posterior
    assert paper.pi0 is None  # the density of the network
    assert paper.link_weight == 0


def test_settings_cannot_be_changed_but_replaced():
    config = VHEConfig()
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.homophily = 0.5
    changed = config.replace(homophily=0.5, steps=3)
    assert (changed.homophily, changed.steps) == (0.5, 3)
    assert config == VHEConfig() != changed
    assert hash(config) == hash(VHEConfig())


WRONG = [
    ("homophily", 1.0),
    ("homophily", -0.1),
    ("homophily", math.nan),
    ("homophily", "0.9"),
    ("homophily", None),
    ("pi0", 0.0),
    ("pi0", 1.0),
    ("kernel_width", 4),
    ("kernel_width", 0),
    ("kernel_width", -1),
    ("word_dim", 0),
    ("word_dim", 3.0),
    ("word_dim", True),
    ("max_words", 0),
    ("steps", -1),
    ("epochs", -0.5),
    ("epochs", math.inf),
    ("precision", 0.0),
    ("precision", math.inf),
    ("learning_rate", 0.0),
    ("alpha", 1.1),
    ("alpha", -0.1),
    ("validation", 0.6),
    ("negatives", 0),
    ("link_weight", -1.0),
    ("structure", "graph"),
    ("structure", None),
    ("decoder", "poisson"),
    ("target", 3),
    ("residual", 1),
    ("residual", "true"),
    ("fixed_target", None),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_a_wrong_value_is_named_with_what_is_right(name, value):
    wanted = FIELDS[name].metadata["wanted"]
    for make in (VHEConfig, VHEConfig().replace, lambda **kw: VHEConfig.from_dict(kw)):
        with pytest.raises(VHEError) as error:
            make(**{name: value})
        assert str(error.value) == f"{name} is {value!r}, but it has to be {wanted}"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("homophily", 0.0),
        ("pi0", 0.5),
        ("kernel_width", 1),
        ("steps", 0),
        ("epochs", 0.0),
        ("alpha", 0.0),
        ("alpha", 1.0),
        ("validation", 0.5),
        ("link_weight", 0.0),
        ("word_init", "random"),
    ],
)
def test_the_ends_of_a_range_are_allowed(name, value):
    assert getattr(VHEConfig(**{name: value}), name) == value


@given(st.floats())
def test_homophily_is_a_number_from_zero_up_to_one(value):
    if 0 <= value < 1:
        assert VHEConfig(homophily=value).homophily == value
    else:
        with pytest.raises(VHEError):
            VHEConfig(homophily=value)


def test_a_whole_number_stands_for_a_real_one():
    config = VHEConfig(precision=2, homophily=0)
    assert (config.precision, config.homophily) == (2.0, 0.0)
    assert isinstance(config.precision, float)
    assert isinstance(config.homophily, float)
    with pytest.raises(VHEError, match="precision is True"):
        VHEConfig(precision=True)


def test_every_value_has_the_type_of_its_annotation():
    hints = typing.get_type_hints(VHEConfig)
    for config in (VHEConfig(), VHEConfig.paper()):
        for name, hint in hints.items():
            value = getattr(config, name)
            if hint in (int, float, bool):
                assert type(value) is hint
            elif typing.get_origin(hint) is typing.Literal:
                assert value in typing.get_args(hint)


@pytest.mark.parametrize(
    ("changes", "unequal"),
    [
        ({"latent_dim": 50}, "latent_dim is 50"),
        ({"structure_dim": 50}, "structure_dim is 50"),
        ({"structure": "learned", "structure_dim": 50}, "structure_dim is 50"),
        ({"residual": False, "structure_dim": 50}, "structure_dim is 50"),
        ({"structure": "none", "latent_dim": 50}, "latent_dim is 50"),
    ],
)
def test_sizes_that_are_added_have_to_be_equal(changes, unequal):
    equal = {"word_dim": 100, "latent_dim": 100, "structure_dim": 100}
    VHEConfig(**equal)
    with pytest.raises(VHEError) as error:
        VHEConfig(**equal | changes)
    assert unequal in str(error.value)
    assert "word_dim is 100" in str(error.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"residual": False, "word_dim": 9, "structure_dim": 9, "latent_dim": 50},
        {"residual": False, "structure": "learned", "structure_dim": 50, "latent_dim": 7},
        {"structure": "none", "structure_dim": 50},
        {"word_dim": 30, "latent_dim": 30, "structure_dim": 30},
    ],
)
def test_sizes_that_are_not_added_are_free(changes):
    config = VHEConfig(**changes)
    assert {name: getattr(config, name) for name in changes} == changes


def test_settings_survive_as_a_dictionary_and_as_json():
    for config in (VHEConfig(), VHEConfig.paper(), VHEConfig(pi0=0.25)):
        assert VHEConfig.from_dict(config.to_dict()) == config
        assert VHEConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_an_unknown_name_is_met_with_the_nearest():
    for make in (
        lambda: VHEConfig().replace(homophilly=0.5),
        lambda: VHEConfig.from_dict({"homophilly": 0.5}),
        lambda: VHEConfig.parse_setting("homophilly", "0.5"),
    ):
        with pytest.raises(VHEError) as error:
            make()
        assert str(error.value) == (
            "there is no setting named 'homophilly': did you mean homophily?"
        )
    with pytest.raises(VHEError, match="no setting named 'q': known are max_words, min_count"):
        VHEConfig.from_dict({"q": 1})


def test_settings_from_toml(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('homophily = 0.5\nstructure = "none"\nepochs = 3\nresidual = true\n')
    config = VHEConfig.from_toml(file)
    assert config == VHEConfig(homophily=0.5, structure="none", epochs=3.0, residual=True)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"homophily = ", "this is not TOML"),
        (b"\xff\xfe", "this is not TOML"),
        (b"homofily = 0.5", "no setting named 'homofily'"),
        (b"homophily = 2", "homophily is 2"),
        (b"[homophily]\nx = 1", "homophily is {'x': 1}"),
    ],
)
def test_a_bad_file_is_told_in_a_sentence(tmp_path, content, complaint):
    file = tmp_path / "mine.toml"
    file.write_bytes(content)
    with pytest.raises(VHEError, match=complaint):
        VHEConfig.from_toml(file)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(VHEError, match=r"none\.toml: there is no such configuration file"):
        VHEConfig.from_toml(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("steps", "10", 10),
        ("homophily", "0.9", 0.9),
        ("homophily", "1e-3", 0.001),
        ("pi0", "none", None),
        ("pi0", "None", None),
        ("pi0", "null", None),
        ("pi0", "0.1", 0.1),
        ("residual", "true", True),
        ("residual", "False", False),
        ("structure", "none", "none"),
        ("decoder", "multinomial", "multinomial"),
    ],
)
def test_settings_from_the_command_line(name, text, value):
    found = VHEConfig.parse_setting(name, text)
    assert found == value
    assert type(found) is type(value)
    VHEConfig(**{name: found})


@pytest.mark.parametrize(
    ("name", "text"), [("steps", "ten"), ("homophily", "0,9"), ("residual", "yes"), ("steps", "")]
)
def test_text_that_is_no_value_is_refused(name, text):
    wanted = FIELDS[name].metadata["wanted"]
    with pytest.raises(VHEError) as error:
        VHEConfig.parse_setting(name, text)
    assert str(error.value) == f"{name} is {text!r}, but it has to be {wanted}"
