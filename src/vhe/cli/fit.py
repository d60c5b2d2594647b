"""`vhe fit`: fit a model to a network and save it in a folder."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import secrets
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from cyclopts import Parameter
from cyclopts.types import NonNegativeFloat, NonNegativeInt, PositiveInt

from vhe.cli.help import print_panel
from vhe.cli.output import diagnostics_to_stderr, print_json, print_status, print_table
from vhe.cli.paths import check_model_folder, training_folder
from vhe.cli.source import read_network
from vhe.errors import VHEError

if TYPE_CHECKING:
    from vhe.config import PairVHEConfig, VHEConfig
    from vhe.estimators import Estimator

Model = Literal["graph", "pair"]


def fit(
    source: str | None = None,
    /,
    *,
    out: Path,
    model: Annotated[Model | None, Parameter(metavar="graph|pair")] = None,
    vertices: Path | None = None,
    edges: Path | None = None,
    config: Annotated[str, Parameter(metavar="NAME", show_default=False)] = "default",
    settings: Annotated[
        list[str] | None, Parameter(name="--set", consume_multiple=True, metavar="KEY=VALUE")
    ] = None,
    epochs: NonNegativeFloat | None = None,
    resume: bool = False,
    overwrite: bool = False,
    checkpoint_minutes: NonNegativeFloat = 1,
    threads: PositiveInt | None = None,
    seed: NonNegativeInt | None = None,
    json: bool = False,
) -> int:
    """Fit a model to a network and save it.

    graph, the default model, solves the homophilic prior of the whole network
    exactly and fine-tunes the word vectors. pair is the model of the paper,
    trained on pairs of vertices; torchrun --nproc-per-node=2 -m vhe fit
    --model pair ... trains it with several processes.

    Settings of a model: vhe fit --model graph --help, vhe fit --model pair --help

    Parameters
    ----------
    source
        dataset name (see vhe data), folder in CANE format, or GraphML file
    out
        folder for the model
    model
        model to fit (default: graph)
    vertices
        instead of SOURCE: file with id, text[, label]
    edges
        with --vertices: file with source, target
    config
        default, paper (pair model) or a TOML file
    settings
        settings, such as latent_dim=100 max_words=200
    epochs
        passes over the links (default: as configured)
    resume
        resume the interrupted training in --out
    overwrite
        replace the model in --out
    checkpoint_minutes
        minutes between two checkpoints
    threads
        number of threads (default: all cores)
    seed
        random seed (default: drawn and printed)
    json
        print one JSON document
    """
    chosen = _settings(model, config, settings or ())
    from vhe.runtime import process_group
    from vhe.storage.folder import restore_interrupted_write
    from vhe.storage.locks import folder_lock

    first = process_group.is_first()  # under torchrun only the first process prints and writes
    if process_group.world_size() > 1 and _model_of(chosen) == "graph":
        if not first:
            return 2
        raise VHEError(
            "the graph model trains in one process: run vhe fit without torchrun, "
            "or choose --model pair"
        )
    if process_group.restarted():
        resume = resume or restore_interrupted_write(training_folder(out)).is_dir()
    with contextlib.ExitStack() as stack:
        if first:
            stack.enter_context(folder_lock(out, "lock"))  # one writer per model folder
            check_model_folder(out, resume=resume, overwrite=overwrite)
            stack.enter_context(diagnostics_to_stderr(json))
        else:
            null = stack.enter_context(open(os.devnull, "w"))
            stack.enter_context(contextlib.redirect_stderr(null))
        network = read_network(source, vertices, edges)
        if epochs is not None:
            chosen = _with_epochs(chosen, epochs, len(network.links))
        if first and seed is None and not resume:
            seed = secrets.randbelow(2**31)
            print_status(f"using random seed {seed}; --seed {seed} reproduces this model")
        estimator = _estimator(chosen, threads, seed, verbose=first)
        checkpoint = training_folder(out)
        try:
            estimator.fit(
                network,
                checkpoint=checkpoint,
                checkpoint_minutes=checkpoint_minutes,
                resume=resume,
            )
            if first:
                _save(estimator, out)
        except KeyboardInterrupt:
            if first and checkpoint.is_dir():
                print_status(f"resume from {checkpoint}: run the same command with --resume")
            raise
    if first:
        _report(estimator, out, json)
    return 0


def print_settings_help(tokens: Sequence[str]) -> None:
    """Print the settings of the model that ``--model`` names on a command line."""
    words = [word for token in tokens for word in token.split("=", 1)]
    named = words[words.index("--model") + 1 :] if "--model" in words else []
    if not named or named[0] not in get_args(Model):
        return
    fields = dataclasses.fields(_settings_class(named[0]))
    print()
    print_panel(
        f"Settings of the {named[0]} model",
        ((f.name, f.metadata["help"], _text(f.default)) for f in fields),
    )


def _text(value: object) -> str:
    """Format a default as --set and TOML files spell it."""
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def _settings_class(model: str) -> type[VHEConfig] | type[PairVHEConfig]:
    from vhe.config import PairVHEConfig, VHEConfig

    return PairVHEConfig if model == "pair" else VHEConfig


def _model_of(config: VHEConfig | PairVHEConfig) -> Model:
    return "pair" if isinstance(config, _settings_class("pair")) else "graph"


def _settings(
    model: Model | None, config: str, changes: Sequence[str]
) -> VHEConfig | PairVHEConfig:
    """Return the settings selected by --model, --config and --set."""
    if config == "paper":
        if model == "graph":
            raise VHEError(
                "--config paper: the paper's settings are those of the pair model: "
                "omit --model graph, or choose another --config"
            )
        model = "pair"
    model = model or "graph"
    kind = _settings_class(model)
    chosen: VHEConfig | PairVHEConfig
    if config == "paper":
        from vhe.config import PairVHEConfig

        chosen = PairVHEConfig.paper()
    elif config == "default":
        chosen = kind()
    else:
        chosen = kind.from_toml(config)
    other: Model = "graph" if model == "pair" else "pair"
    own_names, other_names = (
        {f.name for f in dataclasses.fields(_settings_class(name))} for name in (model, other)
    )
    values = {}
    for change in changes:
        key, equals, text = (part.strip() for part in change.partition("="))
        if not equals:
            raise VHEError(f"--set {change}: expected KEY=VALUE")
        if key in other_names - own_names:
            raise VHEError(
                f"--set {change}: a setting of the {other} model: add --model {other}, "
                f"or see vhe fit --model {model} --help"
            )
        values[key] = kind.parse_setting(key, text)
    return chosen.replace(**values)


def _with_epochs(
    config: VHEConfig | PairVHEConfig, epochs: float, links: int
) -> VHEConfig | PairVHEConfig:
    """Return settings that train for a number of passes over the links."""
    from vhe.config import VHEConfig

    if isinstance(config, VHEConfig):
        return config.replace(max_steps=math.ceil(epochs * links / config.step_links))
    return config.replace(epochs=epochs, steps=0)


def _estimator(
    config: VHEConfig | PairVHEConfig, threads: int | None, seed: int | None, verbose: bool
) -> Estimator:
    from vhe.estimators import VHE, PairVHE

    kind = PairVHE if _model_of(config) == "pair" else VHE
    return kind.from_config(config, random_state=seed).set_params(threads=threads, verbose=verbose)


def _save(estimator: Estimator, out: Path) -> None:
    """Save the model and delete the checkpoints; keep them if training was interrupted."""
    from vhe.storage.folder import discard

    estimator.save(out)
    if str(estimator.result_["stopped"]).startswith("interrupted"):
        print_status(f"saved the interrupted model in {out}")
        raise KeyboardInterrupt
    discard(training_folder(out))


def _report(estimator: Estimator, out: Path, json: bool) -> None:
    network, result = estimator.network_, estimator.result_
    if json:
        size = {"vertices": len(network), "links": len(network.links)}
        print_json({"model": out, "network": network.name, **size, **result})
        return
    from vhe.runtime.messages import counted

    vertices = counted(len(network), "vertex", "vertices")
    links = counted(len(network.links), "link")
    print_table(
        [
            ("network", f"{network.name}: {vertices}, {links}"),
            ("training", training_sentence(result)),
            ("seconds", f"{result['seconds']:.1f}"),
            ("model", out),
            ("next", f"vhe embed {shlex.quote(str(out))} --out embedding.parquet"),
        ]
    )


def training_sentence(result: dict[str, object]) -> str:
    """Summarise the training of a fitted model in one line."""
    auc, at = result.get("validation_auc"), f"at step {result['best_step']} of {result['steps']}"
    if not result["steps"]:
        return "none; using the initial word vectors"
    if result["model"] == "graph" and not result["trained"]:
        return "training did not improve validation; using the closed-form solution"
    if not isinstance(auc, float):
        return "no validation links"
    # The best of several validations is optimistic: it selects a step and is no test score.
    best = "best validation AUC" if result["model"] == "graph" else "validation AUC"
    return f"{best} {100 * auc:.1f} % {at}"
