"""Configurations as points between utility and unfairness, the front of those that no other beats, and the choice.

Everything here looks at the validation nodes only.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from fairpass.errors import DataError
from fairpass.metrics.catalog import UNFAIRNESS, UTILITY
from fairpass.metrics.limits import check_limits
from fairpass.runs import Configuration

_USEFUL, _UNFAIR = ([metric.label for metric in metrics] for metrics in (UTILITY, UNFAIRNESS))
MOST_ROOM = 1.8  # margins; see `candidates`
_ROUNDING = 1e-9
IMPACT_RATIO = "IR"  # smallest ratio of two groups' shares of predictions, in `Point.validation`
# What a limit is about, and how much a metric is beyond it: differences have an upper limit, the ratio a lower one.
_LIMITED = {"max_dp": ("DP", 1), "max_eo": ("EO", 1), "min_impact_ratio": (IMPACT_RATIO, -1)}


def _complete(metrics: Mapping[str, float]) -> Mapping[str, float]:
    if lacking := [name for name in (*_USEFUL, *_UNFAIR) if name not in metrics]:
        raise ValueError(f"the metrics lack {', '.join(lacking)}")
    return metrics


@dataclass(frozen=True)
class Point(Configuration):
    """A configuration (with all its settings) and how it did: AUC, F1, ACC, DP and EO, means over the seeds."""

    # Fractions, also IR; every choice is made by these.
    validation: Annotated[Mapping[str, float], AfterValidator(_complete), Field(validate_default=True)] = field(
        default_factory=dict
    )
    test: Mapping[str, float] | None = None  # for the reader; None if undefined there
    near_constant: bool = False  # with at least half of the seeds, on validation

    @property
    def utility(self) -> float:
        """Mean of AUC, F1 and ACC."""
        return fmean(self.validation[name] for name in _USEFUL)

    @property
    def unfairness(self) -> float:
        """Mean of DP and EO."""
        return fmean(self.validation[name] for name in _UNFAIR)

    @property
    def selection(self) -> float:
        """`AUC + F1 + ACC - DP - EO`, the rule that also selects epochs."""
        return sum(self.validation[name] for name in _USEFUL) - sum(self.validation[name] for name in _UNFAIR)

    def to_dict(self) -> dict[str, Any]:
        metrics = {"validation": self.validation, "test": self.test, "near_constant": self.near_constant}
        return {**super().to_dict(), **metrics}


def informative(points: Iterable[Point]) -> list[Point]:
    """Return the points that are not near constant, or all of them if there are no others."""
    points = list(points)
    if not points:
        raise DataError("'points' must hold at least one configuration (got none)")
    # Who predicts the same for everybody is fair and, if one label is common, often right, but of no use.
    return [point for point in points if not point.near_constant] or points


def pareto_front(points: Iterable[Point]) -> list[Point]:
    """Return the informative points that no other point beats, from the most useful to the fairest.

    A point is beaten by one that is no worse in utility and in unfairness, and better in one of them.
    """
    candidates = informative(points)
    front: list[Point] = []
    for i in non_dominated([(point.utility, point.unfairness) for point in candidates]):
        if candidates[i] not in front:
            front.append(candidates[i])
    # The order must not depend on that of the points, not even among equals.
    return sorted(front, key=lambda point: (-point.utility, point.unfairness, repr(sorted(point.parameters.items()))))


def non_dominated(pairs: Sequence[tuple[float, float]]) -> list[int]:
    """Return the indices of the pairs (utility, unfairness) that no other pair beats."""
    best, kept = float("inf"), set()
    # Starting with the most useful, each has to be fairer than all before it.
    for pair in sorted(set(pairs), key=lambda pair: (-pair[0], pair[1])):
        if pair[1] < best:
            best = pair[1]
            kept.add(pair)
    return [i for i, pair in enumerate(pairs) if pair in kept]


def hypervolume(points: Iterable[Point], *, reference: tuple[float, float] = (0.0, 1.0)) -> float:
    """Return the area between the front of the informative points and a reference point; larger is better.

    `reference` is a utility and an unfairness; the default is the worst possible, for which the area is at most 1.
    """
    return dominated_area([(point.utility, point.unfairness) for point in informative(points)], reference=reference)


def dominated_area(pairs: Iterable[tuple[float, float]], *, reference: tuple[float, float] = (0.0, 1.0)) -> float:
    """Return the area of what is worse than one of the pairs (utility, unfairness) and better than `reference`."""
    worst_utility, limit = reference
    area = 0.0
    for utility, unfairness in sorted(pairs, key=lambda pair: (-pair[0], pair[1])):
        if utility > worst_utility and unfairness < limit:
            area += (utility - worst_utility) * (limit - unfairness)
            limit = unfairness
    return area


@dataclass(frozen=True)
class Decision:
    """A configuration, the reason for it in a sentence, and whether it is within the limits that were asked for."""

    point: Point
    reason: str
    met: bool = True


def check_wishes(*, fairness: float | None, **limits: float | None) -> None:
    """Raise `ValueError` if a wish (see :func:`decide`) is not between 0 and 1, or if `fairness` comes with a limit."""
    if fairness is not None and not 0 <= fairness <= 1:
        raise ValueError(f"'fairness' must be between 0 and 1 (got {fairness})")
    check_limits(limits)
    for name, limit in limits.items():
        # One chooses a trade-off, the other the most useful configuration within it.
        if fairness is not None and limit is not None:
            raise ValueError(f"'fairness' and '{name}' must not be given together (got {fairness} and {limit})")


def choose(points: Sequence[Point], **wishes: float | None) -> Point:
    """Return the configuration to take; see :func:`decide`, which also gives the reason."""
    return decide(points, **wishes).point


def decide(points: Sequence[Point], *, fairness: float | None = None, **limits: float | None) -> Decision:
    r"""Return the configuration to take, by the metrics on the validation nodes, and why.

    By default it is the one with the largest `AUC + F1 + ACC - DP - EO`; with limits, the most useful one within them.
    Near-constant configurations are only taken if there are no others.

    Args:
        fairness: how much fairness counts, from 0 to 1: the point of the front with the largest
            :math:`(1 - \text{fairness})\, u - \text{fairness}\, d`, with utility `u` and unfairness `d` scaled to
            [0, 1] over the front. 0 is the most useful point, 1 the fairest. Cannot be combined with limits.
        limits: `max_dp` and `max_eo`, the largest DP and EO allowed, and `min_impact_ratio`, the smallest ratio of two
            groups' shares. If no configuration is within the limits, the nearest is taken.
    """
    check_wishes(fairness=fairness, **limits)
    asked_for = {name: limit for name, limit in limits.items() if limit is not None}
    usable = informative(points)
    within = [point for point in usable if risk(point, asked_for) <= 0]
    asked = " and ".join(_in_words(name, limit) for name, limit in asked_for.items())
    if not within:
        point = min(usable, key=lambda point: (risk(point, asked_for), -point.utility))
        has = " and ".join(_has(point, name) for name in asked_for)
        reason = f"No configuration has {asked} on validation: the nearest, with {has}, was taken."
    elif fairness is None and not asked_for:
        point = max(within, key=lambda point: (point.selection, -point.unfairness))
        reason = "It has the largest AUC + F1 + ACC - DP - EO on validation."
    else:
        point = _weigh(pareto_front(within), fairness or 0.0)
        what = "most useful" if not fairness else "fairest" if fairness == 1 else f"best for fairness {fairness:g}"
        reason = f"It is the {what} on the validation front{f' with {asked}' if asked else ''}."
    warning = " Beware: it is near constant, as all are." if point.near_constant else ""
    return Decision(point, reason + warning, met=bool(within))


def _weigh(front: Sequence[Point], fairness: float) -> Point:
    # The front goes from the most useful point to the fairest, so its ends are the extremes of both.
    first, last = front[0], front[-1]
    width = (first.utility - last.utility) or 1.0
    height = (first.unfairness - last.unfairness) or 1.0

    def score(point: Point) -> float:
        useful, unfair = (point.utility - last.utility) / width, (point.unfairness - last.unfairness) / height
        return (1 - fairness) * useful - fairness * unfair

    return max(front, key=score)


def risk(point: Point, limits: Mapping[str, float], margins: Mapping[str, float] | None = None) -> float:
    """Return by how much a point is beyond the limits on validation, at most; negative if it is within all of them.

    A margin is added to each: by how much a check on other nodes may differ.
    """
    found = [-math.inf]
    for name, limit in limits.items():
        label, sign = _LIMITED[name]
        value = point.validation.get(label, math.nan)
        beyond = sign * (value - limit) + (margins or {}).get(name, 0.0)
        found.append(math.inf if math.isnan(beyond) else beyond)  # what cannot be measured may be anything
    return max(found)


def candidates(
    points: Iterable[Point],
    limits: Mapping[str, float],
    margins: Mapping[str, float],
    *,
    rooms: Sequence[float] = (MOST_ROOM, 1.4, 1.0, 0.6),
) -> list[Point]:
    """Return the points worth checking against limits, in the order of the check: the safest first.

    For each of `rooms` it is the most useful point that is within the limits by so many margins. A point with one
    margin of room passes a check about every second time, one with 1.8 in nine of ten. If none has the most room, the
    first is the safest; if what is limited could not be measured, as with a ratio where nobody is selected, it is the
    one with the least unfairness.
    """
    usable = informative(points)
    if all(risk(point, limits) == math.inf for point in usable):
        return [min(usable, key=lambda point: (point.unfairness, -point.utility))]
    order = [min(usable, key=lambda point: (risk(point, limits, margins), -point.utility))]
    for number, room in enumerate(rooms):
        needed = {name: room * margin for name, margin in margins.items()}
        within = [point for point in usable if risk(point, limits, needed) <= _ROUNDING]
        if within:
            best = max(within, key=lambda point: (point.utility, -risk(point, limits)))
            order = [best] if number == 0 else order if best in order else [*order, best]
    return order


def _in_words(name: str, limit: float) -> str:
    label, sign = _LIMITED[name]
    article = "an" if label == "EO" else "a"
    return f"{article} {label} of at most {100 * limit:.1f} %" if sign > 0 else f"an impact ratio of at least {limit:g}"


def _has(point: Point, name: str) -> str:
    label, sign = _LIMITED[name]
    value = point.validation.get(label, math.nan)
    return f"{label} {100 * value:.1f} %" if sign > 0 else f"an impact ratio of {value:.2f}"
