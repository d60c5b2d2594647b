"""`vhe suggest`: likely missing links."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.types import PositiveInt

from vhe.cli.output import diagnostics_to_stderr, print_json, print_table
from vhe.cli.paths import check_writable
from vhe.cli.source import ids_by_name, read_model
from vhe.errors import VHEError

TABLES = (".csv", ".tsv", ".jsonl", ".parquet")


def suggest(
    model: Path,
    id: str | None = None,
    /,
    *,
    k: Annotated[PositiveInt, Parameter(name=["-k", "--k"])] = 10,
    all: bool = False,
    out: Path | None = None,
    json: bool = False,
) -> None:
    """Suggest missing links of one or every vertex.

    Probabilities are at the density of the network: of all unlinked pairs with
    predicted probability 0.3, three in ten should be links. The probabilities
    of vhe score assume balanced classes and are therefore higher.

    Parameters
    ----------
    model
        model folder written by vhe fit
    id
        id of the vertex
    k
        number of links per vertex
    all
        suggest links for every vertex; requires --out
    out
        with --all: output file, .csv, .tsv, .jsonl or .parquet
    json
        print one JSON document
    """
    if all == (id is not None):
        raise VHEError("give one vertex or --all: vhe suggest MODEL ID, or MODEL --all --out FILE")
    if all != (out is not None):
        raise VHEError("--all and --out FILE require each other: give both or neither")
    if out is not None:
        from vhe.data.readers.tables import checked_extension, write_table

        checked_extension(out, TABLES)
        check_writable(out)
        with diagnostics_to_stderr(json):
            fitted = read_model(model)
            table = fitted.suggest_all(k)
            write_table(out, {str(name): table[name].tolist() for name in table})
        if json:
            print_json({"file": out, "links": len(table), "vertices": len(fitted.network_)})
        else:
            print_table([("links", f"{len(table):,}"), ("file", out)])
        return
    with diagnostics_to_stderr(json):
        fitted = read_model(model)
        vertex = ids_by_name(fitted.network_).get(str(id), id)
        links = fitted.suggest_links(vertex, k)
    if json:
        keys = ("id", "probability", "text")
        suggestions = [{key: getattr(link, key) for key in keys} for link in links]
        print_json({"id": vertex, "links": suggestions})
    elif links:
        rows = [(link.id, f"{link.probability:.3f}", link.text) for link in links]
        print_table(rows, ("id", "probability", "text"), right_aligned=(1,))
    else:
        print_table([("links", "none: the vertex is linked to all others")])
