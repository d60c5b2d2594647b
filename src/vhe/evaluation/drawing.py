"""Figures with reproducible bytes that are readable on light and dark backgrounds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from vhe.errors import VHEError
from vhe.runtime.files import atomic_write

INK, INK_ON_DARK = "#1d2126", "#e6e8ea"
COLOURS = ("#3f7fc1", "#e0792f", "#2f9e77", "#a06cd0", "#d1495b", "#b8962e", "#5fb0c9", "#8b929a")
FORMATS = {  # metadata to omit: dates and program versions change the bytes
    ".svg": {"Date": None, "Creator": None},
    ".png": {"Software": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
STYLE: Any = {
    "font.size": 9,
    "svg.fonttype": "none",  # text as text, not as paths
    "svg.hashsalt": "vhe",
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 10,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#8b929a",
    "grid.alpha": 0.3,
    "grid.linewidth": 0.5,
    "xtick.color": INK,
    "ytick.color": INK,
    "lines.linewidth": 1.4,
    "legend.frameon": False,
    "legend.fontsize": 8,
}


def check_picture(path: Path) -> None:
    """Raise `VHEError` if a figure of this format cannot be drawn."""
    if path.suffix.lower() not in FORMATS:
        raise VHEError(f"{path}: unknown picture format: use .png, .svg or .pdf")
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise VHEError("matplotlib is not installed: pip install 'vhe[plot]'") from None


@contextmanager
def drawing(
    path: Path, size: tuple[float, float], panels: int = 1, columns: int = 1
) -> Iterator[list[Any]]:
    """Yield the axes of each panel, row by row; then add a legend and write the figure.

    Parameters
    ----------
    size : width and height in inches.
    """
    check_picture(path)
    import matplotlib
    from cycler import cycler
    from matplotlib.figure import Figure

    kind = path.suffix.lower()
    with matplotlib.rc_context(STYLE | {"axes.prop_cycle": cycler(color=COLOURS)}):
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(-(-panels // columns), columns, squeeze=False).ravel()
        for empty in axes[panels:]:
            empty.remove()
        yield list(axes[:panels])
        entries = (zip(*each.get_legend_handles_labels(), strict=True) for each in axes)
        named = {label: handle for pairs in entries for handle, label in pairs}
        if named:
            widest = max(map(len, named))
            figure.legend(
                named.values(),
                named,
                loc="outside lower center",
                ncols=max(int(size[0] * 11 / (widest + 5)), 1),
            )
        with atomic_write(path) as temporary:
            figure.savefig(
                temporary,
                format=kind[1:],
                dpi=160,
                metadata=FORMATS[kind],
                transparent=kind == ".svg",
            )
            if kind == ".svg":
                temporary.write_text(_adaptive_ink(temporary.read_text("utf-8")), "utf-8")


def _adaptive_ink(svg: str) -> str:
    """Return the picture with an ink colour that follows the reader's colour scheme."""
    style = (
        f"<style>svg {{ color: {INK} }} "
        f"@media (prefers-color-scheme: dark) {{ svg {{ color: {INK_ON_DARK} }} }}</style>"
    )
    return svg.replace(INK, "currentColor").replace("<defs>", f"{style}\n <defs>", 1)
