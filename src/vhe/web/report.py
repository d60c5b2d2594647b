"""The map of a network as one self-contained HTML file."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vhe.runtime.files import atomic_write
from vhe.web.map_data import map_data
from vhe.web.pages import SCRIPTS, page_file, render

if TYPE_CHECKING:
    from vhe.data.network import TextNetwork
    from vhe.data.text import Corpus

MIN_PROBABILITY = 0.1  # of a suggested link that is drawn


def write_report(
    path: Path,
    network: TextNetwork,
    coordinates: np.ndarray,
    *,
    title: str,
    lede: str,
    texts: Sequence[str],
    labels: Sequence[Hashable | None] | None,
    suggestions: np.ndarray,
    probabilities: np.ndarray,
    corpus: Corpus | None = None,
    template: str = "report.html",
    **values: object,
) -> Path:
    """Write a page with a map of a network, and return its path.

    The file is replaced atomically: if writing fails, an existing file is unchanged.

    Parameters
    ----------
    coordinates : (n, 2) array
        Positions of the vertices, for instance from `vhe.predict.layout.layout`.
    title, lede : str
        The heading and the sentence below it.
    texts, labels : sequences of length n
        The twelve most frequent labels get a colour, the others are grey.
    suggestions, probabilities : (k, 2) int array and (k,) array
        Suggested links, drawn as dashed lines if their probability is at least
        `MIN_PROBABILITY`.
    corpus : Corpus, optional
        The texts as tokens: regions are then named by words that distinguish them.
    template, values
        A template that extends ``report.html``, and the values that it shows.
    """
    drawn = probabilities >= MIN_PROBABILITY
    style = page_file("map.css")
    script = "\n".join(page_file(name) for name in (*SCRIPTS, "report.js"))
    page = render(
        template,
        title=title,
        lede=lede,
        style=style,
        style_hash=_csp_hash(style),
        script=script,
        script_hash=_csp_hash(script),
        data=map_data(
            network, coordinates, texts, labels, suggestions[drawn], probabilities[drawn], corpus
        ),
        **values,
    )
    with atomic_write(path) as temporary:
        temporary.write_bytes(page)
    return path


def _csp_hash(inline: str) -> str:
    """The hash by which a Content-Security-Policy allows exactly this inline code."""
    return "sha256-" + base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
