"""Options that several commands share."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.types import PositiveInt


def Help(text: str, **options: Any) -> Parameter:
    """Return the annotation of an option with this line of --help."""
    return Parameter(help=text, **options)


ModelFolder = Annotated[Path, Help("model folder written by vhe fit")]
Source = Annotated[str | None, Help("dataset name (see vhe data), file, folder or database URL")]
Seeds = Annotated[str, Help("random seeds, such as 0, 0-9 or 0,3")]
Datasets = Annotated[str | None, Help("datasets, such as cora,hepth (default: all)")]
Methods = Annotated[str | None, Help("methods, such as vhe,tfidf (default: all)")]
Ratios = Annotated[str | None, Help("percentages or fractions, such as 15,55 (default: all)")]
Protocols = Annotated[
    Literal["lines", "clean"] | None, Help("lines (as in the paper) or clean (default: both)")
]
Overwrite = Annotated[bool, Help("replace the model in --out")]
Raw = Annotated[bool, Help("CSV: do not prefix cells that a spreadsheet would run as formulas")]
Threads = Annotated[PositiveInt | None, Help("number of threads (default: all cores)")]
Json = Annotated[bool, Help("print one JSON document")]


@contextmanager
def using_threads(count: int | None) -> Iterator[None]:
    """Limit the threads of torch and of the numerical libraries inside a with block."""
    if count is None:
        yield
        return
    from threadpoolctl import threadpool_limits

    from vhe.runtime import device

    with device.using_threads(count), threadpool_limits(count):
        yield
