"""The parts that all figures share: one style, legible at the width of a page and for the colour-blind."""

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fairpass.experiments.paper import method_of
from fairpass.files import atomic_path

if TYPE_CHECKING:
    from fairpass.experiments.item import ItemResults

WIDTH = 7.0
"""Of a page, in inches."""
DPI = 200
GREY, BLUE, ORANGE, GREEN = "#777777", "#0072B2", "#E69F00", "#009E73"

# Colour (Okabe and Ito's), marker and dashes of each method. Yellow is darkened, because it vanishes on white.
STYLES: dict[str, tuple[str, str, Any]] = {
    "GCN": ("#000000", "X", (0, (1, 1))),
    "NIFTY": (ORANGE, "s", "-"),
    "EDITS": ("#56B4E9", "v", "-"),
    "FairGNN": (GREEN, "P", "-"),
    "FairVGNN": ("#B8A800", "p", "-"),
    "FMP": ("#CC79A7", "^", "-"),
    "MMD": ("#999999", "d", "-"),
    "GMMD": (BLUE, "o", "-"),
    "GMMD-S": ("#D55E00", "D", (0, (5, 1.5))),
}

Column = TypeVar("Column")


def house_style() -> AbstractContextManager[None]:
    """Draw and write figures in the house style within the block, and leave matplotlib as it was."""
    with resources.as_file(resources.files("fairpass.experiments") / "house.mplstyle") as path:
        return rc_context(fname=path)


def panels(rows: int, columns: int, height: float, **options: Any) -> tuple[Figure, list[list[Axes]]]:
    """Return a figure as wide as a page with rows of axes; `height` is that of a row."""
    figure = Figure(figsize=(WIDTH, rows * height + 0.4), layout="constrained")
    return figure, [list(row) for row in figure.subplots(rows, columns, squeeze=False, **options)]


def grid(
    found: "ItemResults",
    columns: Sequence[Column],
    draw: "Callable[[Axes, ItemResults, str, Column], None]",
    *,
    height: float,
    titles: Iterable[str] = (),
    row_label: str = "",
    **options: Any,
) -> tuple[Figure, list[list[Axes]]]:
    """Return a figure with a row of axes for each data set, which `draw` fills, and the axes.

    `row_label` stands left of each row, with the data set in place of `{}`.
    """
    datasets = found.datasets(found.item.drawn_from)
    figure, axes = panels(len(datasets), len(columns), height, **options)
    for row, (name, dataset) in zip(axes, datasets.items(), strict=True):
        for ax, column in zip(row, columns, strict=True):
            draw(ax, found, dataset, column)
        row[0].set_ylabel(row_label.format(name))
    for ax, title in zip(axes[0], titles, strict=False):
        ax.set_title(title)
    return figure, axes


def style(label: str, **changes: Any) -> dict[str, Any]:
    """Return how `Axes.plot` draws a method: its colour, marker and kind of line, and any changes to these."""
    colour, marker, dashes = STYLES.get(method_of(label), (GREY, "o", "-"))
    return {"color": colour, "marker": marker, "linestyle": dashes, **changes}


def legend(figure: Figure, handles: Sequence[Line2D], columns: int | None = None) -> None:
    """Put one legend for all axes above them."""
    figure.legend(handles=list(handles), loc="outside upper center", ncols=columns or len(handles), columnspacing=1.2)


def write_figure(figure: Figure, path: str | os.PathLike[str]) -> Path:
    """Write a figure as `.png` or `.svg`."""
    kind = Path(path).suffix.removeprefix(".")
    with house_style(), atomic_path(path) as temporary:
        figure.savefig(temporary, format=kind, dpi=DPI, metadata={"Date": None} if kind == "svg" else None)
    return Path(path)
