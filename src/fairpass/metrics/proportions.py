"""Proportions, their differences and their ratios, each with a confidence interval by the score method.

The score method stays inside the possible values and is defined for counts of zero, where the usual normal intervals
are not: Wilson (1927) for a proportion, Newcombe (1998) for a difference, Koopman (1984) for a ratio.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from scipy import optimize, stats

from fairpass.errors import DataError

LEVEL = 0.95
_LARGEST_RATIO = 1e30


class Estimate(NamedTuple):
    """A number with the ends of its confidence interval; all are nan if it is undefined."""

    value: float
    low: float
    high: float

    @property
    def includes_zero(self) -> bool:
        """Whether the sign is open; True if the number is undefined."""
        return not (self.low > 0 or self.high < 0)


UNDEFINED = Estimate(math.nan, math.nan, math.nan)


def proportion(count: int, people: int, *, level: float = LEVEL) -> Estimate:
    """Return `count / people` with Wilson's interval; undefined for no people."""
    _check(count, people)
    if not people:
        return UNDEFINED
    interval = stats.binomtest(count, people).proportion_ci(level, method="wilson")
    return Estimate(count / people, float(interval.low), float(interval.high))


def difference(count: int, people: int, other_count: int, other_people: int, *, level: float = LEVEL) -> Estimate:
    """Return the first proportion minus the second, of two groups of people, with Newcombe's interval."""
    first, second = proportion(count, people, level=level), proportion(other_count, other_people, level=level)
    value = first.value - second.value
    down = math.hypot(first.value - first.low, second.high - second.value)
    up = math.hypot(first.high - first.value, second.value - second.low)
    return Estimate(value, value - down, value + up)


def ratio(count: int, people: int, other_count: int, other_people: int, *, level: float = LEVEL) -> Estimate:
    """Return the first proportion over the second, of two groups of people, with Koopman's interval.

    It is undefined if the second proportion is 0. scipy has the interval of the logarithm (`relative_risk`), which does
    not exist for a count of zero.
    """
    _check(count, people)
    _check(other_count, other_people)
    if not people or not other_count:
        return UNDEFINED
    value, z2 = (count / people) / (other_count / other_people), float(stats.norm.ppf((1 + level) / 2)) ** 2
    sizes = (count, people, other_count, other_people)
    at = math.log(value) if value else -math.log(_LARGEST_RATIO)

    def excess(log_ratio: float) -> float:
        # At the estimate the statistic is 0, which rounding may hide for very many people; it grows on both sides.
        return (0.0 if log_ratio == at else _score(math.exp(log_ratio), *sizes)) - z2

    low = 0.0 if not count else math.exp(_root(excess, -math.log(_LARGEST_RATIO), at))
    return Estimate(value, low, math.exp(_root(excess, at, math.log(_LARGEST_RATIO))))


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    return float(optimize.brentq(function, low, high, xtol=1e-10))


def _score(theta: float, a: int, n: int, b: int, m: int) -> float:
    """Return Koopman's statistic of the hypothesis that the rate of `a` of `n` is `theta` times that of `b` of `m`."""
    # The likeliest rates under the hypothesis solve a quadratic equation; the smaller root is a probability.
    half = (theta * (n + b) + a + m) / 2
    root = math.sqrt(max(half * half - theta * (n + m) * (a + b), 0.0))
    second = (a + b) / (half + root)  # the same as (half - root) / (theta (n + m)), without cancellation
    first = min(theta * second, 1.0)
    parts = [(a, n, first), (b, m, min(second, 1.0))]
    if any(p in (0.0, 1.0) and x != size * p for x, size, p in parts):
        return math.inf
    return sum((x - size * p) ** 2 / (size * p * (1 - p)) for x, size, p in parts if 0 < p < 1)


def _check(count: int, people: int) -> None:
    if not 0 <= count <= people:
        raise DataError(f"'count' must be between 0 and {people}, the number of people (got {count})")
