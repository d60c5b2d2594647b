"""`vhe add`: add vertices to a fitted model."""

from pathlib import Path
from typing import Annotated, Literal

from vhe.cli.distributed import add_to_sharded, open_sharded, refuse_options
from vhe.cli.encoder import Vectors
from vhe.cli.options import Help, Json, ModelFolder, Overwrite, Threads, using_threads
from vhe.cli.output import diagnostics_to_stderr, print_result, print_status
from vhe.cli.paths import check_model_folder
from vhe.cli.source import read_model
from vhe.runtime.messages import counted


def add(
    model: ModelFolder,
    /,
    *,
    vertices: Annotated[Path, Help("file with columns id, text[, vector, label]")],
    edges: Annotated[Path | None, Help("file with columns source, target; one end is new")] = None,
    out: Annotated[Path, Help("folder for the extended model")],
    method: Annotated[
        Literal["fast", "paper"] | None,
        Help("pair model: fast or paper (optimise the ELBO) (default: fast)"),
    ] = None,
    vectors: Vectors = None,
    encoder: Annotated[
        str | None, Help("encoder of the fit, if it was moved", metavar="NAME|FOLDER")
    ] = None,
    overwrite: Overwrite = False,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Add vertices to a model without retraining.

    New vertices are embedded from their texts and known links, and the result is
    saved as a new model. The embeddings of existing vertices do not change.
    """
    if (sharded := open_sharded(model)) is not None:
        refuse_options(
            model,
            method=method,
            vectors=vectors,
            encoder=encoder,
            overwrite=overwrite,
            threads=threads,
        )
        add_to_sharded(sharded, vertices, edges, out, json)
        return
    check_model_folder(out, resume=False, overwrite=overwrite)
    with diagnostics_to_stderr(json), using_threads(threads):
        import time

        from vhe.data.readers.network_tables import read_new_vertices
        from vhe.data.readers.records import Rules
        from vhe.data.vector_files import read_vectors
        from vhe.fitted import FittedGraph

        fitted = read_model(model)
        rules = Rules(text_optional=vectors is not None)
        new = read_new_vertices(vertices, edges, fitted.network_, rules)
        for note in new.notes:
            print_status(f"note: {note}")
        started = time.monotonic()
        labels = new.labels if any(v is not None for v in new.labels.values()) else None
        if encoder is not None and isinstance(fitted, FittedGraph):
            fitted.encoder = encoder
        given = new.vectors if vectors is None else read_vectors(vectors)
        if vectors is None and given is not None and not fitted.takes_vectors:
            print_status("note: the vectors are not used, because the model was fitted without")
            given = None
        fitted.add_vertices(new.texts, new.edges, labels, method=method, vectors=given)
        seconds = time.monotonic() - started
        fitted.save(out)
    network = fitted.network_
    size = {"vertices": len(network), "links": len(network.links)}
    each = f", {1000 * seconds / len(new.texts):.1f} ms per vertex" if new.texts else ""
    added, vertices_now = (counted(n, "vertex", "vertices") for n in (len(new.texts), len(network)))
    print_result(
        json,
        {"model": out, "added": len(new.texts), **size, "seconds": seconds},
        [
            ("added", f"{added} in {seconds:.1f} s{each}"),
            ("network", f"{vertices_now}, {counted(len(network.links), 'link')}"),
            ("model", out),
        ],
    )
