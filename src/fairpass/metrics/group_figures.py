"""The figures of an audit for each group, from counts: selection rate, impact ratio, errors and precision; calibration.

Every proportion has Wilson's interval and the impact ratio Koopman's (`proportions`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from fairpass.errors import DataError
from fairpass.metrics.inputs import check_number
from fairpass.metrics.proportions import LEVEL, UNDEFINED, Estimate, difference, proportion, ratio

FOUR_FIFTHS = 0.8  # below this impact ratio, US guidelines see evidence of adverse impact (29 CFR 1607.4)


@dataclass(frozen=True)
class GroupCounts:
    """The people of one group, seen from one label."""

    group: str
    people: int
    positives: int  # who truly have the label
    selected: int  # who are predicted to have it
    true: int  # both


@dataclass(frozen=True)
class GroupFigures:
    """One group, seen from one label; see `group_figures`."""

    group: str
    people: int
    positives: int
    selected: int
    selection_rate: Estimate  # P(ŷ = c)
    impact_ratio: Estimate  # the selection rate over that of the reference group
    false_positive_rate: Estimate  # P(ŷ = c | y ≠ c)
    false_negative_rate: Estimate  # P(ŷ ≠ c | y = c)
    precision: Estimate  # P(y = c | ŷ = c)
    is_reference: bool
    excluded: bool  # too small a share of all people to be compared


def group_figures(
    counts: Sequence[GroupCounts], *, least_share: float = 0.0, level: float = LEVEL
) -> tuple[GroupFigures, ...]:
    """Return the figures of each group; one without people for a rate has a rate of nan.

    The reference of the impact ratio is the group with the highest selection rate. Its choice is taken as given: with
    many small groups the highest rate is partly luck, and ratios are too low. Groups with less than `least_share` of
    all people have no ratio and are never the reference.
    """
    total = sum(each.people for each in counts)
    compared = [each for each in counts if each.people and each.people >= least_share * total]
    reference = max(compared, key=lambda each: each.selected / each.people, default=None)
    rows = []
    for each in counts:
        found = UNDEFINED
        if reference is not None and each in compared:
            found = ratio(each.selected, each.people, reference.selected, reference.people, level=level)
            if each is reference and reference.selected:
                found = Estimate(1.0, 1.0, 1.0)
        false, negatives = each.selected - each.true, each.people - each.positives
        rows.append(
            GroupFigures(
                group=each.group,
                people=each.people,
                positives=each.positives,
                selected=each.selected,
                selection_rate=proportion(each.selected, each.people, level=level),
                impact_ratio=found,
                false_positive_rate=proportion(false, negatives, level=level),
                false_negative_rate=proportion(each.positives - each.true, each.positives, level=level),
                precision=proportion(each.true, each.selected, level=level),
                is_reference=each is reference,
                excluded=each not in compared,
            )
        )
    return tuple(rows)


class Gap(NamedTuple):
    """The difference of the selection rates of two groups."""

    high: GroupCounts
    low: GroupCounts
    difference: Estimate


class WidestGap(NamedTuple):
    """The widest difference of selection rates between two groups, with an interval that holds for all pairs."""

    high: GroupCounts
    low: GroupCounts
    difference: Estimate
    pairs: int
    shown: Gap | None  # the widest whose interval does not include 0; the widest of all may be of two small groups


def widest_gap(counts: Sequence[GroupCounts], *, comparisons: int = 1, level: float = LEVEL) -> WidestGap | None:
    """Return the pair of groups whose selection rates differ most; None with fewer than two groups.

    The widest of many differences is wide by chance, so the level is Bonferroni's for all pairs, times `comparisons`
    (the number of labels looked at).
    """
    groups = sorted((each for each in counts if each.people), key=lambda each: -each.selected / each.people)
    pairs = list(combinations(groups, 2))
    if not pairs:
        return None
    strict = 1 - (1 - level) / (len(pairs) * comparisons)
    gaps = [
        Gap(high, low, difference(high.selected, high.people, low.selected, low.people, level=strict))
        for high, low in pairs
    ]
    gaps.sort(key=lambda gap: -gap.difference.value)
    shown = next((gap for gap in gaps if not gap.difference.includes_zero), None)
    return WidestGap(*gaps[0], pairs=len(pairs), shown=shown)


class CalibrationBin(NamedTuple):
    """People whose score is in one part of the range."""

    low: float
    high: float
    people: int
    mean_score: float
    positives: int


@dataclass(frozen=True)
class Calibration:
    """Scores of one label against how often it is true.

    `in_the_large` is the mean score minus the share of people with the label: above 0 the scores are too high. Its
    interval is the normal one of a mean.
    """

    mean_score: float
    share: float
    in_the_large: Estimate
    bins: tuple[CalibrationBin, ...]


def calibration(scores: ArrayLike, has_label: ArrayLike, *, bins: int = 5, level: float = LEVEL) -> Calibration:
    """Compare scores between 0 and 1 with the truth, over all people and in `bins` parts of equal width."""
    check_number("bins", bins)
    values, truth = np.asarray(scores, dtype=np.float64), np.asarray(has_label, dtype=bool)
    if values.ndim != 1 or values.shape != truth.shape:
        raise DataError(f"'scores' and 'has_label' must have one shape [N] (got {values.shape} and {truth.shape})")
    if values.size and not ((values >= 0) & (values <= 1)).all():
        raise DataError(f"'scores' must lie between 0 and 1 (got {values.min():g} to {values.max():g})")
    place = np.minimum((values * bins).astype(int), bins - 1)
    parts = [values[place == i] for i in range(bins)]
    rows = tuple(
        CalibrationBin(i / bins, (i + 1) / bins, part.size, _mean(part), int(truth[place == i].sum()))
        for i, part in enumerate(parts)
    )
    return Calibration(_mean(values), _mean(truth), _mean_estimate(values - truth, level), rows)


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean()) if values.size else math.nan


def _mean_estimate(values: NDArray[np.float64], level: float) -> Estimate:
    if values.size < 2:
        return UNDEFINED._replace(value=_mean(values))
    reach = float(stats.norm.ppf((1 + level) / 2)) * float(values.std(ddof=1)) / math.sqrt(values.size)
    return Estimate(_mean(values), _mean(values) - reach, _mean(values) + reach)
