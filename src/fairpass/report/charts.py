"""Small charts as SVG text: drawn for a narrow column, coloured by the page's style sheet, readable without it.

Colours are classes, `s0` to `s7`, so that light, dark and print can each have their own; no series is told from
another by colour alone, for lines have dashes and points have shapes.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from markupsafe import Markup, escape

WIDTH = 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 12, 10, 34
_COLOURS = 8
_DASHES = ("", "6 3", "2 3", "8 3 2 3")
_NAME_WIDTH, _NAME_LETTERS, _ROW = 96, 13, 24


@dataclass(frozen=True)
class Series:
    """Numbers to draw, all of one colour; `strong` ones are drawn heavily."""

    name: str
    x: Sequence[float | None]
    y: Sequence[float | None]
    number: int
    strong: bool = False


@dataclass(frozen=True)
class Estimate:
    """A number with its interval, and the numbers it is the mean of."""

    name: str
    value: float | None
    low: float | None
    high: float | None
    each: Sequence[float | None]
    number: int
    strong: bool = False


@dataclass(frozen=True)
class Spot:
    """One point of a scatter chart, with its name beside it if it is `labelled`."""

    name: str
    x: float
    y: float
    number: int
    strong: bool = False
    labelled: bool = False


@dataclass
class _Frame:
    """Two axes and what is drawn between them."""

    height: int
    x: tuple[float, float]
    y: tuple[float, float]
    left: int = _LEFT
    below: int = _BOTTOM
    parts: list[Markup] = field(default_factory=list)

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return where a point is, in the units of the picture."""
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        bottom = self.height - self.below
        return (
            round(self.left + across * (WIDTH - self.left - _RIGHT), 1),
            round(bottom - up * (bottom - _TOP), 1),
        )

    def add(self, template: str, *values: object) -> None:
        """Add an element; the values are escaped."""
        self.parts.append(Markup(template).format(*values))

    def axes(self, x_label: str = "", y_label: str = "", *, y_ticks: bool = True) -> None:
        """Draw the axes' lines, ticks and labels."""
        bottom = self.height - self.below
        for tick in ticks(*self.x):
            at, _ = self.at(tick, self.y[0])
            self.add('<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/>', at, at, _TOP, bottom)
            self.add('<text x="{}" y="{}" text-anchor="middle">{}</text>', at, bottom + 13, f"{tick:g}")
        for tick in ticks(*self.y) if y_ticks else ():
            _, at = self.at(self.x[0], tick)
            self.add('<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/>', self.left, WIDTH - _RIGHT, at, at)
            self.add('<text x="{}" y="{}" text-anchor="end">{}</text>', self.left - 5, at + 3.5, f"{tick:g}")
        middle = (self.left + WIDTH - _RIGHT) / 2
        if x_label:
            label = '<text class="axis" x="{}" y="{}" text-anchor="middle">{}</text>'
            self.add(label, middle, self.height - 5, x_label)
        if y_label:
            turned = '<text class="axis" text-anchor="middle" transform="translate(10 {}) rotate(-90)">{}</text>'
            self.add(turned, (_TOP + bottom) / 2, y_label)

    def upright(self, x: float, name: str) -> None:
        """Draw a dashed line over the whole height."""
        top, bottom = self.at(x, self.y[1]), self.at(x, self.y[0])
        line = '<line class="mark" x1="{}" x2="{}" y1="{}" y2="{}"><title>{}</title></line>'
        self.add(line, top[0], top[0], top[1], bottom[1], name)

    def line(self, series: Series, points: Iterable[tuple[float, float]]) -> None:
        """Draw a line through points."""
        path = " ".join(f"{a:g},{b:g}" for a, b in (self.at(*point) for point in points))
        dash = _DASHES[series.number % len(_DASHES)]
        element = '<polyline class="line {}" points="{}" stroke-dasharray="{}"><title>{}</title></polyline>'
        self.add(element, _style(series.number, series.strong), path, dash, series.name)

    def svg(self, description: str) -> Markup:
        """Return the picture."""
        head = '<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">'
        return Markup(head).format(WIDTH, self.height, description) + Markup("").join(self.parts) + Markup("</svg>")


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return round numbers between two others, about so many."""
    step = 10 ** math.floor(math.log10((high - low) / about))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (factor * step) <= about)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 10) for i in range(first, last + 1)]


def span(values: Iterable[float | None], *, at_least: float, from_zero: bool = False) -> tuple[float, float]:
    """Return a range that holds all numbers with some room, and is never narrower than `at_least`."""
    known = [value for value in values if value is not None] or [0.0]
    low, high = (0.0 if from_zero else min(known)), max(known)
    room = max((at_least - (high - low)) / 2, 0.05 * (high - low))
    # A little to the left of zero, so that a mark at zero is not on the axis.
    return (-0.02 * (high + room), max(high + room, at_least)) if from_zero else (low - room, high + room)


def estimates(rows: Sequence[Estimate], title: str, *, from_zero: bool) -> Markup:
    """Draw a row for each estimate: a point, its interval, and small points for what it is the mean of."""
    numbers = [number for row in rows for number in (row.value, row.low, row.high, *row.each)]
    below = _BOTTOM - 12  # no label there
    height = _TOP + below + _ROW * len(rows)
    downwards = (len(rows) - 0.5, -0.5)
    frame = _Frame(height, span(numbers, at_least=4.0, from_zero=from_zero), downwards, _NAME_WIDTH, below)
    frame.axes(y_ticks=False)
    for place, row in enumerate(rows):
        _, y = frame.at(frame.x[0], place)
        style = _style(row.number, row.strong)
        name = '<text class="name {}" x="{}" y="{}" text-anchor="end">{}<title>{}</title></text>'
        frame.add(name, "strong" if row.strong else "", _NAME_WIDTH - 8, y + 4, _short(row.name), row.name)
        if row.value is None:
            frame.add('<text x="{}" y="{}">not defined</text>', _NAME_WIDTH + 4, y + 4)
            continue
        words = f"{row.name}: {row.value:.1f}"
        if row.low is not None and row.high is not None:
            words += f" ({row.low:.1f} to {row.high:.1f})"
            ends = frame.at(row.low, place)[0], frame.at(row.high, place)[0]
            frame.add('<line class="whisker {}" x1="{}" x2="{}" y1="{}" y2="{}"/>', style, *ends, y, y)
        for number in row.each if len(row.each) > 1 else ():
            if number is not None:
                frame.add('<circle class="seed {}" cx="{}" cy="{}" r="2"/>', style, frame.at(number, place)[0], y + 7)
        frame.parts.append(shape(row.number, *frame.at(row.value, place), 5, style, words))
    return frame.svg(f"{title}: " + "; ".join(f"{row.name} {row.value:.1f}" for row in rows if row.value is not None))


def lines(series: Sequence[Series], title: str, x_label: str, *, from_zero: bool = False) -> Markup:
    """Draw a line for each series."""
    xs = [x for one in series for x in one.x]
    ys = [y for one in series for y in one.y]
    frame = _Frame(210, span(xs, at_least=1, from_zero=True), span(ys, at_least=1e-3, from_zero=from_zero))
    frame.axes(x_label)
    # What is drawn last is on top.
    for one in sorted(series, key=lambda one: one.strong):
        for stretch in _stretches(one):
            frame.line(one, stretch)
    return frame.svg(f"{title} by {x_label}: " + ", ".join(one.name for one in series))


def histogram(series: Sequence[Series], x_label: str, threshold: float | None) -> Markup:
    """Draw outlines of histograms: `x` holds the bins' edges, `y` their heights."""
    frame = _Frame(180, (0, 1), span([y for one in series for y in one.y], at_least=5, from_zero=True))
    frame.axes(x_label, "% of the group")
    if threshold is not None:
        frame.upright(threshold, f"threshold {threshold:.3g}")
    for one in series:
        corners = [(one.x[0] or 0.0, 0.0)]
        for height, left, right in zip(one.y, one.x, one.x[1:], strict=False):
            corners += [(left or 0.0, height or 0.0), (right or 0.0, height or 0.0)]
        frame.line(one, [*corners, (one.x[-1] or 0.0, 0.0)])
    return frame.svg("Scores of " + ", ".join(one.name for one in series))


