r"""Exact tests and bounds for two rates: how often people of two groups are selected.

A group of `n` people of whom `x` are selected is a binomial sample. The tests are unconditional: the p-value is the
largest over all pairs of rates that the hypothesis allows, so an error is never more likely than stated, whatever the
sizes of the groups. The search is confined to a confidence interval of the nuisance rate (Berger and Boos 1994,
J. Am. Stat. Assoc. 89), whose error is added to the p-value. SciPy's Barnard and Boschloo tests are about equal rates
only; here the hypothesis is any line :math:`p_1 = \text{shift} + \text{slope}\, p_0`.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]

_NUISANCE_ERROR = 1e-4  # of the confidence interval of the nuisance rate
_OMITTED = 1e-9  # probability of the counts that are left out of a sum
# Nuisance rates that are tried, more if the first group is the larger one; with twice as many, p-values near 0.05
# differ by less than the error above.
_GRID, _FINEST = 48, 400
_TOLERANCE = 1e-4  # of a bound, as a fraction


class Tally(NamedTuple):
    """How many of the people in a group were selected."""

    selected: int
    people: int

    @property
    def rate(self) -> float:
        return self.selected / self.people if self.people else math.nan

    @property
    def others(self) -> "Tally":
        """The same people, with those counted who were not selected."""
        return Tally(self.people - self.selected, self.people)

    @property
    def smoothed(self) -> float:
        """The rate with one more person of each kind (Agresti and Caffo 2000), which is never 0 or 1."""
        return (self.selected + 1) / (self.people + 2)

    @property
    def variance(self) -> float:
        """Estimated variance of the rate."""
        return self.smoothed * (1 - self.smoothed) / (self.people + 2)


def p_value_below(first: Tally, second: Tally, *, shift: float = 0.0, slope: float = 1.0) -> float:
    r"""Return the p-value against :math:`p_1 \ge \text{shift} + \text{slope}\, p_0`.

    A small value shows that the rate of `first` is below the line. Without any person in a group it is 1.
    """
    if not first.people or not second.people or shift + slope * second.smoothed <= 0:
        return 1.0
    spread = math.sqrt(first.variance + slope**2 * second.variance)
    statistic = (first.smoothed - shift - slope * second.smoothed) / spread
    if statistic >= 0:  # the sample is on the side of the hypothesis
        return 1.0
    n1, (x0, n0) = first.people, second
    # Rates of `second` that its sample allows, and for which the line is a rate.
    tail = _NUISANCE_ERROR / 2
    low = float(stats.beta.ppf(tail, x0, n0 - x0 + 1)) if x0 else 0.0
    high = float(stats.beta.ppf(1 - tail, x0 + 1, n0 - x0)) if x0 < n0 else 1.0
    high = min(high, (1 - shift) / slope)
    if high < low:
        return _NUISANCE_ERROR
    grid = min(_FINEST, math.ceil(_GRID * max(1.0, math.sqrt(n1 / n0))))
    nuisance = np.linspace(low, high, grid)
    line = np.clip(shift + slope * nuisance, 0, 1)
    lowest, highest = (int(stats.binom.ppf(p, n0, rate)) for p, rate in ((_OMITTED, low), (1 - _OMITTED, high)))
    limits = _as_extreme(np.arange(highest + 1), n0, n1, shift, slope, statistic)[lowest:]
    at_nuisance = np.asarray(stats.binom.pmf(np.arange(lowest, highest + 1), n0, nuisance[:, None]))
    probability = (at_nuisance * stats.binom.cdf(limits, n1, line[:, None])).sum(1)
    return min(1.0, float(probability.max()) + _NUISANCE_ERROR + 2 * _OMITTED)


def _as_extreme(counts: NDArray[np.int64], n0: int, n1: int, shift: float, slope: float, least: float) -> Floats:
    """Return for each count of the second group the largest of the first that is as extreme as `least`; -1: none.

    It grows with the count, which makes the line the worst case of the hypothesis (Barnard's convexity).
    """
    rate0 = (counts + 1) / (n0 + 2)
    centre = shift + slope * rate0
    square = least**2
    variance0 = slope**2 * rate0 * (1 - rate0) / (n0 + 2)
    # The statistic equals `least` at the smaller root of a quadratic equation in the first group's rate.
    a, b = 1 + square / (n1 + 2), -(2 * centre + square / (n1 + 2))
    discriminant = b**2 - 4 * a * (centre**2 - square * variance0)
    distance = np.sqrt(np.maximum(discriminant, 0)) / (2 * a)
    root, upper_root = -b / (2 * a) - distance, -b / (2 * a) + distance
    # Where the line is above 1, rates above the larger root are below the line and as extreme, too.
    whole = (centre > 0) & ((discriminant < 0) | ((upper_root < centre) & (upper_root <= (n1 + 1) / (n1 + 2))))
    largest = np.where(whole, n1, np.where(centre > 0, np.floor((n1 + 2) * root - 1 + 1e-9), -1))
    return np.maximum.accumulate(np.clip(largest, -1, n1))


def largest_difference(first: Tally, second: Tally, error: float) -> float:
    """Return an upper bound of `p_1 - p_0`, between -1 and 1, which fails with probability `error` at most."""
    guess, scale = _normal_bound(first, second, error)
    return _invert(lambda shift: p_value_below(first, second, shift=shift) <= error, guess, scale, -1.0, 1.0)


def smallest_ratio(first: Tally, second: Tally, error: float) -> float:
    """Return a lower bound of `p_1 / p_0`, between 0 and 1, which fails with probability `error` at most."""
    # p_1 / p_0 is above r where p_0 is below the line p_1 / r.
    guess, scale = (each / second.smoothed for each in _normal_bound(second, first, error))
    highest = 1.0 - 1e-6
    return 1 - _invert(
        lambda gap: p_value_below(second, first, slope=1 / (1 - gap)) <= error, guess, scale, 0.0, highest
    )


def largest_ratio(first: Tally, second: Tally, error: float) -> float:
    """Return an upper bound of `p_1 / p_0`, between 0 and 1, which fails with probability `error` at most."""
    guess = (first.smoothed + float(stats.norm.isf(error)) * math.sqrt(first.variance)) / second.smoothed
    scale = math.sqrt(first.variance) / second.smoothed
    return _invert(lambda ratio: p_value_below(first, second, slope=ratio) <= error, guess, scale, 0.0, 1.0)


def _normal_bound(first: Tally, second: Tally, error: float) -> tuple[float, float]:
    """Return about the largest difference of two rates, and its standard deviation."""
    deviation = math.sqrt(first.variance + second.variance)
    return first.smoothed - second.smoothed + float(stats.norm.isf(error)) * deviation, deviation


def _invert(is_shown: Callable[[float], bool], guess: float, scale: float, low: float, high: float) -> float:
    """Return the smallest bound between `low` and `high` that is shown, by bisection around a guess.

    It is `high` if none is shown.
    """
    start = min(max(guess, low), high)
    below, above, step = start, start, max(scale / 4, _TOLERANCE)
    while above < high and not is_shown(above):
        below, above, step = above, min(above + step, high), 2 * step
    while below == above or (below > low and is_shown(below)):
        below, above, step = max(below - step, low), below, 2 * step
        if below == above:  # the lowest bound of all is shown
            return low
    while above - below > _TOLERANCE:
        middle = (below + above) / 2
        below, above = (below, middle) if is_shown(middle) else (middle, above)
    return above
