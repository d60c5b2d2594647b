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
from typing import TYPE_CHECKING, Annotated, Any, get_args

from cyclopts.types import NonNegativeFloat, NonNegativeInt, PositiveInt

from vhe.cli.config import Model, settings, settings_class
from vhe.cli.encoder import EncoderOptions
from vhe.cli.help import print_panel
from vhe.cli.options import Help, Json, Overwrite, Source, Threads
from vhe.cli.output import (
    diagnostics_to_stderr,
    print_lines,
    print_result,
    print_status,
    program,
)
from vhe.cli.paths import check_free_space, check_model_folder, training_folder
from vhe.cli.source import NetworkOptions, read_network
from vhe.errors import VHEError
from vhe.runtime.messages import counted

if TYPE_CHECKING:
    from vhe.config import PairVHEConfig, VHEConfig
    from vhe.data.network import TextNetwork
    from vhe.estimators import Estimator


def fit(
    source: Source = None,
    /,
    *,
    out: Annotated[Path, Help("folder for the model")],
    model: Annotated[
        Model | None, Help("model to fit (default: graph)", metavar="graph|pair")
    ] = None,
    reading: NetworkOptions | None = None,
    encoding: EncoderOptions | None = None,
    config: Annotated[
        str, Help("default, paper (pair model) or a TOML file", metavar="NAME", show_default=False)
    ] = "default",
    changes: Annotated[
        list[str] | None,
        Help(
            "settings, such as latent_dim=100 max_words=200",
            name="--set",
            consume_multiple=True,
            metavar="KEY=VALUE",
        ),
    ] = None,
    decisions: Annotated[
        Path | None, Help("decisions saved by vhe serve: add accepted links", metavar="FILE")
    ] = None,
    epochs: Annotated[
        NonNegativeFloat | None, Help("passes over the links (default: as configured)")
    ] = None,
    map: Annotated[bool, Help("compute the layout of the map, too, and store it")] = False,
    resume: Annotated[bool, Help("resume the interrupted training in --out")] = False,
    overwrite: Overwrite = False,
    checkpoint_minutes: Annotated[NonNegativeFloat, Help("minutes between two checkpoints")] = 1,
    threads: Threads = None,
    max_memory: Annotated[
        str | None,
        Help("graph model: memory of a process, such as 3GB; less is slower", metavar="SIZE"),
    ] = None,
    scheduler: Annotated[
        str | None,
        Help("fit with Dask: tcp://HOST:8786, or local to start workers here", metavar="ADDRESS"),
    ] = None,
    workers: Annotated[PositiveInt, Help("worker processes of --scheduler local")] = 2,
    seed: Annotated[NonNegativeInt | None, Help("random seed (default: drawn and printed)")] = None,
    json: Json = False,
) -> int:
    """Fit a model to a network and save it.

    graph, the default model, solves the homophilic prior of the whole network
    exactly and fine-tunes the word vectors. pair is the model of the paper,
    trained on pairs of vertices; torchrun --nproc-per-node=2 -m vhe fit
    --model pair ... trains it with several processes.

    --scheduler fits Parquet datasets (--vertices, --edges: folders of part
    files or URLs) that outgrow one machine with the workers of a Dask cluster;
    --resume continues after the last finished phase.

    vhe config lists the settings of both models.
    """
    model, chosen = _settings(model, config, changes or ())
    encoding = encoding or EncoderOptions()
    if option := encoding.first_given:
        if model == "pair":
            raise VHEError(f"{option}: the pair model reads words only; omit it or --model pair")
        if scheduler is not None:
            raise VHEError(f"{option}: a cluster reads words only; omit it or --scheduler")
    if encoding.encoder_weight is not None:
        chosen = chosen.replace(encoder_weight=encoding.encoder_weight)
    if scheduler is not None:
        from vhe.cli.distributed import fit_distributed

        if overwrite or map or any(x is not None for x in (decisions, epochs, threads)):
            raise VHEError(
                "--scheduler excludes --overwrite, --map, --decisions, --epochs and --threads: "
                "omit them"
            )
        return fit_distributed(
            source,
            reading,
            out,
            chosen,
            scheduler=scheduler,
            workers=workers,
            max_memory=max_memory,
            resume=resume,
            seed=seed,
            json=json,
        )
    if max_memory is not None:
        from vhe.runtime.tables import parse_bytes

        parse_bytes(max_memory)
        if model == "pair":
            raise VHEError("--max-memory limits the graph model: omit it, or --model pair")
    from vhe.runtime import process_group
    from vhe.storage.folder import restore_interrupted_write
    from vhe.storage.locks import folder_lock

    first = process_group.is_first()  # under torchrun only the first process prints and writes
    if process_group.world_size() > 1 and model == "graph":
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
        network = read_network(source, options=reading, vectors=encoding.vectors)
        if encoding.encoder_weight is not None and not encoding.encoder and network.vectors is None:
            raise VHEError(
                f"--encoder-weight: {network.name} has no vectors; add --encoder or --vectors"
            )
        if decisions is not None:
            network = _with_accepted(network, decisions)
        if first:
            check_free_space(out, _model_size(network, chosen))
        if epochs is not None:
            chosen = _with_epochs(chosen, epochs, len(network.links))
        if first and seed is None and not resume:
            seed = secrets.randbelow(2**31)
            print_status(f"using random seed {seed}; --seed {seed} reproduces this model")
        from vhe.estimators import VHE, PairVHE

        estimator = (PairVHE if model == "pair" else VHE).from_config(chosen, random_state=seed)
        estimator.set_params(threads=threads, verbose=first)
        if model == "graph":
            estimator.set_params(
                max_memory=max_memory,
                encoder=encoding.encoder,
                encoder_device=encoding.encoder_device,
                encoder_batch=encoding.encoder_batch,
            )
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
                if map:
                    _store_map(out)
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
    print_panel(f"Settings of the {named[0]} model", settings(named[0]))


