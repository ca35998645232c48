"""Checks of a limit as in the Seldonian framework (Thomas et al. 2019, Science 366), to compare ours with.

The framework asks for an upper bound of what must be below zero. The two directions of a difference between groups are
two constraints, and the error is split between them.
"""

import math
from collections.abc import Callable, Mapping, Sequence

from scipy import stats

from fairpass.metrics.limits import LIMITS
from fairpass.metrics.two_rates import Tally

# Half of the width of an interval, for the shares of two groups, the weight of the first, and the error.
Width = Callable[[Tally, Tally, float, float], float]


def _is_shown(counts: Sequence[Tally], limits: Mapping[str, float], error: float, width: Width) -> bool:
    ((kind, limit),) = limits.items()
    # What must be below zero: a difference minus its limit, or the share that is asked for minus the one that is.
    weight, shift = (limit, 0.0) if LIMITS[kind].is_ratio else (1.0, limit)
    first, second = counts
    pairs = ((first, second), (second, first))
    return all(weight * a.rate - b.rate - shift + width(a, b, weight, error / 2) <= 0 for a, b in pairs)


def _student(a: Tally, b: Tally, weight: float, error: float) -> float:
    """Return the width by Student's t with Welch's degrees of freedom, as the framework's published code does."""
    parts = [weight**2 * a.rate * (1 - a.rate) / (a.people - 1), b.rate * (1 - b.rate) / (b.people - 1)]
    squares = sum(part**2 / (each.people - 1) for part, each in zip(parts, (a, b), strict=True))
    freedom = sum(parts) ** 2 / squares if squares else 1.0
    return float(stats.t.isf(error, freedom)) * math.sqrt(sum(parts))


def _hoeffding(a: Tally, b: Tally, weight: float, error: float) -> float:
    """Return the width by Hoeffding's inequality for each share, which holds for samples of any size."""
    return sum(scale * math.sqrt(math.log(2 / error) / (2 * each.people)) for scale, each in ((weight, a), (1.0, b)))


RIVALS: Mapping[str, Callable[[Sequence[Tally], Mapping[str, float], float], bool]] = {
    "Seldonian, Student's t": lambda counts, limits, error: _is_shown(counts, limits, error, _student),
    "Seldonian, Hoeffding": lambda counts, limits, error: _is_shown(counts, limits, error, _hoeffding),
}
