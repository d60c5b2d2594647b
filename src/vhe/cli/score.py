"""`vhe score`: the probability of a link between two vertices."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from vhe.cli.options import Help, Json, ModelFolder
from vhe.cli.output import diagnostics_to_stderr, print_result, print_status
from vhe.cli.source import ids_by_name, read_model, vertex_id
from vhe.errors import VHEError

if TYPE_CHECKING:
    from vhe.data.network import TextNetwork

ENDS = ("source", "target")
COLUMNS = (*ENDS, "probability", "balanced_probability", "score")


def score(
    model: ModelFolder,
    a: Annotated[str | None, Help("id of a vertex")] = None,
    b: Annotated[str | None, Help("id of another vertex")] = None,
    /,
    *,
    pairs: Annotated[
        Path | None, Help("instead of A and B: file with columns source and target")
    ] = None,
    json: Json = False,
) -> None:
    """Print the probability of a link between two vertices.

    probability is that in this network: of all unlinked pairs with probability
    0.3, three in ten should be links. balanced_probability is that in a balanced
    sample of linked and unlinked pairs, and higher. Both are calibrated on
    validation links, or on training links where there are none. score is the log
    odds of the balanced probability.
    """
    given = [word for word in (a, b) if word is not None]
    if pairs is None and len(given) < 2:
        raise VHEError("two vertices are required: vhe score MODEL A B, or --pairs FILE")
    if pairs is not None and given:
        raise VHEError("vertices and --pairs exclude each other: omit one of them")
    with diagnostics_to_stderr(json):
        fitted = read_model(model)
        network = fitted.network_
        if pairs is None:
            wanted = [(vertex_id(network, given[0]), vertex_id(network, given[1]))]
        else:
            wanted = _read_pairs(pairs, network, ids_by_name(network))
        scores = fitted.score(wanted)
        values = [fitted.probability(scores, balanced=b).tolist() for b in (False, True)]
    rows = [(*ends, *row) for ends, *row in zip(wanted, *values, scores.tolist(), strict=True)]
    print_result(
        json,
        {"pairs": [dict(zip(COLUMNS, row, strict=True)) for row in rows]},
        [(*ends, f"{p:.4f}", f"{b:.4f}", f"{s:.3f}") for *ends, p, b, s in rows],
        header=[name.replace("_", " ") for name in COLUMNS],
        right_aligned=(2, 3, 4),
    )


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
