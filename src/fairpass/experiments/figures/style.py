"""The one style of all figures: legible at the width of a page, and for the colour-blind."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fairpass.experiments.paper import method_of
from fairpass.files import atomic_path

WIDTH = 7.0
"""Of a page, in inches."""
DPI = 200
HEAT = "cividis"
GREY = "#777777"

# Okabe and Ito's colours; the markers differ, too. Yellow is darkened, because it vanishes on white.
COLOURS = {
    "GCN": "#000000",
    "NIFTY": "#E69F00",
    "EDITS": "#56B4E9",
    "FairGNN": "#009E73",
    "FairVGNN": "#B8A800",
    "FMP": "#CC79A7",
    "MMD": "#999999",
    "GMMD": "#0072B2",
    "GMMD-S": "#D55E00",
}
MARKERS = {
    "GCN": "X",
    "NIFTY": "s",
    "EDITS": "v",
    "FairGNN": "P",
    "FairVGNN": "p",
    "FMP": "^",
    "MMD": "d",
    "GMMD": "o",
    "GMMD-S": "D",
}
DASHES: dict[str, Any] = {"GMMD-S": (0, (5, 1.5)), "GCN": (0, (1, 1))}

_STYLE: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e5e5e5",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.3,
    "lines.markersize": 4,
    # With these the same records give the same file.
    "svg.hashsalt": "fairpass",
}


@contextmanager
def house_style() -> Iterator[None]:
    """Draw and write figures in the house style within the block, and leave matplotlib as it was."""
    with rc_context(_STYLE):
        yield


def panels(rows: int, columns: int, *, row_height: float, **options: Any) -> tuple[Figure, list[list[Axes]]]:
    """Return a figure as wide as a page with rows of axes."""
    figure = Figure(figsize=(WIDTH, rows * row_height + 0.4), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **options)
    return figure, [list(row) for row in axes]


def colour(label: str) -> str:
    """Return the colour of a method."""
    return COLOURS.get(method_of(label), GREY)


def marker(label: str) -> str:
    """Return the marker of a method."""
    return MARKERS.get(method_of(label), "o")


def line_style(label: str) -> dict[str, Any]:
    """Return how the line of a method is drawn."""
    return {"color": colour(label), "linestyle": DASHES.get(label, "-")}


def legend(figure: Figure, handles: Sequence[Line2D], columns: int | None = None) -> None:
    """Put one legend for all axes above them."""
    figure.legend(handles=list(handles), loc="outside upper center", ncols=columns or len(handles), columnspacing=1.2)


def write_figure(figure: Figure, path: str | os.PathLike[str]) -> Path:
    """Write a figure; the ending of the name says how: `.png` or `.svg`."""
    kind = Path(path).suffix.removeprefix(".")
    with house_style(), atomic_path(path) as temporary:
        figure.savefig(temporary, format=kind, dpi=DPI, metadata={"Date": None} if kind == "svg" else None)
    return Path(path)