def scatter(
    spots: Sequence[Spot],
    x_label: str,
    y_label: str,
    *,
    from_zero: bool = True,
    front: Sequence[tuple[float, float]] = (),
) -> Markup:
    """Draw points, some with their names, and a front as stairs through some of them."""
    xs, ys = [spot.x for spot in spots], [spot.y for spot in spots]
    frame = _Frame(230, span(xs, at_least=4, from_zero=from_zero), span(ys, at_least=4))
    frame.axes(x_label, y_label)
    if front:
        ordered = sorted(front)
        stairs = ordered[:1]
        for (_, before), (x, y) in pairwise(ordered):
            stairs += [(x, before), (x, y)]
        frame.line(Series("front", (), (), 0), stairs)
    taken: list[tuple[float, float]] = []
    for spot in sorted(spots, key=lambda spot: spot.strong):
        x, y = frame.at(spot.x, spot.y)
        words = f"{spot.name}: {x_label} {spot.x:.1f}, {y_label} {spot.y:.1f}"
        style = _style(spot.number, spot.strong) + ("" if spot.labelled else " faint")
        frame.parts.append(shape(spot.number, x, y, 6 if spot.strong else 4.5, style, words))
        if spot.strong:
            frame.add('<circle class="ring" cx="{}" cy="{}" r="10"/>', x, y)
        if spot.labelled:
            side, anchor = (-12, "end") if x > WIDTH * 0.62 else (12, "start")
            line = _free(y + 4, x, taken)
            taken.append((x, line))
            text = '<text class="name {}" x="{}" y="{}" text-anchor="{}">{}</text>'
            frame.add(text, "strong" if spot.strong else "", x + side, line, anchor, _short(spot.name))
    return frame.svg(f"{y_label} against {x_label}: {len(spots)} points")


