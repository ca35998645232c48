"""What a handful of runs can show: intervals, paired differences, ranks, sources of variance."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats

LEVEL = 0.95
Floats = NDArray[np.float64]


class Interval(NamedTuple):
    """An estimate with the ends of its confidence interval; nan ends if there are too few values for one."""

    estimate: float
    low: float
    high: float

    @property
    def half(self) -> float:
        return (self.high - self.low) / 2

    @property
    def is_resolved(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low > 0 or self.high < 0


def mean_interval(values: ArrayLike, *, level: float = LEVEL) -> Interval:
    """Return the mean with Student's interval; of a single value, without one."""
    found = np.asarray(values, dtype=float)
    mean = float(found.mean()) if found.size else math.nan
    if found.size < 2:
        return Interval(mean, math.nan, math.nan)
    half = float(stats.t.ppf((1 + level) / 2, found.size - 1) * found.std(ddof=1) / math.sqrt(found.size))
    return Interval(mean, mean - half, mean + half)


def bootstrap_interval(values: ArrayLike, *, level: float = LEVEL, resamples: int = 10_000, seed: int = 0) -> Interval:
    """Return the mean with a bootstrap interval.

    It is the percentile interval, expanded for small samples (Hesterberg 2015, `arXiv:1411.5279
    <https://arxiv.org/abs/1411.5279>`_): the plain one is too narrow by the factor that Student's t corrects, and by
    the bootstrap's division by `n` instead of `n - 1`. It is never narrower than Student's, because means of a few
    values cannot reach beyond the extreme ones.
    """
    found = np.asarray(values, dtype=float)
    n = found.size
    mean = float(found.mean()) if n else math.nan
    if n < 2:
        return Interval(mean, math.nan, math.nan)
    drawn = np.random.default_rng(seed).integers(n, size=(resamples, n))
    tail = float(stats.norm.cdf(math.sqrt(n / (n - 1)) * stats.t.ppf((1 - level) / 2, n - 1)))
    low, high = np.quantile(found[drawn].mean(axis=1), [tail, 1 - tail])
    student = mean_interval(found, level=level)
    return Interval(mean, min(float(low), student.low), max(float(high), student.high))


def paired_p_value(differences: ArrayLike) -> float:
    """Return the two-sided p-value of Student's test that the mean difference is zero; nan for a single one."""
    found = np.asarray(differences, dtype=float)
    if found.size < 2:
        return math.nan
    error = found.std(ddof=1) / math.sqrt(found.size)
    if error <= 1e-12 * abs(found.mean()):
        return float(not found.any())  # the same difference every time leaves nothing to chance
    return float(2 * stats.t.sf(abs(found.mean()) / error, found.size - 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number by Holm's method; nan stays nan and does not count."""
    adjusted = np.full(len(p_values), math.nan)
    known = [i for i in np.argsort(p_values) if not math.isnan(p_values[i])]
    largest = 0.0
    for place, i in enumerate(known):
        largest = max(largest, min(1.0, (len(known) - place) * p_values[i]))
        adjusted[i] = largest
    return adjusted.tolist()


def is_dominated(rival: pd.DataFrame, own: pd.DataFrame, *, better: Mapping[str, bool], level: float = LEVEL) -> bool:
    """Return whether a rival is better in every metric, with this confidence.

    Both tables have a row for each split and a column for each metric of `better`, which says whether higher is. Each
    metric has a one-sided paired test at the full level, because all of them must reject (an intersection-union test).
    """
    for metric, is_higher in better.items():
        gain = (rival[metric] - own[metric]).dropna().to_numpy(dtype=float) * (1 if is_higher else -1)
        low = mean_interval(gain, level=2 * level - 1).low
        if not low > 0:
            return False
    return True


def critical_difference(methods: int, blocks: int, *, level: float = LEVEL) -> float:
    """Return how far two average ranks must be apart to differ, by Nemenyi's test (Demsar 2006)."""
    q = float(stats.studentized_range.ppf(level, methods, np.inf)) / math.sqrt(2)
    return q * math.sqrt(methods * (methods + 1) / (6 * blocks))


def friedman_p_value(ranks: pd.DataFrame) -> float:
    """Return the p-value that all methods (columns) have the same rank over the blocks (rows)."""
    if min(ranks.shape) < 2 or ranks.shape[1] < 3:
        return math.nan
    return float(stats.friedmanchisquare(*(ranks[name] for name in ranks)).pvalue)


def variance_components(values: Floats, factors: Sequence[str]) -> dict[str, float]:
    """Return the standard deviation that each factor contributes to a balanced table of repeated measurements.

    Args:
        values: an axis for each factor, every combination of their levels measured, and a last axis for repetitions
            that differ in the seed only.
        factors: the names of all axes but the last.

    Each is the unbiased estimate of a model with main effects and their `interaction`, and 0 if that is negative. It is
    nan where nothing varies: a factor with one level, a single repetition (then the seed is part of the interaction).
    """
    repetitions, cells = values.shape[-1], values.mean(axis=-1)
    seed = float(values.var(axis=-1, ddof=1).mean()) if repetitions > 1 else math.nan
    squares = {}
    for axis, name in enumerate(factors):
        others = tuple(i for i in range(cells.ndim) if i != axis)
        squares[name] = float(((cells.mean(axis=others) - cells.mean()) ** 2).sum() * cells.size / cells.shape[axis])
    freedom = cells.size - 1 - sum(levels - 1 for levels in cells.shape)
    left = max(0.0, float(((cells - cells.mean()) ** 2).sum()) - sum(squares.values()))
    by_seed = 0.0 if math.isnan(seed) else seed / repetitions
    # What the mean square of a factor contains in addition to the factor itself.
    noise = left / freedom if freedom > 0 else by_seed
    found = {}
    for axis, name in enumerate(factors):
        levels = cells.shape[axis]
        excess = squares[name] / (levels - 1) - noise if levels > 1 else math.nan
        found[name] = math.sqrt(max(0.0, excess * levels / cells.size)) if levels > 1 else math.nan
    interaction = math.sqrt(max(0.0, noise - by_seed)) if freedom > 0 else math.nan
    return {**found, "seed": math.sqrt(seed), "interaction": interaction}
