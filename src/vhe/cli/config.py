"""`vhe config`: the settings of both models."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from vhe.cli.help import print_panel
from vhe.cli.options import Help, Json
from vhe.cli.output import print_json

if TYPE_CHECKING:
    from vhe.config import PairVHEConfig, VHEConfig

Model = Literal["graph", "pair"]


def config(
    model: Annotated[Model | None, Help("graph or pair (default: both)")] = None,
    /,
    *,
    json: Json = False,
) -> None:
    """List the settings of the models.

    Every setting with its default. vhe fit --set KEY=VALUE changes one, vhe fit
    --config FILE.toml several.
    """
    models = get_args(Model) if model is None else (model,)
    if json:
        print_json(
            {
                name: {
                    f.name: {"default": f.default, "help": f.metadata["help"]}
                    for f in dataclasses.fields(settings_class(name))
                }
                for name in models
            }
        )
        return
    for name in models:
        print_panel(f"Settings of the {name} model", settings(name))


def settings(model: str) -> list[tuple[str, str, str]]:
    """Return name, help text and default of each setting, spelled as in --set and TOML files."""
    return [
        (f.name, f.metadata["help"], _spelled(f.default))
        for f in dataclasses.fields(settings_class(model))
    ]


def settings_class(model: str) -> type[VHEConfig] | type[PairVHEConfig]:
    """Return the class of the settings of a model."""
    from vhe.config import PairVHEConfig, VHEConfig

    return PairVHEConfig if model == "pair" else VHEConfig


def _spelled(default: object) -> str:
    plain = default is None or isinstance(default, bool)
    return (str(default).lower() if plain else str(default)) or "empty"