def _settings(
    model: Model | None, config: str, changes: Sequence[str]
) -> tuple[Model, VHEConfig | PairVHEConfig]:
    """Return the model and its settings selected by --model, --config and --set."""
    from vhe.config import PairVHEConfig

    if config == "paper" and model == "graph":
        raise VHEError(
            "--config paper: the paper's settings are those of the pair model: "
            "omit --model graph, or choose another --config"
        )
    model = model or ("pair" if config == "paper" else "graph")
    kind = settings_class(model)
    chosen: VHEConfig | PairVHEConfig
    if config == "paper":
        chosen = PairVHEConfig.paper()
    else:
        chosen = kind() if config == "default" else kind.from_toml(config)
    other = "graph" if model == "pair" else "pair"
    own_names, other_names = (
        {f.name for f in dataclasses.fields(settings_class(name))} for name in (model, other)
    )
    values = {}
    for change in changes:
        key, equals, text = (part.strip() for part in change.partition("="))
        if not equals:
            raise VHEError(f"--set {change}: expected KEY=VALUE")
        if key in other_names - own_names:
            raise VHEError(
                f"--set {change}: a setting of the {other} model: add --model {other}, "
                f"or see vhe config {model}"
            )
        values[key] = kind.parse_setting(key, text)
    return model, chosen.replace(**values)


def _with_accepted(network: TextNetwork, file: Path) -> TextNetwork:
    """The network with the links that were accepted in `vhe serve`."""
    import numpy as np

    from vhe.storage.decisions import Decisions

    accepted = Decisions(file, create=False).pairs("accepted")
    known = [(a, b) for a, b in accepted if a in network and b in network]
    rows = [(network.index(a), network.index(b)) for a, b in known]
    left_out = len(accepted) - len(known)
    note = f"{counted(len(known), 'accepted link')} of {file.name} added"
    note += f", {counted(left_out, 'link')} of unknown vertices left out" if left_out else ""
    print_status(f"note: {note}")
    weights = network.edge_weights
    return network.with_edges(
        np.concatenate([network.edges, np.array(rows, dtype=np.int64).reshape(-1, 2)]),
        notes=(*network.notes, note),
        edge_weights=None if weights is None else np.append(weights, np.ones(len(rows))),
    )


def _with_epochs(
    config: VHEConfig | PairVHEConfig, epochs: float, links: int
) -> VHEConfig | PairVHEConfig:
    """Return settings that train for a number of passes over the links."""
    from vhe.config import VHEConfig

    if not math.isfinite(epochs):
        raise VHEError(f"--epochs {epochs}: give a finite number")
    if isinstance(config, VHEConfig):
        return config.replace(max_steps=math.ceil(epochs * links / config.step_links))
    return config.replace(epochs=epochs, steps=0)


def _model_size(network: TextNetwork, config: VHEConfig | PairVHEConfig) -> float:
    """Estimate the bytes of a model folder and of the checkpoints beside it."""
    tables = 16.0 * len(network) * config.latent_dim  # up to four tables of float32
    return 2 * (sum(map(len, network.texts)) + tables + 16 * len(network.edges))


def _save(estimator: Estimator, out: Path) -> None:
    """Save the model and delete the checkpoints; keep them if training was interrupted."""
    from vhe.storage.folder import discard

    estimator.save(out)
    if str(estimator.result_["stopped"]).startswith("interrupted"):
        print_status(f"saved the interrupted model in {out}")
        raise KeyboardInterrupt
    discard(training_folder(out))


def _store_map(out: Path) -> None:
    from vhe.web.loading import load, map_coordinates

    map_coordinates(out, load(out))


def _report(estimator: Estimator, out: Path, json: bool) -> None:
    network, result = estimator.network_, estimator.result_
    size = {"vertices": len(network), "links": len(network.links)}
    vertices, links = counted(len(network), "vertex", "vertices"), counted(size["links"], "link")
    print_result(
        json,
        {"model": out, "network": network.name, **size, **result},
        [
            ("network", f"{network.name}: {vertices}, {links}"),
            ("training", training_sentence(result)),
            *_encoder_rows(result),
            ("seconds", f"{result['seconds']:.1f}"),
            ("model", out),
        ],
    )
    if not json:
        folder, vhe = shlex.quote(str(out)), program()
        print_lines(
            "",
            "Next steps",
            f"  {vhe} suggest {folder}                    missing links",
            f"  {vhe} report {folder} --out report.html   map, missing links, accuracy",
            f"  {vhe} serve {folder}                      explore it in a browser",
        )


def _encoder_rows(result: dict[str, Any]) -> list[tuple[str, str]]:
    from vhe.estimators.graph import encoder_sentence

    return [("vectors", encoder_sentence(result["encoder"]))] if "encoder" in result else []


def training_sentence(result: dict[str, object]) -> str:
    """Summarise the training of a fitted model in one line."""
    auc, at = result.get("validation_auc"), f"at step {result['best_step']} of {result['steps']}"
    if not result["steps"]:
        return "none; using the initial word vectors"
    if result["model"] == "graph" and not result["trained"]:
        return "training did not improve validation; using the closed-form solution"
    if not isinstance(auc, float):
        return "too few links for validation: probabilities are rough"
    # The best of several validations is optimistic: it selects a step and is no test score.
    best = "best validation AUC" if result["model"] == "graph" else "validation AUC"
    return f"{best} {100 * auc:.1f} % {at}"
