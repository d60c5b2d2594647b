"""`vhe data`: the networks that have a name, where each is, and what is in one."""

import os
import shutil
from pathlib import Path

from vhe.cli.output import diagnostics_to_stderr, print_json, print_table
from vhe.cli.source import read_network


def data(name: str | None = None, /, *, json: bool = False) -> None:
    """List the datasets, or fetch one and print its statistics.

    Parameters
    ----------
    name
        a dataset's name, or a folder in CANE's format; all datasets are listed when left out
    json
        print one JSON document
    """
    if name is None:
        _list(json)
        return
    from vhe.data.datasets import statistics

    with diagnostics_to_stderr(json):
        network = read_network(name)
        counts = statistics(network)
    if json:
        print_json({**counts, "notes": network.notes})
    else:
        print_table([(key.replace("_", " "), _figure(value)) for key, value in counts.items()])


def places() -> dict[str, str | None]:
    """For each dataset, where it is at hand; None for one that has to be downloaded."""
    from vhe.data.datasets import DATASETS, cache_folder

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
            whole = (f for f in folders if all((f / file).is_file() for file in dataset.files))
            found[name] = next(map(str, whole), None)
    return found


def _list(json: bool) -> None:
    from vhe.data.datasets import describe

    rows = [(name, describe(name), place) for name, place in places().items()]
    if json:
        keys = ("name", "description", "place")
        print_json({"datasets": [dict(zip(keys, row, strict=True)) for row in rows]})
    else:
        shown = [(name, what, "yes" if place else "no") for name, what, place in rows]
        print_table(shown, ("name", "what it is", "at hand"))


def _figure(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.4g}" if isinstance(value, float) else str(value)
