"""`vhe data`: named datasets, where they are stored, and statistics of a network."""

import os
import shutil
from pathlib import Path
from typing import Annotated

from vhe.cli.options import Help, Json
from vhe.cli.output import diagnostics_to_stderr, print_result
from vhe.cli.source import NetworkOptions, read_network


def data(
    source: Annotated[
        str | None,
        Help("dataset name, file, folder or database URL (default: list all datasets)"),
    ] = None,
    /,
    *,
    reading: NetworkOptions | None = None,
    json: Json = False,
) -> None:
    """List the datasets, or print statistics of a network.

    A dataset that is not available locally is downloaded.
    """
    if source is None and reading is None:
        _list(json)
        return
    from vhe.data.datasets import statistics

    with diagnostics_to_stderr(json):
        network = read_network(source, reading)
        counts = statistics(network)
    rows = [(key.replace("_", " "), _format(value)) for key, value in counts.items()]
    print_result(json, {**counts, "notes": network.notes}, rows)


def locations() -> dict[str, str | None]:
    """Return where each dataset is available locally; None for one that must be downloaded."""
    from vhe.data.datasets import DATASETS
    from vhe.runtime.files import cache_folder

    mirror = os.environ.get("VHE_DATA_DIR")
    found: dict[str, str | None] = {}
    for name, dataset in DATASETS.items():
        if name == "seealso":
            found[name] = "the installed packages"
        elif name == "debian":
            found[name] = shutil.which("apt-cache")
        else:
            roots = [Path(mirror) / folder for folder in (name, dataset.upstream)] if mirror else []
            folders = [*roots, cache_folder() / name]
            complete = (f for f in folders if all((f / file).is_file() for file in dataset.files))
            found[name] = next(map(str, complete), None)
    return found


def _list(json: bool) -> None:
    from vhe.data.datasets import describe

    rows = [(name, describe(name), location) for name, location in locations().items()]
    keys = ("name", "description", "location")
    print_result(
        json,
        {"datasets": [dict(zip(keys, row, strict=True)) for row in rows]},
        [(name, text, "yes" if location else "no") for name, text, location in rows],
        header=("name", "description", "available locally"),
    )


def _format(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.4g}" if isinstance(value, float) else str(value)
