"""`vhe map`: a two-dimensional map of the network as a page, a picture or a table."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from cyclopts.types import NonNegativeInt

from vhe.cli.options import Help, Json, ModelFolder, Threads, using_threads
from vhe.cli.output import diagnostics_to_stderr, print_json, print_status
from vhe.cli.paths import check_writable
from vhe.cli.source import check_is_model
from vhe.errors import VHEError


def map(
    model: ModelFolder,
    /,
    *,
    out: Annotated[Path, Help("output file: .html, .png or .parquet")],
    seed: Annotated[
        NonNegativeInt | None, Help("random seed of the layout (default: of the stored map, or 0)")
    ] = None,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Draw a map of the network.

    Similar vertices are close to each other. The layout is computed once and
    stored in the model folder. The format is inferred from the
    extension. A page (.html) can be searched and zoomed in a browser and makes no
    external requests. A table (.parquet) has columns id, text, label, x, y, degree
    and uncertainty, as embedding-atlas reads it: embedding-atlas FILE.parquet
    --x x --y y --text text
    """
    from vhe.data.readers.tables import checked_extension
    from vhe.runtime.messages import counted
    from vhe.web import FORMATS

    if checked_extension(out, FORMATS) == ".png" and find_spec("matplotlib") is None:
        raise VHEError("matplotlib is not installed: pip install 'vhe[plot]'")
    check_writable(out)
    with diagnostics_to_stderr(json), using_threads(threads):
        check_is_model(model)
        from vhe.web.loading import load, map_coordinates
        from vhe.web.map_files import write_map

        loaded = load(model, seed)
        write_map(out, loaded.model, map_coordinates(model, loaded, seed))
        n = len(loaded.model.network_)
    if json:
        print_json({"out": out, "vertices": n})
    else:
        print_status(f"{out}: {counted(n, 'vertex', 'vertices')}")
