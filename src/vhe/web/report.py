"""A report as one self-contained HTML file: a map of the network, then sections."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Hashable, Sequence
from pathlib import Path

import numpy as np

from vhe.errors import VHEError
from vhe.runtime.files import atomic_write
from vhe.web.map_data import map_data
from vhe.web.markup import Html, Section, escaped
from vhe.web.templates import SCRIPTS, document, filled, page_file

MIN_PROBABILITY = 0.1  # of a suggested link that is drawn


def write_report(
    path: str | Path,
    *,
    title: str,
    coordinates: np.ndarray,
    ids: Sequence[Hashable],
    texts: Sequence[str] | None = None,
    labels: Sequence[Hashable | None] | None = None,
    links: np.ndarray | None = None,
    suggestions: np.ndarray | None = None,
    probabilities: np.ndarray | None = None,
    lede: str = "",
    sections: Sequence[Section] = (),
) -> Path:
    """Write a map of a network and sections below it into one HTML file.

    The file is replaced atomically: if writing fails, an existing file is unchanged.

    Parameters
    ----------
    path : str or Path
        Missing parent folders are created.
    title, lede : str
        The heading and the sentence below it.
    coordinates : (n, 2) array
        Positions of the vertices, for instance from `vhe.predict.layout.layout`.
    ids, texts, labels : sequences of length n
        The twelve most frequent labels get a colour, the others are grey.
    links : (m, 2) int array, optional
        Vertex indices; drawn for the selected vertex.
    suggestions, probabilities : (k, 2) int array and (k,) array, optional
        Suggested links, drawn as dashed lines if their probability is at least
        `MIN_PROBABILITY`.
    sections : sequence of `Section`
        Shown below the map, two per row unless ``wide``.

    Returns
    -------
    Path
        ``path``.
    """
    points = np.asarray(coordinates, dtype=np.float64)
    if points.shape != (len(ids), 2):
        raise VHEError(
            f"a map of {len(ids)} vertices needs coordinates of shape ({len(ids)}, 2), "
            f"not {points.shape}"
        )
    if suggestions is not None and probabilities is not None:
        drawn = np.asarray(probabilities) >= MIN_PROBABILITY
        suggestions, probabilities = suggestions[drawn], probabilities[drawn]
    style = page_file("map.css")
    script = "\n".join(page_file(name) for name in (*SCRIPTS, "report.js"))
    policy = (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src '{_csp_hash(style)}'; script-src '{_csp_hash(script)}'"
    )
    page = document(
        title=title,
        head=Html(
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
            f"<style>{style}</style>"
        ),
        body=filled(
            "report.html",
            title=title,
            lede=lede,
            map=filled("map.html"),
            search=filled("search.html", hint="Search by id"),
            sections=Html("\n".join(_section(section) for section in sections)),
            data=_script_json(
                map_data(points, ids, texts, labels, links, suggestions, probabilities)
            ),
            script=Html(script),
        ),
    )
    path = Path(path)
    with atomic_write(path) as temporary:
        temporary.write_bytes(page)
    return path


def _csp_hash(inline: str) -> str:
    """The hash by which a Content-Security-Policy allows exactly this inline code."""
    return "sha256-" + base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()


def _script_json(data: object) -> Html:
    """JSON for a script element, with ``<`` escaped so that no text can close the element."""
    return Html(json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c"))


def _section(section: Section) -> str:
    attribute = ' class="wide"' if section.wide else ""
    return f"<section{attribute}>\n<h2>{escaped(section.title)}</h2>\n{section.body}\n</section>"
