"""`vhe embed`: the embedding of every vertex in a file that other programs read."""

from pathlib import Path
from typing import Literal

from cyclopts.types import PositiveInt

from vhe.cli.output import diagnostics_to_stderr, print_json, say
from vhe.cli.place import check_writable
from vhe.cli.source import read_model
from vhe.errors import VHEError


def embed(
    model: Path,
    /,
    *,
    out: Path,
    std: bool = False,
    contexts: PositiveInt | Literal["all"] | None = None,
    json: bool = False,
) -> None:
    """Write the embedding of every vertex to a file.

    Parameters
    ----------
    model
        a model folder that vhe fit wrote
    out
        the file; its ending is the format: .parquet, .csv, .npy or .txt (word2vec's)
    std
        write the standard deviation of every number too
    contexts
        other vertices that each one is averaged over; the model's own number when left out
    json
        print one JSON document that says what was written
    """
    from vhe.data.checks import counted
    from vhe.data.readers.files import write_embedding
    from vhe.data.readers.tables import checked_extension

    extension = checked_extension(out, (".parquet", ".csv", ".npy", ".txt"))
    if std and extension == ".txt":
        raise VHEError("--std has no place in word2vec's format: take .parquet, .csv or .npy")
    check_writable(out)
    with diagnostics_to_stderr(json):
        fitted = read_model(model)
        if std:
            mean, deviation = fitted.embed(return_std=True, contexts=contexts)
        else:
            mean, deviation = fitted.embed(contexts=contexts), None
        write_embedding(out, fitted.network_.ids, mean, deviation)
    vertices, dimensions = mean.shape
    if json:
        print_json({"out": out, "vertices": vertices, "dimensions": dimensions, "std": std})
    else:
        say(f"{out}: {counted(vertices, 'vertex', 'vertices')}, {dimensions} numbers each")
