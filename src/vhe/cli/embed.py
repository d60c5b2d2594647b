"""`vhe embed`: export the embeddings to a file."""

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts.types import PositiveInt

from vhe.cli.distributed import check_parquet, open_sharded, refuse_options
from vhe.cli.distributed import write_embedding as write_sharded_embedding
from vhe.cli.options import Help, Json, ModelFolder, Raw, Threads, using_threads
from vhe.cli.output import diagnostics_to_stderr, print_json, print_status
from vhe.cli.paths import check_writable
from vhe.cli.source import read_model
from vhe.errors import VHEError
from vhe.runtime.messages import spreadsheet_cells


def embed(
    model: ModelFolder,
    /,
    *,
    out: Annotated[Path, Help("output file: .parquet, .csv, .npy or .txt")],
    std: Annotated[bool, Help("write standard deviations, too")] = False,
    contexts: Annotated[
        PositiveInt | Literal["all"] | None,
        Help("pair model: contexts to average over (default: as fitted)", metavar="N|all"),
    ] = None,
    raw: Raw = False,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Write the embedding of every vertex to a file.

    The format is inferred from the extension: .parquet, .csv, .npy or .txt
    (word2vec). In CSV, ids that a spreadsheet would run as formulas get an
    apostrophe in front; --raw writes them unchanged.
    """
    import numpy as np

    from vhe.data.export import write_embedding
    from vhe.data.readers.tables import checked_extension
    from vhe.runtime.messages import counted

    extension = checked_extension(out, (".parquet", ".csv", ".npy", ".txt"))
    if std and extension == ".txt":
        raise VHEError("--std: word2vec's format has no standard deviations: use .parquet or .npy")
    check_writable(out)
    if (sharded := open_sharded(model)) is not None:
        refuse_options(model, contexts=contexts, threads=threads)
        write_sharded_embedding(sharded, check_parquet(model, out), std, json)
        return
    with diagnostics_to_stderr(json), using_threads(threads):
        fitted = read_model(model)
        mean, deviation = fitted.embedding_, fitted.embedding_std_
        if contexts is not None:
            if fitted.result_["model"] == "graph":
                raise VHEError(f"--contexts: {model} is a graph model, which has none: omit it")
            options: Any = {"contexts": contexts}
            mean, deviation = fitted.embed(return_std=True, **options)
        # The graph model has one standard deviation per vertex, the pair model one per dimension.
        deviations = np.broadcast_to(deviation, mean.shape) if std else None
        ids = fitted.network_.ids
        cells = spreadsheet_cells(ids) if extension == ".csv" and not raw else ids
        write_embedding(out, cells, mean, deviations)
    vertices, dimensions = mean.shape
    if json:
        print_json({"out": out, "vertices": vertices, "dimensions": dimensions, "std": std})
    else:
        print_status(f"{out}: {counted(vertices, 'vertex', 'vertices')}, {dimensions} dimensions")
