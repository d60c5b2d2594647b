"""`vhe add`: add vertices to a fitted model."""

from pathlib import Path
from typing import Literal

from vhe.cli.output import diagnostics_to_stderr, print_json, print_status, print_table
from vhe.cli.paths import check_model_folder
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
    """Add vertices to a model without retraining.

    New vertices are embedded from their texts and known links, and the result is
    saved as a new model. The embeddings of existing vertices do not change.

    Parameters
    ----------
    model
        model folder written by vhe fit
    vertices
        file with columns id, text[, label]
    edges
        file with columns source, target; one end is new
    out
        folder for the extended model
    method
        pair model: fast or paper (optimise the ELBO) (default: fast)
    overwrite
        replace the model in --out
    json
        print one JSON document
    """
    check_model_folder(out, resume=False, overwrite=overwrite)
    with diagnostics_to_stderr(json):
        import time

        from vhe.data.readers.network_tables import read_new_vertices

        fitted = read_model(model)
        new = read_new_vertices(vertices, edges, fitted.network_)
        for note in new.notes:
            print_status(f"note: {note}")
        started = time.monotonic()
        labels = new.labels if any(v is not None for v in new.labels.values()) else None
        fitted.add_vertices(new.texts, new.edges, labels, method=method)
        seconds = time.monotonic() - started
        fitted.save(out)
    network = fitted.network_
    if json:
        size = {"vertices": len(network), "links": len(network.links)}
        print_json({"model": out, "added": len(new.texts), **size, "seconds": seconds})
        return
    each = f", {1000 * seconds / len(new.texts):.1f} ms per vertex" if new.texts else ""
    print_table(
        [
            ("added", f"{len(new.texts):,} vertices in {seconds:.1f} s{each}"),
            ("network", f"{len(network):,} vertices, {len(network.links):,} links"),
            ("model", out),
        ]
    )
