"""Intervals of proportions, differences and ratios: published examples, properties, and how often they are right."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import contingency

from fairpass.errors import DataError
from fairpass.metrics.proportions import Estimate, difference, proportion, ratio

sizes = st.integers(1, 400)


@st.composite
def counts(draw: st.DrawFn) -> tuple[int, int]:
    people = draw(sizes)
    return draw(st.integers(0, people)), people


def test_wilson_of_newcombes_example() -> None:
    # Newcombe (1998), Statistics in Medicine 17, 857-872, table I: 81 of 263.
    assert proportion(81, 263) == pytest.approx((0.3080, 0.2553, 0.3662), abs=5e-5)


def test_difference_of_newcombes_examples() -> None:
    # Newcombe (1998), Statistics in Medicine 17, 873-890, table II, method 10.
    assert difference(56, 70, 48, 80) == pytest.approx((0.2, 0.0524, 0.3339), abs=5e-5)
    assert difference(9, 10, 3, 10) == pytest.approx((0.6, 0.1705, 0.8090), abs=5e-5)
    assert difference(10, 10, 0, 20) == pytest.approx((1.0, 0.6791, 1.0), abs=5e-5)


def test_ratio_of_koopmans_example() -> None:
    # Koopman (1984), Biometrics 40, 513-517: 36 of 40 over 16 of 80.
    assert ratio(36, 40, 16, 80) == pytest.approx((4.5, 2.94, 7.15), abs=5e-3)


def test_ratio_of_many_people_is_scipys() -> None:
    found = contingency.relative_risk(4_000, 10_000, 9_000, 20_000)
    interval = found.confidence_interval(0.95)
    expected = (found.relative_risk, interval.low, interval.high)
    assert ratio(4_000, 10_000, 9_000, 20_000) == pytest.approx(expected, rel=1e-3)


@given(counts(), counts())
def test_estimates_are_inside_and_possible(first: tuple[int, int], second: tuple[int, int]) -> None:
    slack = 1e-9
    share = proportion(*first)
    assert -slack <= share.low <= share.value + slack
    assert share.value - slack <= share.high <= 1 + slack
    gap = difference(*first, *second)
    assert -1 - slack <= gap.low <= gap.value + slack
    assert gap.value - slack <= gap.high <= 1 + slack
    assert difference(*second, *first) == pytest.approx((-gap.value, -gap.high, -gap.low))
    if second[0]:
        found = ratio(*first, *second)
        assert 0 <= found.low <= found.value * (1 + slack)
        assert found.value <= found.high * (1 + slack)
        assert (found.low == 0) == (first[0] == 0)
    if first[0] and second[0]:
        other = ratio(*second, *first)
        assert other == pytest.approx((1 / found.value, 1 / found.high, 1 / found.low), rel=1e-6)


def test_more_confidence_is_wider() -> None:
    for function, arguments in ((proportion, (7, 30)), (difference, (7, 30, 9, 20)), (ratio, (7, 30, 9, 20))):
        narrow, wide = function(*arguments, level=0.9), function(*arguments, level=0.99)
        assert wide.low < narrow.low < narrow.high < wide.high


@pytest.mark.parametrize(("p", "q", "n", "m"), [(0.5, 0.6, 40, 60), (0.1, 0.15, 60, 30), (0.9, 0.9, 25, 80)])
def test_intervals_hold_nearly_as_often_as_they_say(p: float, q: float, n: int, m: int) -> None:
    generator = np.random.default_rng(0)
    drawn = list(zip(generator.binomial(n, p, 500).tolist(), generator.binomial(m, q, 500).tolist(), strict=True))
    gaps = [difference(a, n, b, m) for a, b in drawn]
    ratios = [ratio(a, n, b, m) for a, b in drawn if b]
    assert np.mean([found.low <= p - q <= found.high for found in gaps]) > 0.92
    assert np.mean([found.low <= p / q <= found.high for found in ratios]) > 0.92


def test_nobody_gives_no_number() -> None:
    assert all(map(math.isnan, proportion(0, 0)))
    assert all(map(math.isnan, difference(0, 0, 1, 2)))
    assert all(map(math.isnan, ratio(1, 2, 0, 5)))
    assert all(map(math.isnan, ratio(0, 0, 1, 5)))
    assert ratio(0, 10, 5, 10)[:2] == (0, 0)


@pytest.mark.parametrize(
    "counts", [(0, 10, 1, 10**9), (1, 10**9, 10, 10), (10**9 - 1, 10**9, 10**10 - 1, 10**10), (10**12, 10**12, 1, 3)]
)
def test_very_many_people_have_a_ratio(counts: tuple[int, int, int, int]) -> None:
    found = ratio(*counts)
    assert 0 <= found.low <= found.value * (1 + 1e-9) <= found.high * (1 + 1e-8)


def test_a_sign_is_open_if_zero_is_inside() -> None:
    assert Estimate(0.1, -0.1, 0.3).includes_zero
    assert Estimate(0.1, 0.0, 0.3).includes_zero
    assert not Estimate(-0.2, -0.3, -0.1).includes_zero
    assert Estimate(math.nan, math.nan, math.nan).includes_zero


@pytest.mark.parametrize(("count", "people"), [(3, 2), (-1, 2)])
def test_counts_must_be_possible(count: int, people: int) -> None:
    message = rf"'count' must be between 0 and {people}, the number of people \(got {count}\)"
    with pytest.raises(DataError, match=message):
        proportion(count, people)
    with pytest.raises(DataError, match=message):
        ratio(1, 2, count, people)
