"""Reliability diagrams of predicted probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from vhe.evaluation.drawing import drawing
from vhe.predict.calibration import ReliabilityCurve


def reliability_plot(curves: Mapping[str, ReliabilityCurve], path: str | Path) -> Path:
    """Draw observed frequencies against predicted probabilities.

    Parameters
    ----------
    curves : by the name that the legend shows.
    path : a picture such as ``reliability.png`` or ``.svg``; requires the extra ``plot``.
    """
    with drawing(Path(path), size=(4.6, 4.6)) as (axes,):
        axes.plot([0, 1], [0, 1], color="0.6", linewidth=1, linestyle=":")
        for name, curve in curves.items():
            label = f"{name} (calibration error {100 * curve.error:.1f} %)"
            axes.plot(curve.probability, curve.frequency, marker="o", markersize=4, label=label)
        axes.set(xlabel="predicted probability", ylabel="observed frequency")
        axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    return Path(path)
