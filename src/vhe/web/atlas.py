"""The map of a network as a file: a page to explore, a picture, or a table."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vhe.data.checks import counted
from vhe.data.readers.tables import write_table
from vhe.predict.layout import layout
from vhe.predict.neighbours import partners
from vhe.runtime.files import atomic_write
from vhe.runtime.progress import Progress
from vhe.web.report import COLOURS, grouped_labels, label_ranks, page_file, regions, write_report

if TYPE_CHECKING:
    from vhe.estimators import VHE

PARTNERS = 5  # suggestions of each vertex that are looked for
LEAST = 0.1  # probability of a link that is suggested
INCHES, DOTS = (12.8, 9.0), 200  # of a picture, and dots an inch


def place(model: VHE, seed: int = 0) -> np.ndarray:
    """Where each vertex stands: (n, 2); tells how far it is."""
    with Progress("map", 1) as progress:

        def tell(done: int, total: int) -> None:
            progress.expect(total)
            progress.update(done)

        return layout(model.embedding_, seed, tell)


def write_map(path: Path, model: VHE, coordinates: np.ndarray) -> None:
    """Write the map of a model; the ending of ``path`` is its format."""
    writers = {".html": _write_page, ".png": _write_picture, ".parquet": _write_table}
    writers[path.suffix.lower()](path, model, coordinates)


def _write_page(path: Path, model: VHE, coordinates: np.ndarray) -> None:
    network = model.network_
    n, links = len(network), len(network.links)
    partner, score = partners(model.embedding_, network.links, PARTNERS, model.degree_bias_)
    source, place = np.nonzero(partner >= 0)
    pairs = np.sort(np.column_stack([source, partner[source, place]]), axis=1)
    pairs, first = np.unique(pairs, axis=0, return_index=True)
    chance = model.probability(score[source, place][first], balanced=False)
    likely = chance >= LEAST
    write_report(
        path,
        title=network.name,
        lede=f"{counted(n, 'vertex', 'vertices')}, {counted(links, 'link')}. Those whose texts and "
        "links are alike stand together.",
        coordinates=coordinates,
        ids=network.ids,
        texts=network.texts,
        labels=grouped_labels(network.labels),
        links=network.links,
        suggestions=pairs[likely],
        probabilities=chance[likely],
    )


def _write_table(path: Path, model: VHE, coordinates: np.ndarray) -> None:
    """A row a vertex, with the columns that embedding-atlas and others look for."""
    network = model.network_
    labels = network.labels or [None] * len(network)
    write_table(
        path,
        {
            "id": [_written(i) for i in network.ids],
            "text": [_written(text) for text in network.texts],
            "label": [None if label is None else _written(label) for label in labels],
            "x": coordinates[:, 0].tolist(),
            "y": coordinates[:, 1].tolist(),
            "degree": network.degrees.tolist(),
            "uncertainty": model.embedding_std_.mean(axis=1).tolist(),
        },
    )


def _written(value: object) -> str:
    """As a string that UTF-8 can say; half a letter becomes a question mark."""
    return str(value).encode("utf-8", "replace").decode()


def _write_picture(path: Path, model: VHE, coordinates: np.ndarray) -> None:
    from matplotlib import patheffects
    from matplotlib.figure import Figure

    network = model.network_
    names, rank = label_ranks(grouped_labels(network.labels), len(network))
    css = dict(reversed(re.findall(r"--(c\d+|rest): (#\w{6})", page_file("map.css"))))
    palette = [css[f"c{k}"] for k in range(COLOURS)] + [css["rest"]]  # the first ones, the light
    colour = np.where((rank < 0) | (rank >= COLOURS), COLOURS, rank)
    order = np.random.default_rng(0).permutation(len(network))  # no label always covers another
    figure = Figure(figsize=INCHES, layout="constrained")
    axes = figure.subplots()
    axes.set_axis_off()
    axes.set_aspect("equal", adjustable="datalim")
    axes.scatter(
        coordinates[order, 0],
        coordinates[order, 1],
        s=np.clip(40_000 / max(len(network), 1), 1.5, 40),
        c=np.array(palette)[colour[order]],
        linewidths=0,
        rasterized=True,
    )
    for name, x, y in regions(coordinates, names[:COLOURS], rank):
        axes.annotate(
            name,
            (x, y),
            ha="center",
            va="center",
            fontsize=10,
            fontweight="bold",
            color="#1d2126",
            path_effects=[patheffects.withStroke(linewidth=3, foreground="white")],
            parse_math=False,
        )
    size = f"{counted(len(network), 'vertex', 'vertices')}, {counted(len(network.links), 'link')}"
    axes.set_title(f"{network.name}: {size}", loc="left", fontsize=12, parse_math=False)
    with atomic_write(path) as temporary:
        figure.savefig(temporary, dpi=DOTS, format="png", facecolor="white")