def shape(number: int, x: float, y: float, r: float, style: str, words: str) -> Markup:
    """Return a circle, square, triangle or diamond with a tooltip; the same number is always the same shape."""
    corners = {
        1: [(-r, -r), (r, -r), (r, r), (-r, r)],
        2: [(0, -1.2 * r), (1.1 * r, 0.8 * r), (-1.1 * r, 0.8 * r)],
        3: [(0, -1.3 * r), (1.3 * r, 0), (0, 1.3 * r), (-1.3 * r, 0)],
    }.get(number % 4)
    if corners is None:
        element = '<circle class="point {}" cx="{}" cy="{}" r="{}"><title>{}</title></circle>'
        return Markup(element).format(style, x, y, r, words)
    points = " ".join(f"{x + a:.1f},{y + b:.1f}" for a, b in corners)
    return Markup('<polygon class="point {}" points="{}"><title>{}</title></polygon>').format(style, points, words)


def key(name: str, number: int, *, strong: bool = False, line: bool = False) -> Markup:
    """Return an entry of a legend: a line's dash or a point's shape, and what it stands for."""
    style, dash = _style(number, strong), _DASHES[number % len(_DASHES)]
    if line:
        sample = '<line class="line {}" x1="1" x2="23" y1="6" y2="6" stroke-dasharray="{}"/>'
        picture = Markup(sample).format(style, dash)
    else:
        picture = shape(number, 12, 6, 4.5, style, name)
    head = Markup('<span class="key"><svg viewBox="0 0 24 12" width="24" height="12" aria-hidden="true">')
    return head + picture + Markup("</svg>") + escape(name) + Markup("</span>")


def _short(name: str) -> str:
    return name if len(name) <= _NAME_LETTERS else name[: _NAME_LETTERS - 1] + "…"


def _style(number: int, strong: bool) -> str:
    colour = "s-none" if number < 0 else f"s{number % _COLOURS}"
    return f"{colour} strong" if strong else colour


def _stretches(series: Series) -> Iterator[list[tuple[float, float]]]:
    """Yield the stretches of a line between the places where it is not defined."""
    stretch: list[tuple[float, float]] = []
    for x, y in zip(series.x, series.y, strict=True):
        if x is None or y is None:
            if stretch:
                yield stretch
            stretch = []
        else:
            stretch.append((x, y))
    if stretch:
        yield stretch


def _free(line: float, x: float, taken: Sequence[tuple[float, float]]) -> float:
    """Return a height near `line` at which no other name is near."""
    for shift in (0, 12, -12, 24, -24, 36):
        if all(abs(line + shift - other) >= 11 or abs(x - place) > 90 for place, other in taken):
            return line + shift
    return line
