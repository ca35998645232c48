"""Small charts as SVG: drawn for a narrow column, coloured by the page's style sheet, readable without it.

Here is the geometry; `templates/charts.svg` draws it. Colours are classes, `s0` to `s7`, so that light, dark and print
can each have their own. No series is distinguished by colour alone: lines have dashes and points have shapes.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from markupsafe import Markup

from fairpass.report.text import environment

WIDTH = 340

Numbers = Sequence[float | None]
Point = tuple[float, float]


class Look(NamedTuple):
    """A method or group, which looks the same in all charts."""

    name: str
    number: int  # of its colour, dash and shape; negative for none of its own
    strong: bool = False  # stands out


class Estimate(NamedTuple):
    """A number with its interval, and the numbers it is the mean of."""

    look: Look
    value: float | None
    low: float | None
    high: float | None
    each: Numbers


class Series(NamedTuple):
    """Numbers to draw as a line, or a histogram whose `x` are the edges of the bins."""

    look: Look
    x: Numbers
    y: Numbers


class Spot(NamedTuple):
    """One point of a scatter chart, with its name beside it if it is `labelled`."""

    look: Look
    x: float
    y: float
    labelled: bool = False


class Frame(NamedTuple):
    """The area between two axes."""

    height: int
    x: Point
    y: Point
    left: int = 40
    below: int = 34
    top: int = 10
    right: int = WIDTH - 12

    @property
    def bottom(self) -> int:
        return self.height - self.below

    def at(self, x: float, y: float) -> Point:
        """Return the position of a point, in the units of the picture."""
        across, up = (x - self.x[0]) / (self.x[1] - self.x[0]), (y - self.y[0]) / (self.y[1] - self.y[0])
        right, down = self.left + across * (self.right - self.left), self.bottom - up * (self.bottom - self.top)
        return round(right, 1), round(down, 1)

    def path(self, points: Iterable[Point]) -> str:
        return " ".join(f"{x:g},{y:g}" for x, y in (self.at(*point) for point in points))


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return about this many round numbers between two others."""
    step = 10 ** math.floor(math.log10((high - low) / about))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (factor * step) <= about)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 10) for i in range(first, last + 1)]


def span(values: Iterable[float | None], *, at_least: float, from_zero: bool = False) -> Point:
    """Return a range that contains all numbers with some room, and is never narrower than `at_least`."""
    known = [value for value in values if value is not None] or [0.0]
    low, high = (0.0, max(0.0, *known)) if from_zero else (min(known), max(known))
    # The last is for equal numbers that are so large that adding little to them changes nothing.
    room = max((at_least - (high - low)) / 2, 0.05 * (high - low), 1e-6 * max(abs(low), abs(high)))
    # A little to the left of zero, so that a mark at zero is not on the axis.
    return (-0.02 * (high + room), max(high + room, at_least)) if from_zero else (low - room, high + room)


def key(look: Look, *, line: bool = False) -> Markup:
    """Return an entry of a legend: a line's dash or a point's shape, and its name."""
    return _draw("key", look, line)


def estimates(rows: Sequence[Estimate], title: str, *, from_zero: bool) -> Markup:
    """Draw a row for each estimate: a point, its interval, and small points for the numbers it is the mean of."""
    numbers = [number for row in rows for number in (row.value, row.low, row.high, *row.each)]
    x_range = span(numbers, at_least=4.0, from_zero=from_zero)
    frame = Frame(32 + 24 * len(rows), x_range, (len(rows) - 0.5, -0.5), left=96, below=22)
    return _draw("estimates", frame, rows, title, ticks(*frame.x))


def lines(series: Sequence[Series], title: str, x_label: str, *, from_zero: bool = False) -> Markup:
    xs, ys = [x for one in series for x in one.x], [y for one in series for y in one.y]
    frame = Frame(210, span(xs, at_least=1, from_zero=True), span(ys, at_least=1e-3, from_zero=from_zero))
    # What is drawn last is on top.
    ordered = sorted(series, key=lambda one: one.look.strong)
    paths = [(one.look, frame.path(stretch)) for one in ordered for stretch in _stretches(one)]
    names = ", ".join(one.look.name for one in series)
    return _draw("lines", frame, paths, f"{title} by {x_label}: {names}", ticks(*frame.x), ticks(*frame.y), x_label)


def histogram(series: Sequence[Series], x_label: str, threshold: float | None) -> Markup:
    frame = Frame(180, (0, 1), span([y for one in series for y in one.y], at_least=5, from_zero=True))
    paths = []
    for one in series:
        edges, heights = [x or 0.0 for x in one.x], [0.0, *(y or 0.0 for y in one.y), 0.0]
        paths.append((one.look, frame.path((x, y) for i, x in enumerate(edges) for y in heights[i : i + 2])))
    title = "Scores of " + ", ".join(one.look.name for one in series)
    axes = (ticks(*frame.x), ticks(*frame.y), x_label, "% of the group")
    return _draw("lines", frame, paths, title, *axes, threshold)


def scatter(
    spots: Sequence[Spot], x_label: str, y_label: str, *, from_zero: bool = True, front: Sequence[Point] = ()
) -> Markup:
    """Draw points, some with their names, and a front as stairs through some of them."""
    x_range = span([spot.x for spot in spots], at_least=4, from_zero=from_zero)
    frame = Frame(230, x_range, span([spot.y for spot in spots], at_least=4))
    corners = [(x, before) for (_, before), (x, _) in pairwise(sorted(front))]
    ordered = sorted(spots, key=lambda spot: spot.look.strong)
    heights, stairs = _name_heights(frame, ordered), frame.path(sorted([*front, *corners]))
    return _draw("scatter", frame, ordered, heights, stairs, ticks(*frame.x), ticks(*frame.y), x_label, y_label)


def _draw(macro: str, *values: object) -> Markup:
    return Markup(getattr(environment().get_template("charts.svg").module, macro)(*values))


def _stretches(series: Series) -> list[list[Point]]:
    points = [(x, y) if x is not None and y is not None else None for x, y in zip(series.x, series.y, strict=True)]
    return [[point for point in group if point] for known, group in groupby(points, key=bool) if known]


def _name_heights(frame: Frame, spots: Sequence[Spot]) -> list[float]:
    """Return for each spot a height for its name at which no other name is near."""
    heights: list[float] = []
    taken: list[Point] = []
    for spot in spots:
        x, y = frame.at(spot.x, spot.y)
        shifts = (y + 4 + shift for shift in (0, 12, -12, 24, -24, 36))
        free = (h for h in shifts if all(abs(h - other) >= 11 or abs(x - place) > 90 for place, other in taken))
        heights.append(next(free, y + 4))
        taken += [(x, heights[-1])] if spot.labelled else []
    return heights
