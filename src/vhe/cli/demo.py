"""`vhe demo`: the whole way on a network that needs no download."""

from pathlib import Path

from cyclopts.types import NonNegativeInt

from vhe.cli.output import diagnostics_to_stderr, print_json
from vhe.cli.place import check_writable


def demo(*, out: Path = Path("demo"), seed: NonNegativeInt = 0, json: bool = False) -> None:
    """Learn the See Also references of the installed packages; needs no download.

    It compares link prediction with TF-IDF's, suggests missing references, and
    writes a report with a map. It takes a few minutes on two cores.

    Parameters
    ----------
    out
        the folder for the model and the report; demo when left out
    seed
        where chance starts; the same seed gives the same result; 0 when left out
    json
        print one JSON document, and everything else on standard error
    """
    check_writable(out / "report.html")
    from vhe.demo import run

    with diagnostics_to_stderr(json):
        result = run(out, seed)
    if json:
        print_json(result)
