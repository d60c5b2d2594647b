"""HTML templates and static files of the folder ``page``."""

from __future__ import annotations

from importlib.resources import files
from string import Template

from vhe.web.markup import Html, escaped

SCRIPTS = ("theme.js", "raster.js", "map.js", "network.js", "controls.js", "page.js")


def script_elements(*names: str) -> Html:
    return Html("\n".join(f'<script src="page/{name}"></script>' for name in names))


SERVED_HEAD = Html(
    '<link rel="stylesheet" href="page/map.css">\n'
    '<link rel="stylesheet" href="page/explorer.css">\n' + script_elements(SCRIPTS[0])
)


def page_file(name: str) -> str:
    """The content of a file of the folder ``page``."""
    return files("vhe.web").joinpath("page", name).read_text("utf-8")


def filled(name: str, **values: object) -> Html:
    """A template with ``$name`` replaced by each value; all but `Html` is escaped."""
    escaped_values = {key: escaped(value) for key, value in values.items()}
    return Html(Template(page_file(name)).substitute(escaped_values))


def document(*, title: str, body: Html, head: Html = SERVED_HEAD, layout: str = "") -> bytes:
    """A complete page in UTF-8; ``layout`` is the class of its body.

    Lone surrogates, which UTF-8 cannot encode, become question marks.
    """
    page = filled("document.html", title=title, head=head, layout=layout, body=body)
    return page.encode("utf-8", "replace")
