"""`vhe map`: the network on a plane, as a page, a picture or a table."""

from importlib.util import find_spec
from pathlib import Path

from cyclopts.types import NonNegativeInt

from vhe.cli.output import diagnostics_to_stderr, print_json, say
from vhe.cli.place import check_writable
from vhe.cli.source import read_model
from vhe.errors import VHEError


def map(model: Path, /, *, out: Path, seed: NonNegativeInt = 0, json: bool = False) -> None:
    """Draw the network: vertices that are alike stand together.

    A page can be searched and zoomed in any browser and asks for nothing elsewhere.
    A table has the columns id, text, label, x, y, degree and uncertainty, as
    embedding-atlas takes it: embedding-atlas FILE.parquet --x x --y y --text text

    Parameters
    ----------
    model
        a model folder that vhe fit wrote
    out
        the file; its ending is the format: .html, .png or .parquet
    seed
        where chance starts; the same seed gives the same map; 0 when left out
    json
        print one JSON document that says what was written
    """
    from vhe.data.checks import counted
    from vhe.data.readers.tables import checked_extension
    from vhe.web import FORMATS

    if checked_extension(out, FORMATS) == ".png" and find_spec("matplotlib") is None:
        raise VHEError("a picture needs matplotlib: pip install 'vhe[plot]'")
    check_writable(out)
    with diagnostics_to_stderr(json):
        fitted = read_model(model)
        from vhe.web.atlas import place, write_map

        write_map(out, fitted, place(fitted, seed))
    if json:
        print_json({"out": out, "vertices": len(fitted.network_)})
    else:
        say(f"{out}: {counted(len(fitted.network_), 'vertex', 'vertices')}")
