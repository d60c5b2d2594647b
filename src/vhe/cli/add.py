"""`vhe add`: vertices that were not there at training."""

from pathlib import Path
from typing import Literal

from vhe.cli.output import diagnostics_to_stderr, print_json, print_table, say
from vhe.cli.place import check_model_folder
from vhe.cli.source import read_model


def add(
    model: Path,
    /,
    *,
    vertices: Path,
    edges: Path | None = None,
    out: Path,
    method: Literal["fast", "paper"] | None = None,
    overwrite: bool = False,
    json: bool = False,
) -> None:
    """Add vertices to a model without learning it anew, and save it as another.

    A new vertex is placed by its text and by the links that are known of it,
    if any; nothing else changes.

    Parameters
    ----------
    model
        a model folder that vhe fit wrote
    vertices
        a CSV, TSV, JSONL or Parquet file with columns id, text, perhaps label
    edges
        such a file with columns source and target; one of the two has to be new
    out
        the folder for the model with the new vertices
    method
        fast (one step from the nearest texts and the links) or paper (climbs the bound); paper
        for a model with the paper's settings, fast for others, when left out
    overwrite
        replace the model that is in --out
    json
        print one JSON document, and progress on standard error
    """
    check_model_folder(out, resume=False, overwrite=overwrite)
    with diagnostics_to_stderr(json):
        import time

        from vhe.data.readers.files import read_new_vertices

        fitted = read_model(model)
        found = read_new_vertices(vertices, edges, fitted.network_)
        for note in found.notes:
            say(f"note: {note}")
        began = time.monotonic()
        labels = found.labels if any(v is not None for v in found.labels.values()) else None
        fitted.add_vertices(found.texts, found.edges, labels, method=method)
        seconds = time.monotonic() - began
        fitted.save(out)
    network = fitted.network_
    if json:
        size = {"vertices": len(network), "links": len(network.links)}
        print_json({"model": out, "added": len(found.texts), **size, "seconds": seconds})
        return
    each = f", {1000 * seconds / len(found.texts):.1f} ms each" if found.texts else ""
    print_table(
        [
            ("added", f"{len(found.texts):,} vertices in {seconds:.1f} s{each}"),
            ("network", f"{len(network):,} vertices, {len(network.links):,} links"),
            ("model", out),
        ]
    )
