"""The parts that all figures share: one style, legible at the width of a page and for the colour-blind."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.style import context

from fairpass.experiments.paper import method_of
from fairpass.experiments.texts import TEXTS
from fairpass.files import atomic_path, write_text

if TYPE_CHECKING:
    from fairpass.experiments.item import ItemResults
    from fairpass.experiments.tables import Table

WIDTH, DPI = 7.0, 200  # of a page, in inches; dots per inch
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
Key = Mapping[str, Mapping[str, Any]]  # how `Line2D` draws each entry of a legend

# Draws and writes figures in the house style within a block, and leaves matplotlib as it was.
house_style = partial(context, "fairpass.experiments.house")


def panels(rows: int, columns: int, height: float, **options: Any) -> tuple[Figure, list[list[Axes]]]:
    """Return a figure as wide as a page with rows of axes; `height` is that of a row."""
    figure = Figure(figsize=(WIDTH, rows * height + 0.4), layout="constrained")
    return figure, [list(row) for row in figure.subplots(rows, columns, squeeze=False, **options)]


def grid(
    found: "ItemResults",
    columns: Sequence[Column],
    draw: "Callable[[Axes, ItemResults, str, Column], None]",
    titles: Iterable[str] = (),
    key: Key | None = None,
    name: str = "",
    **options: Any,
) -> dict[str, Figure]:
    """Return a figure with a row of axes for each data set, which `draw` fills, and a legend (`key`) above them.

    It is that of the item unless it has its own `name`; the rest of its layout is in `texts.toml`.
    """
    name = name or found.item.name
    layout, datasets = TEXTS["figures"][name], found.datasets(found.item.drawn_from)
    figure, axes = panels(len(datasets), len(columns), layout["height"], **options)
    for row, (title, dataset) in zip(axes, datasets.items(), strict=True):
        for ax, column in zip(row, columns, strict=True):
            draw(ax, found, dataset, column)
        row[0].set_ylabel(layout["row_label"].format(title))
    for ax, title in zip(axes[0], titles, strict=False):
        ax.set_title(title)
    if "xlabel" in layout:
        figure.supxlabel(layout["xlabel"], fontsize=8)
    if key:
        legend(figure, key, layout.get("legend_columns"))
    return {name: figure}


def style(label: str, **changes: Any) -> dict[str, Any]:
    """Return how `Axes.plot` draws a method: its colour, marker and kind of line, and any changes to these."""
    colour, marker, dashes = STYLES.get(method_of(label), (GREY, "o", "-"))
    return {"color": colour, "marker": marker, "linestyle": dashes, **changes}


def legend(figure: Figure, key: Key, columns: int | None = None) -> None:
    handles = [Line2D([], [], label=label, **look) for label, look in key.items()]
    figure.legend(handles=handles, loc="outside upper center", ncols=columns or len(handles), columnspacing=1.2)


def write_all(
    tables: "Iterable[Table]", figures: Mapping[str, Figure], directory: str | os.PathLike[str]
) -> list[Path]:
    """Write tables (.md, .tex, .csv) and figures (.png, .svg) under their names, and return the paths."""
    target, written = Path(directory), []
    for table in tables:
        for kind, text in (("md", table.to_markdown()), ("tex", table.to_latex()), ("csv", table.to_csv())):
            written.append(write_text(target / f"{table.name}.{kind}", text))
    for name, figure in figures.items():
        written += [write_figure(figure, target / f"{name}.{kind}") for kind in ("png", "svg")]
    return written


def write_figure(figure: Figure, path: str | os.PathLike[str]) -> Path:
    """Write a figure as `.png` or `.svg`."""
    kind = Path(path).suffix.removeprefix(".")
    with house_style(), atomic_path(path) as temporary:
        figure.savefig(temporary, format=kind, dpi=DPI, metadata={"Date": None} if kind == "svg" else None)
    return Path(path)
