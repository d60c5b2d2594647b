"""`vhe score`: how likely a link between two vertices is."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING

from vhe.cli.output import diagnostics_to_stderr, print_json, print_table, say
from vhe.cli.source import ids_by_word, read_model
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
    """Tell how likely a link between two vertices is.

    The probability counts on as many links as non-links: of the pairs told 0.3,
    three in ten are links where half of the pairs are. In a network few pairs
    are; vhe suggest tells that probability. It is calibrated on the validation
    links, or on the training links of a model that has none. The score is the
    cosine of the two embeddings and, in networks where a few vertices have most
    links, what the degree_weight of both adds.

    Parameters
    ----------
    model
        a model folder that vhe fit wrote
    a
        the id of a vertex
    b
        the id of another vertex
    pairs
        instead of A and B: a CSV, TSV, JSONL or Parquet file with columns source and target
    json
        print one JSON document
    """
    given = [word for word in (a, b) if word is not None]
    if pairs is None and len(given) < 2:
        raise VHEError("two vertices are needed: vhe score MODEL A B, or --pairs FILE")
    if pairs is not None and given:
        raise VHEError("both vertices and --pairs were given: leave one of them out")
    with diagnostics_to_stderr(json):
        fitted = read_model(model)
        words = ids_by_word(fitted.network_)
        if pairs is None:
            wanted = [(words.get(given[0], given[0]), words.get(given[1], given[1]))]
        else:
            wanted = _read_pairs(pairs, fitted.network_, words)
        probabilities = fitted.predict_proba(wanted).tolist() if wanted else []
        scores = fitted.score(wanted).tolist() if wanted else []
    rows = [(*ends, p, s) for ends, p, s in zip(wanted, probabilities, scores, strict=True)]
    if json:
        print_json({"pairs": [dict(zip(COLUMNS, row, strict=True)) for row in rows]})
    else:
        shown = [(source, target, f"{p:.4f}", f"{s:.4f}") for source, target, p, s in rows]
        print_table(shown, COLUMNS, numbers=(2, 3))


def _read_pairs(
    path: Path, network: TextNetwork, words: dict[str, Hashable]
) -> list[tuple[Hashable, Hashable]]:
    """The pairs of ids in a file; one that is unknown is named with its line."""
    from vhe.data.checks import edge_indices
    from vhe.data.readers.tables import read_table

    table = read_table(path, ENDS, known=words)
    for note in table.notes:
        say(f"note: {note}")
    sources, targets = ([words.get(str(i), i) for i in table.columns[end]] for end in ENDS)
    edge_indices(network.ids, sources, targets, lambda row: f"{table.where(row)}: the pair")
    return list(zip(sources, targets, strict=True))
