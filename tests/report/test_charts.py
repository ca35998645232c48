"""Charts: well-formed, with round ticks, whatever the numbers."""

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from fairpass.report import charts
from fairpass.report.charts import Look
from fairpass.report.text import listed, number, percent, plural

numbers = st.floats(-1e6, 1e6).map(lambda value: round(value, 3))


def parse(chart: Markup) -> ElementTree.Element:
    return ElementTree.fromstring(str(chart))


@given(numbers, st.floats(1e-3, 1e6))
def test_ticks_are_round_and_inside(low: float, width: float) -> None:
    ticks = charts.ticks(low, low + width)
    assert 1 <= len(ticks) <= 7
    slack = 1e-6 * max(abs(low), width, 1)
    assert all(low - slack <= tick <= low + width + slack for tick in ticks)
    assert ticks == sorted(ticks)


@given(st.lists(st.none() | st.floats(-1e302, 1e302), max_size=4), st.booleans())
def test_every_line_can_be_drawn(values: list[float | None], from_zero: bool) -> None:
    """Also one of equal numbers that are very large, or of negative ones from zero."""
    series = charts.Series(Look("gcn", 0), [*range(len(values))], values)
    parse(charts.lines([series], "Loss", "epoch", from_zero=from_zero))


@pytest.mark.parametrize(("values", "from_zero"), [([1e20, 1e20], False), ([-1.0, -1.0], True)])
def test_lines_that_could_not_be_drawn_once(values: list[float], from_zero: bool) -> None:
    low, high = charts.span(values, at_least=1e-3, from_zero=from_zero)
    assert low < high
    assert charts.ticks(low, high)


@given(st.lists(st.none() | numbers, max_size=6), st.booleans())
def test_span_holds_everything(values: list[float | None], from_zero: bool) -> None:
    known = [value for value in values if value is not None and (value >= 0 or not from_zero)]
    low, high = charts.span(known, at_least=4, from_zero=from_zero)
    assert high - low >= 4 * (1 - 1e-9)
    assert all(low <= value <= high for value in known)


def test_estimates_name_every_row() -> None:
    rows = [
        charts.Estimate(Look("gcn", 0), 50.0, 40.0, 60.0, [49.0, 51.0]),
        charts.Estimate(Look("<b> & a very long name", 1, strong=True), 60.0, None, None, [60.0]),
        charts.Estimate(Look("undefined", 2), None, None, None, [None]),
    ]
    drawn = parse(charts.estimates(rows, "ACC", from_zero=False))
    texts = [element.text for element in drawn.iter("text")]
    assert {"gcn", "<b> & a very…", "not defined"} <= set(texts)
    assert drawn.get("aria-label") == "ACC: gcn 50.0; <b> & a very long name 60.0"
    assert len([e for e in drawn.iter("circle") if "seed" in str(e.get("class"))]) == 2


def test_a_line_breaks_where_it_is_not_defined() -> None:
    series = charts.Series(Look("gcn", 0), [0, 1, 2, 3], [1.0, None, 2.0, 3.0])
    drawn = parse(charts.lines([series], "loss", "epoch"))
    assert [len(str(e.get("points")).split()) for e in drawn.iter("polyline")] == [1, 2]


def test_histogram_has_outlines_and_a_threshold() -> None:
    series = [
        charts.Series(Look(name, i), [0, 0.5, 1], y) for i, (name, y) in enumerate((("m", [80, 20]), ("f", [50, 50])))
    ]
    drawn = parse(charts.histogram(series, "score", 0.5))
    assert len(list(drawn.iter("polyline"))) == 2
    assert len([e for e in drawn.iter("line") if e.get("class") == "mark"]) == 1


def test_scatter_shows_points_and_front() -> None:
    spots = [
        charts.Spot(Look("a", 0), 1, 2, labelled=True),
        charts.Spot(Look("b", 1, strong=True), 1, 2, labelled=True),
        charts.Spot(Look("c", 2), 3, 4),
    ]
    drawn = parse(charts.scatter(spots, "ΔDP", "ACC", front=[(3, 4), (1, 2)]))
    titles = [e.find("title") for e in drawn.iter() if e.get("class") != "name" and e.tag != "text"]
    assert len([title for title in titles if title is not None]) == 4
    # Names of points at one place do not lie on each other.
    heights = [e.get("y") for e in drawn.iter("text") if e.text in {"a", "b"}]
    assert len(set(heights)) == 2


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (percent(0.12345), "12.3"),
        (percent(None), "–"),
        (percent(float("nan")), "–"),
        (number(None), "–"),
        (number(12345), "12,345"),
        (number(0.123456), "0.123"),
        (listed(["a"]), "a"),
        (listed(["a", "b", "c"]), "a, b and c"),
        (plural(1, "node"), "1 node"),
        (plural(1000, "node"), "1,000 nodes"),
    ],
)
def test_words(made: str, expected: str) -> None:
    assert made == expected
