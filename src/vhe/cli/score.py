"""`vhe score`: the probability of a link between two vertices."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING

from vhe.cli.output import diagnostics_to_stderr, print_json, print_status, print_table
from vhe.cli.source import ids_by_name, read_model
from vhe.errors import VHEError

if TYPE_CHECKING:
    from vhe.data.network import TextNetwork

ENDS = ("source", "target")
COLUMNS = (*ENDS, "probability", "score")


def score(
    model: Path,
    a: str | None = None,
    b: str | None = None,
    /,
    *,
    pairs: Path | None = None,
    json: bool = False,
) -> None:
    """Print the probability of a link between two vertices.

    The probability assumes balanced classes: in a sample with as many links as
    non-links, three in ten pairs with predicted probability 0.3 are links. vhe
    suggest prints the probability at the density of the network. Probabilities
    are calibrated on validation links, or on training links where there are
    none. The score is the cosine of the two embeddings plus, where it helps
    validation, a term for the degrees of both vertices.

    Parameters
    ----------
    model
        model folder written by vhe fit
    a
        id of a vertex
    b
        id of another vertex
    pairs
        instead of A and B: file with columns source and target
    json
        print one JSON document
    """
    given = [word for word in (a, b) if word is not None]
    if pairs is None and len(given) < 2:
        raise VHEError("two vertices are required: vhe score MODEL A B, or --pairs FILE")
    if pairs is not None and given:
        raise VHEError("vertices and --pairs exclude each other: omit one of them")
    with diagnostics_to_stderr(json):
        fitted = read_model(model)
        ids = ids_by_name(fitted.network_)
        if pairs is None:
            wanted = [(ids.get(given[0], given[0]), ids.get(given[1], given[1]))]
        else:
            wanted = _read_pairs(pairs, fitted.network_, ids)
        probabilities = fitted.predict_proba(wanted).tolist() if wanted else []
        scores = fitted.score(wanted).tolist() if wanted else []
    rows = [(*ends, p, s) for ends, p, s in zip(wanted, probabilities, scores, strict=True)]
    if json:
        print_json({"pairs": [dict(zip(COLUMNS, row, strict=True)) for row in rows]})
    else:
        shown = [(source, target, f"{p:.4f}", f"{s:.4f}") for source, target, p, s in rows]
        print_table(shown, COLUMNS, right_aligned=(2, 3))


def _read_pairs(
    path: Path, network: TextNetwork, ids: dict[str, Hashable]
) -> list[tuple[Hashable, Hashable]]:
    """Read pairs of ids from a file; the error for an unknown id names its line."""
    from vhe.data.checks import edge_indices
    from vhe.data.readers.tables import read_table

    table = read_table(path, ENDS, known=ids)
    for note in table.notes:
        print_status(f"note: {note}")
    sources, targets = ([ids.get(str(i), i) for i in table.columns[end]] for end in ENDS)
    edge_indices(network.ids, sources, targets, table.where)
    return list(zip(sources, targets, strict=True))
