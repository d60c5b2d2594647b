"""HTML fragments: tables, curves, definition lists. All text is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

import numpy as np


class Html(str):
    """A string that is already markup and is not escaped again."""

    __slots__ = ()


@dataclass(frozen=True)
class Section:
    """A heading and its body; a ``wide`` section takes the full width of the page."""

    title: str
    body: Html
    wide: bool = False


def escaped(value: object) -> Html:
    """``value`` as text in markup; `Html` passes unchanged."""
    return value if isinstance(value, Html) else Html(html.escape(str(value)))


def joined(*fragments: Html) -> Html:
    """Concatenate fragments, one per line."""
    return Html("\n".join(fragments))


def paragraph(text: object) -> Html:
    return Html(f"<p>{escaped(text)}</p>")


def vertex(vertex_id: object, text: str = "") -> Html:
    """The id of a vertex as a link that selects it on the map, with a line of text below."""
    name = str(vertex_id)
    below = f"<small>{escaped(text)}</small>" if text else ""
    address = quote(name, safe="", errors="replace")
    return Html(f'<a class="id" href="#id={address}">{escaped(name)}</a>{below}')


def table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, mark_best: bool = False
) -> Html:
    """A table with numbers aligned to the right.

    Floats are shown with three decimals. With ``mark_best`` the largest number of each numeric
    column is bold.
    """
    body = [list(row) for row in rows]
    numeric = [
        bool(body) and all(isinstance(row[c], int | float | np.number) for row in body)
        for c in range(len(columns))
    ]
    best = [
        max(float(row[c]) for row in body) if mark_best and numeric[c] else None  # type: ignore[arg-type]
        for c in range(len(columns))
    ]

    def cell(value: object, c: int) -> str:
        classes = ["number"] if numeric[c] else []
        if numeric[c] and value == best[c]:
            classes.append("best")
        shown = f"{value:.3f}" if isinstance(value, float | np.floating) else escaped(value)
        attribute = f' class="{" ".join(classes)}"' if classes else ""
        return f"<td{attribute}>{shown}</td>"

    head = "".join(
        f'<th scope="col"{" class=number" if numeric[c] else ""}>{escaped(name)}</th>'
        for c, name in enumerate(columns)
    )
    lines = ("".join(cell(value, c) for c, value in enumerate(row)) for row in body)
    filled = "\n".join(f"<tr>{line}</tr>" for line in lines)
    return Html(
        f'<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{filled}\n</tbody>\n</table></div>"
    )


def facts(pairs: Mapping[str, object]) -> Html:
    """A definition list of names and values."""
    items = "\n".join(f"<dt>{escaped(k)}</dt><dd>{escaped(v)}</dd>" for k, v in pairs.items())
    return Html(f"<dl>\n{items}\n</dl>")


def curve(
    x: Sequence[float],
    y: Sequence[float],
    *,
    x_label: str,
    y_label: str,
    y_range: Sequence[float] = (),
    mark: float | None = None,
) -> Html:
    """A line chart as inline SVG; non-finite points are omitted.

    The y axis covers at least ``y_range``. The point at ``x == mark`` gets a dot.
    """
    points = np.column_stack([np.asarray(x, dtype=float), np.asarray(y, dtype=float)])
    points = points[np.isfinite(points).all(axis=1)]
    if not len(points):
        return paragraph(f"{y_label}: not recorded.")
    width, height, left, right, top, bottom = 560, 164, 52, 16, 26, 30
    x_ticks = _ticks(np.asarray(x, dtype=float))  # of all points: curves of one run share the axis
    y_ticks = _ticks(np.append(points[:, 1], y_range))
    low = np.minimum(points.min(axis=0), [x_ticks[0], y_ticks[0]])
    high = np.maximum(points.max(axis=0), [x_ticks[-1], y_ticks[-1]])
    span = np.where(high > low, high - low, 1.0)

    def position(values: np.ndarray, axis: int) -> np.ndarray:
        share = (values - low[axis]) / span[axis]
        if axis == 0:
            return left + share * (width - left - right)
        return height - bottom - share * (height - top - bottom)

    grid = "".join(
        f'<line class="grid" x1="{left}" x2="{width - right}" y1="{at:.1f}" y2="{at:.1f}"/>'
        f'<text x="{left - 8}" y="{at + 4:.1f}" text-anchor="end">{tick}</text>'
        for tick, at in zip(_tick_labels(y_ticks), position(y_ticks, 1), strict=True)
    )
    below = "".join(
        f'<text x="{at:.1f}" y="{height - bottom + 17}" text-anchor="middle">{tick}</text>'
        for tick, at in zip(_tick_labels(x_ticks), position(x_ticks, 0), strict=True)
    )
    across, up = position(points[:, 0], 0), position(points[:, 1], 1)
    path = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, up, strict=True))
    dots = "".join(
        f'<circle class="mark" cx="{a:.1f}" cy="{b:.1f}" r="3.5"/>'
        for a, b in zip(across, up, strict=True)
        if len(points) == 1 or (mark is not None and a == position(np.array(mark), 0))
    )
    return Html(
        f'<svg class="curve" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escaped(y_label)} by {escaped(x_label)}">'
        f'<text x="0" y="12">{escaped(y_label)}</text>'
        f'<text x="{width - right}" y="12" text-anchor="end">{escaped(x_label)}</text>'
        f'{grid}{below}<polyline class="stroke" points="{path}"/>{dots}</svg>'
    )


def _ticks(values: np.ndarray) -> np.ndarray:
    """About five round numbers that cover ``values``."""
    low, high = float(values.min()), float(values.max())
    if high <= low:
        return np.array([low])
    rough = (high - low) / 4
    power = 10.0 ** np.floor(np.log10(rough))
    step = power * min((1, 2, 2.5, 5, 10), key=lambda m: abs(m * power - rough))
    return np.arange(np.floor(low / step), np.ceil(high / step) + 1) * step


def _tick_labels(ticks: np.ndarray) -> list[str]:
    """Numbers with the fewest decimals that distinguish them, the same for all."""
    step = float(ticks[1] - ticks[0]) if len(ticks) > 1 else abs(float(ticks[0]))
    decimals = next((k for k in range(7) if abs(step - round(step, k)) < 1e-3 * step), 0)
    return [f"{tick:.{decimals}f}" for tick in ticks + 0.0]
