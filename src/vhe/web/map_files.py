"""The map of a network as a file: an interactive page, a picture, or a table."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vhe.data.readers.tables import write_table
from vhe.predict.candidates import likely_links
from vhe.runtime.files import atomic_write
from vhe.runtime.messages import counted
from vhe.web.map_data import COLOURS, grouped_labels, label_ranks, region_names
from vhe.web.pages import page_file
from vhe.web.report import write_report

if TYPE_CHECKING:
    from vhe.data.network import TextNetwork
    from vhe.fitted import FittedModel

SUGGESTIONS_PER_VERTEX = 5
PICTURE_INCHES, PICTURE_DPI = (12.8, 9.0), 200


def write_map(path: Path, model: FittedModel, coordinates: np.ndarray) -> None:
    """Write the map of a model in the format of the extension of ``path``."""
    writers = {".html": _write_page, ".png": _write_picture, ".parquet": _write_table}
    writers[path.suffix.lower()](path, model, coordinates)


def network_size(network: TextNetwork) -> str:
    """The numbers of vertices and links."""
    vertices = counted(len(network), "vertex", "vertices")
    return f"{vertices}, {counted(len(network.links), 'link')}"


def _write_page(path: Path, model: FittedModel, coordinates: np.ndarray) -> None:
    network = model.network_
    pairs, _ = likely_links(model, SUGGESTIONS_PER_VERTEX)
    write_report(
        path,
        network,
        coordinates,
        title=network.name,
        lede=f"{network_size(network)}. Vertices with similar texts and links are close together.",
        texts=network.texts,
        labels=grouped_labels(network.labels),
        suggestions=pairs,
        probabilities=model.probability_indices(pairs[:, 0], pairs[:, 1], balanced=False),
        corpus=model._corpus,
    )


def _write_table(path: Path, model: FittedModel, coordinates: np.ndarray) -> None:
    """One row per vertex, with the columns that embedding-atlas expects."""
    network = model.network_
    labels = network.labels or [None] * len(network)
    write_table(
        path,
        {
            "id": [_encodable(vertex_id) for vertex_id in network.ids],
            "text": [_encodable(text) for text in network.texts],
            "label": [None if label is None else _encodable(label) for label in labels],
            "x": coordinates[:, 0].tolist(),
            "y": coordinates[:, 1].tolist(),
            "degree": network.degrees.tolist(),
            "uncertainty": model.embedding_std_.mean(axis=1).tolist(),
        },
    )


def _encodable(value: object) -> str:
    """A value as a string that UTF-8 can encode; lone surrogates become question marks."""
    return str(value).encode("utf-8", "replace").decode()


def _write_picture(path: Path, model: FittedModel, coordinates: np.ndarray) -> None:
    from matplotlib import patheffects
    from matplotlib.figure import Figure

    network = model.network_
    names, ranks = label_ranks(grouped_labels(network.labels), len(network))
    # map.css defines each colour for light and then for dark; reversed, the light one wins.
    css = dict(reversed(re.findall(r"--(c\d+|rest): (#\w{6})", page_file("map.css"))))
    palette = [css[f"c{k}"] for k in range(COLOURS)] + [css["rest"]]
    colour = np.where((ranks < 0) | (ranks >= COLOURS), COLOURS, ranks)
    order = np.random.default_rng(0).permutation(len(network))  # no label always covers another
    figure = Figure(figsize=PICTURE_INCHES, layout="constrained")
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
    for name, x, y, _ in region_names(coordinates, names, ranks, model._corpus):
        axes.annotate(
            name.replace(" · ", "\n"),
            (x, y),
            ha="center",
            va="center",
            fontsize=9,
            fontweight="bold",
            color="#1d2126",
            path_effects=[patheffects.withStroke(linewidth=3, foreground="white")],
            parse_math=False,
        )
    shown = [*names[:COLOURS], *(["others"] if len(names) > COLOURS else [])]
    for name, shade in zip(shown, palette, strict=False):
        axes.scatter([], [], s=24, color=shade, label=name.replace("$", r"\$"))
    if shown:
        figure.legend(loc="outside lower center", ncols=7, frameon=False, fontsize=9)
    title = f"{network.name}: {network_size(network)}"
    axes.set_title(title, loc="left", fontsize=12, parse_math=False)
    with atomic_write(path) as temporary:
        figure.savefig(temporary, dpi=PICTURE_DPI, format="png", facecolor="white")
