"""The data of a map as the scripts of a page read them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from vhe.web.labels import COLOURS, label_positions, label_ranks

SIDE = 30_000  # coordinates are integers up to this: finer than a screen, short in JSON


def map_data(
    coordinates: np.ndarray,
    ids: Sequence[Hashable],
    texts: Sequence[str] | None,
    labels: Sequence[Hashable | None] | None,
    links: np.ndarray | None,
    suggestions: np.ndarray | None = None,
    probabilities: np.ndarray | None = None,
) -> dict[str, object]:
    """Vertices with their positions, and pairs of vertices as flat lists."""
    n = len(ids)
    length = 150 if n <= 10_000 else 70
    names, ranks = label_ranks(labels, n)
    low = coordinates.min(axis=0) if n else np.zeros(2)
    extent = float((coordinates - low).max()) if n else 0.0
    positions = (coordinates - low) * (SIDE / extent if extent > 0 else 1.0)
    positions[:, 1] = positions[:, 1].max(initial=0.0) - positions[:, 1]  # y points downwards
    probability = np.zeros(0) if probabilities is None else np.asarray(probabilities, dtype=float)
    return {
        "ids": [str(vertex_id) for vertex_id in ids],
        "x": positions[:, 0].round().astype(int).tolist(),
        "y": positions[:, 1].round().astype(int).tolist(),
        "labels": names,
        "label": ranks.tolist(),
        "regions": [
            {"name": name, "x": round(x), "y": round(y)}
            for name, x, y in label_positions(positions, names[:COLOURS], ranks)
        ],
        "texts": [first_words(text, length) for text in texts] if texts is not None else [""] * n,
        "links": _flat(links),
        "suggested": _flat(suggestions),
        "probability": [round(float(p), 4) for p in probability],
    }


def first_words(text: str, length: int = 150) -> str:
    """The beginning of a text on one line, cut at a space."""
    words = " ".join(text[: 4 * length].split())
    if len(words) <= length:
        return words
    return words[: length + 1].rsplit(" ", 1)[0][:length].rstrip(" ,;:.") + "…"


def _flat(pairs: np.ndarray | None) -> list[int]:
    return [] if pairs is None else np.asarray(pairs, dtype=np.int64).ravel().tolist()
