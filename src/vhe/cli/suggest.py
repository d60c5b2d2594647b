"""`vhe suggest`: links that are not there but likely."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.types import PositiveInt

from vhe.cli.output import diagnostics_to_stderr, print_json, print_table
from vhe.cli.place import check_writable
from vhe.cli.source import ids_by_word, read_model
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
    """Suggest links that a vertex, or every vertex, does not have yet.

    The probability is that of a pair drawn from all pairs of the network, of
    which few are links: of the pairs told 0.3, three in ten should be links.
    That of vhe score counts on as many links as non-links, and is higher.

    Parameters
    ----------
    model
        a model folder that vhe fit wrote
    id
        the vertex
    k
        how many links; 10 when left out
    all
        for every vertex, into --out
    out
        with --all: a .csv, .tsv, .jsonl or .parquet file
    json
        print one JSON document
    """
    if all == (id is not None):
        raise VHEError("name one vertex, or --all: vhe suggest MODEL ID, or MODEL --all --out FILE")
    if all != (out is not None):
        raise VHEError("--all and --out FILE belong together: give both or neither")
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
        vertex = ids_by_word(fitted.network_).get(str(id), id)
        links = fitted.suggest_links(vertex, k)
    if json:
        keys = ("id", "probability", "text")
        told = [{key: getattr(link, key) for key in keys} for link in links]
        print_json({"id": vertex, "links": told})
    elif links:
        rows = [(link.id, f"{link.probability:.3f}", link.text) for link in links]
        print_table(rows, ("id", "probability", "text"), numbers=(1,))
    else:
        print_table([("links", "none: the vertex is linked with all others")])
