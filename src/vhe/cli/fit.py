"""`vhe fit`: learn a network, and save the model in a folder."""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from cyclopts.types import NonNegativeFloat, NonNegativeInt, PositiveInt

from vhe.cli.output import diagnostics_to_stderr, print_json, print_table, say
from vhe.cli.place import check_model_folder, training_folder
from vhe.cli.source import read_network
from vhe.errors import VHEError

if TYPE_CHECKING:
    from vhe.config import VHEConfig
    from vhe.data.network import TextNetwork
    from vhe.estimators import VHE


def fit(
    source: str | None = None,
    /,
    *,
    out: Path,
    vertices: Path | None = None,
    edges: Path | None = None,
    config: str = "default",
    settings: Annotated[
        list[str] | None, Parameter(name="--set", consume_multiple=True, metavar="KEY=VALUE")
    ] = None,
    epochs: NonNegativeFloat | None = None,
    resume: bool = False,
    overwrite: bool = False,
    threads: PositiveInt | None = None,
    seed: NonNegativeInt | None = None,
    json: bool = False,
) -> None:
    """Learn an embedding of a network and save the model.

    torchrun --nproc-per-node=2 -m vhe fit ... learns it with several processes.

    Parameters
    ----------
    source
        a dataset's name (see vhe data), a folder with data.txt and graph.txt, or a GraphML file
    out
        the folder for the model
    vertices
        instead of SOURCE: a CSV, TSV, JSONL or Parquet file with columns id, text, perhaps label
    edges
        beside --vertices: such a file with columns source and target
    config
        default, paper (the paper to the letter), or a TOML file of settings
    settings
        a setting, or several: --set homophily=0.9 steps=100
    epochs
        passes over the links, instead of what the settings say
    resume
        go on with the training that was interrupted in --out
    overwrite
        replace the model that is in --out
    threads
        cores to use; all when left out
    seed
        where chance starts: the same seed gives the same model; drawn and stored when left out
    json
        print one JSON document, and progress on standard error
    """
    from vhe.runtime.ranks import first, restarted
    from vhe.storage.folder import folder_lock, restore_interrupted_write

    if restarted():
        resume = resume or restore_interrupted_write(training_folder(out)).is_dir()
    chosen = _settings(config, settings or (), epochs)
    if not first():  # under torchrun one process speaks and writes, the others only work
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):
            network = read_network(source, vertices, edges)
            _model(chosen, threads, seed or 0, verbose=False).fit(
                network, checkpoint=training_folder(out), resume=resume
            )
        return
    with folder_lock(out, "lock"):  # two that write one model would undo each other's work
        check_model_folder(out, resume=resume, overwrite=overwrite)
        with diagnostics_to_stderr(json):
            network = read_network(source, vertices, edges)
            model = _fitted(network, out, chosen, resume, threads, seed)
    _report(model, out, json)


def _model(config: VHEConfig, threads: int | None, seed: int | None, verbose: bool) -> VHE:
    from vhe.estimators import VHE

    model = VHE.from_config(config, random_state=seed)
    return model.set_params(threads=threads, verbose=verbose)


def _fitted(
    network: TextNetwork,
    out: Path,
    config: VHEConfig,
    resume: bool,
    threads: int | None,
    seed: int | None,
) -> VHE:
    """The model, learned and saved."""
    if seed is None and not resume:
        seed = secrets.randbelow(2**31)
        say(f"seed {seed} was drawn; --seed {seed} gives the same model again")
    from vhe.storage.folder import discard

    model = _model(config, threads, seed, verbose=True)
    training = training_folder(out)
    try:
        model.fit(network, checkpoint=training, resume=resume)
        model.save(out)
        if str(model.result_["stopped"]).startswith("interrupted"):
            say(f"what was learned until then is in {out}")
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        if training.is_dir():
            say(f"the same command with --resume goes on from {training}")
        raise
    discard(training)
    return model


def _report(model: VHE, out: Path, json: bool) -> None:
    network, result = model.network_, model.result_
    if json:
        size = {"vertices": len(network), "links": len(network.links)}
        print_json({"model": out, "network": network.name, **size, **result})
        return
    from vhe.data.checks import counted

    vertices = counted(len(network), "vertex", "vertices")
    links = counted(len(network.links), "link")
    auc, steps = result.get("validation_auc"), f"{result['best_step']} of {result['steps']}"
    # The best of many looks flatters: it says which step was kept, not how good a test would be.
    judged = (
        "no links to validate on"
        if auc is None
        else f"{100 * auc:.1f} %, the best, at step {steps}"
    )
    print_table(
        [
            ("network", f"{network.name}: {vertices}, {links}"),
            ("validation AUC", judged),
            ("seconds", f"{result['seconds']:.1f}"),
            ("model", out),
            ("next", f"vhe embed {shlex.quote(str(out))} --out embedding.parquet"),
        ]
    )


def _settings(config: str, changes: Sequence[str], epochs: float | None) -> VHEConfig:
    """The settings that --config, --set and --epochs ask for."""
    from vhe.config import VHEConfig

    if config == "paper":
        chosen = VHEConfig.paper()
    elif config == "default":
        chosen = VHEConfig()
    else:
        chosen = VHEConfig.from_toml(config)
    if epochs is not None:
        chosen = chosen.replace(epochs=epochs, steps=0)
    values = {}
    for change in changes:
        key, equals, text = change.partition("=")
        if not equals:
            raise VHEError(f"--set {change}: a setting is written KEY=VALUE")
        values[key.strip()] = VHEConfig.parse_setting(key.strip(), text.strip())
    return chosen.replace(**values)
