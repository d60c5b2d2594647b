"""A report as one HTML file: a map of the network, then sections. It asks for nothing elsewhere."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from collections.abc import Hashable, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template

import numpy as np

from vhe.errors import VHEError
from vhe.web.figures import Html, Section, escaped

_SIDE = 30_000  # coordinates are whole numbers up to this: finer than any screen, short as text
COLOURS = 12  # labels that have their own colour in map.css
SCRIPTS = ("theme.js", "grid.js", "raster.js", "map.js", "parts.js", "panel.js")


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
    """Write a map of a network, and what is to be said about it, into one HTML file.

    Parameters
    ----------
    path : where to write; folders on the way are made
    title, lede : str
        The heading and the sentence below it.
    coordinates : (n, 2) array
        Where each vertex stands, for instance from `vhe.predict.layout.layout`.
    ids, texts, labels : n of each
        The most frequent twelve labels get a colour, the others are grey.
    links : (m, 2) int array, optional
        Vertex numbers; drawn for the vertex that is selected.
    suggestions, probabilities : (k, 2) int array and (k,) array, optional
        Links that are not there but likely, drawn as dashed lines.
    sections : sequence of `Section`
        Shown below the map, two in a row unless ``wide``.

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
    style = page_file("map.css")
    script = "\n".join(page_file(name) for name in SCRIPTS)
    data = page_data(points, ids, texts, labels, links, suggestions, probabilities)
    page = Template(page_file("report.html")).substitute(
        title=escaped(title),
        lede=escaped(lede),
        policy=(
            "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
            f"style-src '{_fingerprint(style)}'; script-src '{_fingerprint(script)}'"
        ),
        style=style,
        script=script,
        data=_as_json(data),
        sections="\n".join(_section(section) for section in sections),
    )
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(page.encode("utf-8", "replace"))
    return path


def first_words(text: str, length: int = 150) -> str:
    """The beginning of a text on one line, cut at a space."""
    words = " ".join(text[: 4 * length].split())
    if len(words) <= length:
        return words
    return words[: length + 1].rsplit(" ", 1)[0][:length].rstrip(" ,;:.") + "…"


def page_file(name: str) -> str:
    """A file of the folder ``page``."""
    return files("vhe.web").joinpath("page", name).read_text("utf-8")


def _fingerprint(inline: str) -> str:
    """The name by which a Content-Security-Policy allows this piece of the page and no other."""
    return "sha256-" + base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()


def _as_json(data: object) -> Html:
    """JSON that cannot end the script element it stands in, whatever the texts say."""
    return Html(json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c"))


def _section(section: Section) -> str:
    attribute = ' class="wide"' if section.wide else ""
    return f"<section{attribute}>\n<h2>{escaped(section.title)}</h2>\n{section.body}\n</section>"


def page_data(
    points: np.ndarray,
    ids: Sequence[Hashable],
    texts: Sequence[str] | None,
    labels: Sequence[Hashable | None] | None,
    links: np.ndarray | None,
    suggestions: np.ndarray | None = None,
    probabilities: np.ndarray | None = None,
) -> dict[str, object]:
    """What the scripts of a page read: every vertex with its place, and the pairs as flat lists."""
    n = len(ids)
    length = 150 if n <= 10_000 else 70
    names, numbers = label_ranks(labels, n)
    low = points.min(axis=0) if n else np.zeros(2)
    extent = float((points - low).max()) if n else 0.0
    places = (points - low) * (_SIDE / extent if extent > 0 else 1.0)
    places[:, 1] = places[:, 1].max(initial=0.0) - places[:, 1]  # a screen counts downwards
    chance = np.zeros(0) if probabilities is None else np.asarray(probabilities, dtype=float)
    return {
        "ids": [str(vertex) for vertex in ids],
        "x": places[:, 0].round().astype(int).tolist(),
        "y": places[:, 1].round().astype(int).tolist(),
        "labels": names,
        "label": numbers.tolist(),
        "regions": [
            {"name": name, "x": round(x), "y": round(y)}
            for name, x, y in regions(places, names[:COLOURS], numbers)
        ],
        "texts": [first_words(text, length) for text in texts] if texts is not None else [""] * n,
        "links": _flat(links),
        "suggested": _flat(suggestions),
        "probability": [round(float(p), 4) for p in chance],
    }


def _flat(pairs: np.ndarray | None) -> list[int]:
    return [] if pairs is None else np.asarray(pairs, dtype=np.int64).ravel().tolist()


def label_ranks(labels: Sequence[Hashable | None] | None, n: int) -> tuple[list[str], np.ndarray]:
    """Label names, the most frequent first, and each vertex's number among them (-1: none)."""
    shown = ["" if label is None else str(label) for label in (labels or [None] * n)]
    names, inverse, counts = np.unique(shown, return_inverse=True, return_counts=True)
    order = np.lexsort((names, -counts))
    order = order[names[order] != ""]
    rank = np.full(len(names), -1)
    rank[order] = np.arange(len(order))
    return names[order].tolist(), rank[inverse]


def grouped_labels(labels: Sequence[Hashable | None] | None) -> Sequence[Hashable | None] | None:
    """Labels with dots in them, as ``package.module``, grouped when they are too many to colour."""
    names = set(labels or ()) - {None}
    if labels is None or len(names) <= COLOURS:
        return labels
    if sum(bool(re.fullmatch(r"\w+(\.\w+)+", str(name))) for name in names) < len(names) / 2:
        return labels
    groups = iter(subpackages([str(label) for label in labels if label is not None], COLOURS))
    return [None if label is None else next(groups) for label in labels]


def subpackages(labels: Sequence[str], count: int) -> list[str]:
    """Subpackages that the map can colour: ``count`` names at most, where there is such a way.

    Every package has one name; the largest of their subpackages have their own.
    """
    parts = [label.split(".") for label in labels]
    packages = {first for first, *_ in parts}
    second = Counter(".".join(part[:2]) for part in parts if len(part) > 1)
    own = {name for name, _ in second.most_common(max(count - len(packages), 0))}
    return [name if (name := ".".join(part[:2])) in own else part[0] for part in parts]


def regions(
    places: np.ndarray, names: Sequence[str], numbers: np.ndarray
) -> list[tuple[str, float, float]]:
    """Where to write each label: the middle of its vertices around its densest spot."""
    low = places.min(axis=0) if len(places) else np.zeros(2)
    extent = float((places - low).max()) if len(places) else 0.0
    cells = ((places - low) * (20 / (extent or 1.0))).astype(int)
    found = []
    for k, name in enumerate(names):
        mine = np.flatnonzero(numbers == k)
        spots, counts = np.unique(cells[mine], axis=0, return_counts=True)
        near = mine[np.abs(cells[mine] - spots[counts.argmax()]).max(axis=1) <= 1]
        x, y = places[near].mean(axis=0).tolist()
        found.append((name, x, y))
    return found
