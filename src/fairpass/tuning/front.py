"""Configurations as points between utility and unfairness, and the front of those that no other point beats.

Everything here looks at the validation nodes only.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from fairpass.errors import DataError
from fairpass.metrics.catalog import UNFAIRNESS, UTILITY
from fairpass.runs import Configuration

_USEFUL, _UNFAIR = ([metric.label for metric in metrics] for metrics in (UTILITY, UNFAIRNESS))


@dataclass(frozen=True)
class Point(Configuration):
    """A configuration (with all its settings) and how it did; metrics are fractions, means over the seeds.

    Attributes:
        validation: AUC, F1, ACC, DP and EO on the validation nodes; every choice is made by these.
        test: the same on the test nodes, for the reader; None if they have no labels.
        near_constant: whether, with at least half of the seeds, almost all validation nodes get the same class.
    """

    validation: Mapping[str, float] = field(default_factory=dict)
    test: Mapping[str, float] | None = None
    near_constant: bool = False

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
        """Return plain JSON values, the arguments of an equal point."""
        metrics = {"validation": self.validation, "test": self.test, "near_constant": self.near_constant}
        return {**super().to_dict(), **metrics}


def informative(points: Iterable[Point]) -> list[Point]:
    """Return the points that are not near constant, or all of them if there are no others.

    A classifier that predicts the same for everybody is fair and, if one label is common, often right, but of no use:
    it must not displace useful ones.
    """
    points = list(points)
    if not points:
        raise DataError("'points' must hold at least one configuration (got none)")
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
