"""Templates and static files of the folder ``page``; templates escape all values."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment

# In loading order; later scripts use the definitions of earlier ones.
SCRIPTS = (
    "theme.js",
    "raster.js",
    "edges.js",
    "view.js",
    "gestures.js",
    "map.js",
    "network.js",
    "elements.js",
    "legend.js",
    "search.js",
    "address.js",
    "group.js",
    "page.js",
)
EXPLORER_SCRIPTS = (  # of the explorer only
    "server.js",
    "decisions.js",
    "comparison.js",
    "review.js",
    "precision.js",
    "newtext.js",
    "colouring.js",
    "explorer.js",
)
STYLES = ("map.css", "explorer.css")


@cache
def _templates() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # the first page needs it

    found = Environment(
        loader=PackageLoader("vhe.web", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    found.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}
    return found


def page_file(name: str) -> str:
    """The content of a file of the folder ``page``."""
    return files("vhe.web").joinpath("page", name).read_text("utf-8")


def render(template: str, **values: object) -> bytes:
    """A page in UTF-8; lone surrogates, which UTF-8 cannot encode, become question marks."""
    return _templates().get_template(template).render(values).encode("utf-8", "replace")
