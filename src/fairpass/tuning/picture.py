"""A picture of what a search found: utility against unfairness, and the front between them."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairpass.files import atomic_path
from fairpass.tuning.front import Point
from fairpass.tuning.result import Tuned

# Okabe and Ito's colours, which the colour-blind can tell apart; the shapes differ, too.
_GREY, _BLUE, _ORANGE, _GREEN = "#999999", "#0072B2", "#D55E00", "#009E73"


def draw_front(tuned: Tuned, path: str | os.PathLike[str], *, title: str = "") -> Path:
    """Write the picture to a file; its name's ending says in which format, such as .png or .svg."""
    # The salt, and no date, so that the same result is the same file.
    with rc_context({"font.size": 9, "svg.hashsalt": "fairpass"}):
        figure = Figure(figsize=(6.4, 4.2), layout="constrained")
        axes = figure.add_subplot()
        _draw(axes, tuned)
        axes.set_title(title)
        kind = Path(path).suffix.removeprefix(".")
        with atomic_path(path) as temporary:
            figure.savefig(temporary, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)
    return Path(path)


def _draw(axes: Axes, tuned: Tuned) -> None:
    others = [point for point in tuned.points if point not in tuned.front]
    _scatter(axes, [p for p in others if not p.near_constant], "configuration", color=_GREY, marker="o", s=18)
    _scatter(axes, [p for p in others if p.near_constant], "near constant", color=_GREY, marker="x", s=22)
    # From a point to the next fairer one nothing better was found, so these are steps and no slopes.
    axes.plot(*_percents(tuned.front), color=_BLUE, drawstyle="steps-pre", linewidth=1)
    _scatter(axes, tuned.front, "front on validation", color=_BLUE, marker="o", s=28)
    tested = [Point(p.method, {}, {}, p.test) for p in tuned.front if p.test is not None]
    _scatter(axes, tested, "the same on the test nodes", color=_GREEN, marker="^", s=26)
    _scatter(axes, [tuned.best], "best by the sum", color=_ORANGE, marker="*", s=190, edgecolor="white")
    axes.set_xlabel("unfairness: mean of ΔDP and ΔEO, in percentage points")
    axes.set_ylabel("utility: mean of AUC, F1 and ACC, in %")
    axes.set_xlim(left=0)
    axes.grid(color="#e5e5e5", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.figure.legend(frameon=False, loc="outside lower center", ncols=3)


def _scatter(axes: Axes, points: Sequence[Point], label: str, **style: Any) -> None:
    if points:
        axes.scatter(*_percents(points), label=label, zorder=3, **style)


def _percents(points: Sequence[Point]) -> tuple[list[float], list[float]]:
    """Return unfairness and utility of points, in percent."""
    return [100 * point.unfairness for point in points], [100 * point.utility for point in points]
